"""What is happening now? Records as they come, for as long as somebody looks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Raw, Struct

from mcpproxy.cli.activity.table import COLUMNS, cells
from mcpproxy.cli.clean import escaped_json
from mcpproxy.cli.errors import NO_DAEMON, Failure
from mcpproxy.cli.screen import Cell, value_of

if TYPE_CHECKING:
    import http.client

    from mcpproxy.cli.activity.log import Filters
    from mcpproxy.cli.session import Session

_SILENCE: Final = 40.0
"""The daemon says something every 15 seconds; one that does not is gone."""
_PAUSES: Final = (0.5, 1.0, 2.0, 5.0)
_FIELDS: Final = {"type": "type", "status": "status", "server": "server_name", "request_id": "request_id"}
_WIDTHS: Final = {"TIME": 8, "SERVER": 14, "INTENT": 7, "STATUS": 11, "DURATION": 8}


class Event(Struct):
    """One server-sent event."""

    kind: str = "message"
    id: str | None = None
    data: str = ""


def watch(session: Session, filters: Filters) -> None:
    """Print records until somebody presses Ctrl-C; a daemon that goes away is waited for."""
    daemon = session.need_daemon("activity watch")
    last: str | None = None
    failures = 0
    printer = _Printer(session)
    while True:
        headers = {"Last-Event-ID": last} if last is not None else {}
        try:
            with daemon.open("GET", "/events", headers=headers, timeout=_SILENCE) as response:
                for event in events(response):
                    failures = 0
                    last = event.id or last
                    printer.take(event, filters)
        except Failure as error:
            if error.exit_code != NO_DAEMON:
                raise
        if failures == 0:
            session.screen.note("The daemon is gone; waiting for it to come back. Stop with Ctrl-C.", "yellow")
        time.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
        failures += 1


def events(response: http.client.HTTPResponse) -> Iterator[Event]:
    """The events of a stream, as the standard for them says."""
    event = Event()
    for line in response:
        text = line.decode(errors="replace").rstrip("\r\n")
        if not text:
            if event.data or event.kind != "message":
                yield event
            event = Event()
            continue
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            event.kind = value
        elif name == "id":
            event.id = value
        elif name == "data":
            event.data += ("\n" if event.data else "") + value


def _wanted(raw: Raw, filters: Filters) -> bool:
    record = value_of(raw)
    for name, wanted in filters.items():
        if not wanted:
            continue
        if name == "tool":
            names = (record["tool_name"], f"{record['server_name']}:{record['tool_name']}")
            if wanted not in names:
                return False
        elif name == "intent_type":
            intent = record["metadata"].get("intent") or {}
            if intent.get("operation_type") != wanted:
                return False
        elif record[_FIELDS[name]] != wanted:
            return False
    return True


class _Printer:
    """Prints records one by one, so its columns have their widths from the start."""

    def __init__(self, session: Session) -> None:
        self._screen = session.screen
        self._begun = False

    def take(self, event: Event, filters: Filters) -> None:
        """Print what an event says, where it is wanted."""
        if event.kind == "ready":
            self._begin()
        elif event.kind == "skipped":
            self._screen.note("Some records are missing here: the log no longer has them.", "yellow")
        elif event.kind == "activity" and _wanted(record := Raw(event.data.encode()), filters):
            self._add(record)

    def _begin(self) -> None:
        """Say that from here on nothing is missed."""
        if not self._begun and self._screen.output == "table":
            self._line([Cell(column.name, style="bold") for column in COLUMNS])
            self._screen.note("Waiting for what happens. Stop with Ctrl-C.")
        self._begun = True

    def _add(self, record: Raw) -> None:
        """Print one record."""
        if self._screen.output == "yaml":
            self._screen.write("---")
        if self._screen.output == "json":
            self._screen.write(escaped_json(bytes(record).decode(errors="replace")))
        else:
            self._screen.show(record, lambda: self._line(cells(self._screen, value_of(record), clock=True)))
        self._flush()

    def _line(self, row: list[Cell]) -> None:
        if not self._screen.terminal:
            self._screen.write("\t".join(cell.text or "-" for cell in row))
            self._flush()
            return
        from rich.cells import set_cell_size
        from rich.text import Text

        from mcpproxy.cli.clean import clean

        fixed = {**_WIDTHS, "ID": 26 if self._screen.width >= 110 else 8}
        room = self._screen.width - sum(fixed.values()) - 2 * (len(COLUMNS) - 1)
        line = Text(no_wrap=True, overflow="ellipsis")
        for column, cell in zip(COLUMNS, row, strict=True):
            text = clean(cell.text if cell.shown is None else cell.shown)
            line.append(set_cell_size(text, fixed.get(column.name, max(room, 8))) + "  ", cell.style)
        line.rstrip()
        self._screen.console.print(line)

    def _flush(self) -> None:
        import sys

        sys.stdout.flush()
