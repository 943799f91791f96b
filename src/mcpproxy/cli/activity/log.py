"""Whom is the log asked of? The daemon, where one runs; else the database itself, read-only."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Raw, Struct

from mcpproxy.activity.filters import MOST, BadFilter, parse_filter
from mcpproxy.cli.errors import FAILED, USAGE, Failure

if TYPE_CHECKING:
    from mcpproxy.cli.daemon import Daemon
    from mcpproxy.cli.session import Session
    from mcpproxy.storage.engine import Storage

Filters = Mapping[str, str | None]
_FLAGS = {"start_time": "--since", "end_time": "--until", "q": "--query", "limit": "-n"}
_VERIFY_SECONDS = 3600.0
_PIECE = 65_536


class Page(Struct):
    """Some records, newest first, as they are stored."""

    activities: list[Raw]
    total: int
    total_exact: bool = True
    next_cursor: str | None = None


class Log(Protocol):
    """The activity log, wherever it is read."""

    def page(self, filters: Filters, limit: int, cursor: str | None) -> Raw:
        """One page of records."""

    def record(self, id_: str) -> Raw | None:
        """One record."""

    def summary(self, period: str) -> Raw:
        """The counts of a period."""

    def export(self, form: str, filters: Filters) -> Iterator[bytes]:
        """All records, in pieces."""

    def verify(self) -> Raw:
        """Whether anything was altered."""


class DaemonLog:
    """The log, asked of the running daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def page(self, filters: Filters, limit: int, cursor: str | None) -> Raw:
        """One page of records."""
        return self._daemon.get("/activity", {**filters, "limit": limit, "cursor": cursor})

    def record(self, id_: str) -> Raw | None:
        """One record."""
        from mcpproxy.cli.daemon import Refused, segment

        try:
            return self._daemon.get(f"/activity/{segment(id_)}")
        except Refused as error:
            if error.status == 404:
                return None
            raise

    def summary(self, period: str) -> Raw:
        """The counts of a period."""
        return self._daemon.get("/activity/summary", {"period": period})

    def export(self, form: str, filters: Filters) -> Iterator[bytes]:
        """All records, in pieces."""
        with self._daemon.open("GET", "/activity/export", query={**filters, "format": form}) as response:
            while piece := response.read(_PIECE):
                yield piece

    def verify(self) -> Raw:
        """Whether anything was altered."""
        from mcpproxy.cli.daemon import data_of

        with self._daemon.open("GET", "/activity/verify", timeout=_VERIFY_SECONDS) as response:
            return data_of(response.read())


class OwnLog:
    """The log, read from the database."""

    def __init__(self, storage: Storage, session: Session) -> None:
        self._storage = storage
        self._session = session

    def page(self, filters: Filters, limit: int, cursor: str | None) -> Raw:
        """One page of records."""
        from mcpproxy.activity.query import list_records

        return _raw(list_records(self._storage, parse_filter(filters), limit, cursor))

    def record(self, id_: str) -> Raw | None:
        """One record."""
        from mcpproxy.activity.query import get_record

        found = get_record(self._storage, id_)
        return _raw(found) if found is not None else None

    def summary(self, period: str) -> Raw:
        """The counts of a period."""
        from mcpproxy.activity.summary import summarize

        return _raw(summarize(self._storage, period))

    def export(self, form: str, filters: Filters) -> Iterator[bytes]:
        """All records, in pieces."""
        from mcpproxy.activity.export import export

        yield from export(self._storage, form, parse_filter(filters))

    def verify(self) -> Raw:
        """Whether anything was altered."""
        from mcpproxy.activity.verify import verify_in

        return _raw(verify_in(self._session.data_dir, self._storage))


@contextlib.contextmanager
def open_log(session: Session) -> Iterator[Log]:
    """The log, for the length of the block."""
    if session.daemon is not None:
        yield DaemonLog(session.daemon)
        return
    with session.storage() as storage:
        yield OwnLog(storage, session)


def checked(filters: Filters) -> Filters:
    """The filters, where they can be meant; said in the words of the command line where not."""
    try:
        parse_filter(filters)
    except BadFilter as error:
        flag = _FLAGS.get(error.field, f"--{error.field.replace('_', '-')}")
        message = str(error).removeprefix(f"{error.field}: ")
        raise Failure(USAGE, f"{flag}: {message}.", "See: mcpproxy activity list --help") from None
    return filters


def read_pages(log: Log, filters: Filters, count: int, cursor: str | None) -> Page:
    """As many records as asked for, over as many pages as that takes."""
    first = page = msgspec.json.decode(log.page(filters, min(count, MOST), cursor), type=Page)
    while page.next_cursor is not None and len(first.activities) < count:
        page = msgspec.json.decode(
            log.page(filters, min(count - len(first.activities), MOST), page.next_cursor), type=Page
        )
        first.activities += page.activities
    first.next_cursor = page.next_cursor
    return first


def find_record(log: Log, id_: str) -> Raw:
    """The record with this id, or the only recent one whose id ends like this."""
    found = log.record(id_)
    if found is not None:
        return found
    recent: list[dict[str, Any]] = []
    if len(id_) < 26:
        page = read_pages(log, {}, MOST, None)
        recent = [{"id": msgspec.json.decode(raw, type=_Id).id, "raw": raw} for raw in page.activities]
    alike = [each for each in recent if id_ and each["id"].endswith(id_.upper())]
    if len(alike) == 1:
        raw: Raw = alike[0]["raw"]
        return raw
    if alike:
        raise Failure(FAILED, f"{len(alike)} recent records have ids that end in {id_}; give more of it.")
    raise Failure(FAILED, f"there is no record with the id {id_}.", "See: mcpproxy activity list", code="NOT_FOUND")


class _Id(Struct):
    id: str


def _raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))
