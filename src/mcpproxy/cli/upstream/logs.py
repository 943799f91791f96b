"""What does a server say on the side? The end of its log, and what comes next."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from mcpproxy.cli.clean import clean

if TYPE_CHECKING:
    from mcpproxy.cli.screen import Screen
    from mcpproxy.cli.session import Session

_LOOK_EVERY: Final = 0.25
_BLOCK: Final = 65_536


def print_logs(session: Session, name: str, count: int, *, follow: bool) -> None:
    """Print the last lines of a server's log, and with `follow` whatever it says until Ctrl-C."""
    from mcpproxy.upstream.log import log_path

    path = log_path(session.data_dir, name)
    lines, place = last_lines(path, count)
    screen = session.screen
    if not follow:
        screen.show({"lines": lines}, lambda: _print(screen, lines))
        if not lines and screen.pretty:
            screen.note(f"{name} has said nothing yet.")
        return
    _print(screen, lines)
    for line in followed(path, place):
        _print(screen, [line])


def last_lines(path: Path, count: int) -> tuple[list[str], int]:
    """The last lines of a file and where it ends; none where there is no file."""
    try:
        with path.open("rb") as file:
            end = place = file.seek(0, os.SEEK_END)
            data = b""
            while place > 0 and data.count(b"\n") <= count:
                step = min(_BLOCK, place)
                place = file.seek(place - step)
                data = file.read(step) + data
    except FileNotFoundError:
        return [], 0
    return [line.decode(errors="replace") for line in data.splitlines()[-count:]], end


def followed(path: Path, place: int) -> Iterator[str]:
    """Every further line, also after the log was begun anew."""
    file: BinaryIO | None = None
    partial = b""
    try:
        while True:
            if file is None or _is_replaced(file, path):
                if file is not None:
                    file.close()
                    place, partial = 0, b""
                file = _opened(path, place)
            data = file.read() if file is not None else b""
            if not data:
                time.sleep(_LOOK_EVERY)
                continue
            *whole, partial = (partial + data).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
    finally:
        if file is not None:
            file.close()


def _opened(path: Path, place: int) -> BinaryIO | None:
    with contextlib.suppress(FileNotFoundError):
        file = path.open("rb")
        file.seek(place)
        return file
    return None


def _is_replaced(file: BinaryIO, path: Path) -> bool:
    try:
        return path.stat().st_ino != os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False


def _print(screen: Screen, lines: list[str]) -> None:
    for line in lines:
        moment, _, rest = line.partition(" ")
        if screen.output == "json":
            screen.json({"line": line})
        elif screen.terminal:
            # `!` is what the server wrote, `-` what we say about it.
            screen.line((f"{clean(moment)} ", "dim"), (clean(rest), "" if rest.startswith("!") else "cyan"))
        else:
            screen.write(clean(line))
