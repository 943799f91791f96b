"""How does a summary look? One small bar chart for each way to count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcpproxy.cli import looks
from mcpproxy.cli.screen import Cell, Column

if TYPE_CHECKING:
    from mcpproxy.cli.screen import Screen

_PERIODS: Final = {"1h": "hour", "24h": "24 hours", "7d": "7 days", "30d": "30 days"}
_CHARTS: Final = ("type", "status", "intent", "server")
_WIDEST_BAR: Final = 40
_MOST_ROWS: Final = 10


def print_summary(screen: Screen, found: dict[str, Any]) -> None:
    """Print the counts of one period."""
    charts = {f"by_{name}": dict(found[f"by_{name}"]) for name in _CHARTS}
    charts["top_tools"] = {f"{each['server']}:{each['tool']}": each["count"] for each in found["top_tools"]}
    if not screen.terminal:
        rows = [(chart, name, count) for chart, counts in charts.items() for name, count in counts.items()]
        rows.insert(0, ("total", "total", found["total"]))
        columns = (Column("COUNTED"), Column("NAME"), Column("COUNT"))
        screen.rows(columns, [[Cell(chart), Cell(name), Cell(str(count))] for chart, name, count in rows])
        return
    period = _PERIODS.get(found["period"], found["period"])
    screen.line((f"{looks.plural(found['total'], 'record')} in the last {period}", "bold"))
    if not found["total"]:
        screen.line("Nothing happened. A longer period: mcpproxy activity summary --period 30d")
    for chart, counts in charts.items():
        if counts:
            _print_chart(screen, chart.replace("_", " ").capitalize(), counts, found["total"])


def _print_chart(screen: Screen, title: str, counts: dict[str, int], total: int) -> None:
    from rich.cells import set_cell_size

    from mcpproxy.cli.clean import clean

    screen.write("")
    screen.line((title, "bold"))
    names = {name: clean(name) for name in list(counts)[:_MOST_ROWS]}
    label = min(max(len(name) for name in names.values()), max(screen.width // 3, 12))
    longest = max(counts.values())
    digits = len(f"{longest:,}")
    room = max(min(_WIDEST_BAR, screen.width - label - digits - 14), 5)
    for name, shown in names.items():
        count = counts[name]
        drawn = looks.bar(count / longest, room)
        share = f"{100 * count / total:.0f} %" if total else ""
        text = set_cell_size(shown, label)
        screen.line(f"  {text}  ", (f"{drawn:<{room}}", _style(name)), f"  {count:>{digits},}  ", (share, "dim"))


def _style(name: str) -> str:
    return looks.status(name).style or looks.intent(name).style or "blue"
