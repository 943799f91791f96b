"""How does the log leave the house, and is it still what was written? What `export` writes and `verify` says."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcpproxy.cli import looks
from mcpproxy.cli.clean import clean_lines
from mcpproxy.cli.errors import FAILED, USAGE, Failure

if TYPE_CHECKING:
    from mcpproxy.cli.screen import Screen

_FORMS: Final = ("jsonl", "csv")


def check_form(form: str) -> None:
    """Refuse a format that there is not."""
    if form not in _FORMS:
        raise Failure(USAGE, f"--format: {form!r} is not allowed; give one of {', '.join(_FORMS)}.")


def write_out(screen: Screen, pieces: Iterator[bytes], file: Path | None) -> None:
    """Write an export to stdout, or to a file that nobody else may read."""
    if file is None:
        for piece in pieces:
            # A file or a program gets every byte; a terminal nothing that it would obey.
            screen.write(clean_lines(piece.decode(errors="replace"))) if screen.terminal else screen.raw(piece)
        return
    partial = file.with_name(f".{file.name}.part")
    size = 0
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as out:
            for piece in pieces:
                size += out.write(piece)
        partial.replace(file)
    except OSError as error:
        raise Failure(FAILED, f"{file} cannot be written: {error.strerror or error}.") from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
    screen.note(f"Wrote {looks.size(size)} to {file}, readable by you alone.")


def print_verification(screen: Screen, found: dict[str, Any]) -> None:
    """Say whether anything was altered, and what."""
    count = f"{looks.plural(found['records'], 'record')} in {looks.plural(len(found['chains']), 'chain')}"
    if found["ok"]:
        screen.line(("Unaltered", "bold green"), f": {count}.")
    else:
        screen.line(("ALTERED", "bold red"), f": {looks.plural(len(found['problems']), 'problem')} in {count}.")
    for problem in found["problems"]:
        screen.line("  ", (problem["kind"], "red"), f"  {problem['text']}")
    if found["unanchored"]:
        screen.line(f"No signature covers the last {looks.plural(found['unanchored'], 'record')} yet.")
