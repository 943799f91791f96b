"""How long does it take to find something in a large log?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from bench.activity.measure import milliseconds, percentile, repeat
from mcpproxy.activity.filters import Filter
from mcpproxy.activity.query import get_record, list_records
from mcpproxy.activity.record import now
from mcpproxy.activity.summary import PERIODS, summarize
from mcpproxy.storage.engine import Storage

RUNS = 60
TARGET_SECONDS = 0.005


def measure_queries(storage: Storage) -> bool:
    """Print p50 and p99 of every query; tells whether the filtered first pages meet the target."""
    newest = list_records(storage, Filter(), 1).activities[0]
    week = now() - timedelta(days=7)
    filters = {
        "no filter": Filter(),
        "type": Filter(type="tool_call"),
        "type, rare": Filter(type="policy_decision"),
        "status": Filter(status="error"),
        "status, rare": Filter(status="interrupted"),
        "server": Filter(server="server-3"),
        "tool": Filter(tool=newest.tool_name),
        "server:tool": Filter(tool=f"{newest.server_name}:{newest.tool_name}"),
        "intent_type": Filter(intent_type="destructive"),
        "request_id": Filter(request_id=newest.request_id),
        "session_id": Filter(session_id=newest.session_id),
        "start_time": Filter(start_time=week),
        "end_time": Filter(end_time=week),
        "status + type": Filter(status="blocked", type="tool_call"),
        "server + status + time": Filter(server="server-1", status="error", start_time=week),
        "q, rare words": Filter(q="update branch permission"),
        "q, common word": Filter(q="cleanup"),
        "q, beginning": Filter(q="permis*"),
        "q + rare status": Filter(q="cleanup", status="interrupted"),
    }
    print(f"\n{'first page of 50, and its total':34s} {'p50 ms':>9s} {'p99 ms':>9s}  total")
    slow = []
    for name, asked in filters.items():
        page = list_records(storage, asked)
        times = repeat(_listing(storage, asked), RUNS)
        more = "" if page.total_exact else " or more"
        print(f"{name:34s} {milliseconds(times)}  {page.total}{more}")
        if percentile(times, 0.5) >= TARGET_SECONDS:
            slow.append(name)
    _print_rest(storage, newest.id)
    print(f"\nfirst pages with p50 of {TARGET_SECONDS * 1e3:.0f} ms or more: {', '.join(slow) or 'none'}")
    return not slow


def _print_rest(storage: Storage, id_: str) -> None:
    print(f"\n{'other':34s} {'p50 ms':>9s} {'p99 ms':>9s}")
    cursor = None
    for _ in range(999):
        cursor = list_records(storage, Filter(status="success"), 50, cursor).next_cursor
    later = repeat(_listing(storage, Filter(status="success"), cursor), RUNS)
    print(f"{'page 1000 of a filter, by cursor':34s} {milliseconds(later)}")
    print(f"{'one record by id':34s} {milliseconds(repeat(lambda: get_record(storage, id_), RUNS))}")
    for period in PERIODS:
        print(f"{'summary of ' + period:34s} {milliseconds(repeat(_summary(storage, period), RUNS // 3))}")


def _listing(storage: Storage, asked: Filter, cursor: str | None = None) -> Callable[[], object]:
    return lambda: list_records(storage, asked, 50, cursor)


def _summary(storage: Storage, period: str) -> Callable[[], object]:
    return lambda: summarize(storage, period)
