"""How long will it take? A bar for what the server reports, on a terminal only, and gone when the answer is there."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from mcpproxy.cli import looks
from mcpproxy.cli.clean import clean

if TYPE_CHECKING:
    from mcpproxy.cli.screen import Screen


_WIDTH: Final = 24
_PATIENCE: Final = 0.7
"""Seconds before a call is worth a bar."""


class _Report(Struct):
    progress: float = 0
    total: float | None = None
    message: str | None = None


@contextlib.contextmanager
def progress_bar(screen: Screen, title: str) -> Iterator[Callable[[bytes], None] | None]:
    """Gives what takes the server's reports; None where nobody would see them."""
    if not sys.stderr.isatty() or screen.output != "table":
        yield None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[share]}", style="green", markup=False),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=screen.remarks, transient=True)
    task = bar.add_task(clean(title), total=None, share="")
    # Most calls are over before anybody could read it.
    soon = threading.Timer(_PATIENCE, bar.start)
    soon.daemon = True

    def take(data: bytes) -> None:
        try:
            report = msgspec.json.decode(data, type=_Report)
        except (msgspec.MsgspecError, RecursionError):
            return
        share = min(report.progress / report.total, 1) if report.total and report.total > 0 else None
        drawn = f"{looks.bar(share, _WIDTH):<{_WIDTH}} {share:4.0%}" if share is not None else ""
        text = f"{title}  {report.message}" if report.message else title
        bar.update(task, share=drawn, description=clean(text)[:200])
        bar.start()

    soon.start()
    try:
        yield take
    finally:
        soon.cancel()
        soon.join()
        bar.stop()
