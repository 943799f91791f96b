"""What did it come to? Medians over the rounds, ratios within each round, and the targets that were set."""

from __future__ import annotations

import statistics
from typing import Any

from bench.calls.run import Row, Scenario

HIGHER_IS_BETTER = ("calls", "per_second")
Runs = dict[int, Row]
"""What one cell came to, by round."""


class Results:
    """All cells of one run."""

    def __init__(self) -> None:
        self._cells: dict[tuple[Scenario, int, bool], dict[str, Runs]] = {}

    def add(self, scenario: Scenario, callers: int, progress: bool, target: str, round_: int, row: Row) -> None:
        """Take one measurement."""
        self._cells.setdefault((scenario, callers, progress), {}).setdefault(target, {})[round_] = row

    def rows(self) -> list[Row]:
        """One row for each cell: its median, its best, and its ratios."""
        found = []
        for (scenario, callers, progress), targets in self._cells.items():
            for name, runs in targets.items():
                found.append(
                    {
                        "front": scenario.front,
                        "upstream": scenario.upstream,
                        "size": scenario.size,
                        "callers": callers,
                        "progress": progress,
                        "target": name,
                        "rounds": len(runs),
                        **{key: statistics.median(run[key] for run in runs.values()) for key in _keys(runs)},
                        "best": {key: _best(key, runs) for key in _keys(runs)},
                        "ratio": {other: ratios(runs, others) for other, others in targets.items() if other != name},
                    }
                )
        return found


def _keys(runs: Runs) -> list[str]:
    return list(next(iter(runs.values())))


def _best(key: str, runs: Runs) -> float:
    values: list[float] = [run[key] for run in runs.values()]
    return max(values) if key in HIGHER_IS_BETTER else min(values)


def ratios(ours: Runs, theirs: Runs) -> dict[str, float]:
    """Ours to theirs: the median of what it was in each round, since the machine is alike within a round only."""
    found = {}
    for key in ("per_second", "p50_ms", "p99_ms", "cpu_us"):
        shared = [round_ for round_ in ours.keys() & theirs.keys() if theirs[round_][key]]
        if shared:
            found[key] = statistics.median(ours[round_][key] / theirs[round_][key] for round_ in shared)
    return found


def find(rows: list[Row], target: str, **wanted: Any) -> Row | None:
    """The row of a target in a cell."""
    where = {"front": "http", "upstream": "stdio", "size": 200, "progress": False, "target": target, **wanted}
    return next((row for row in rows if all(row[key] == value for key, value in where.items())), None)


def tables(rows: list[Row]) -> str:
    """The rows as a person reads them."""
    lines: list[str] = []
    head = ""
    for row in sorted(rows, key=_order):
        title = f"{row['size']} B, {row['front']} in front, {row['upstream']} behind, {_word(row['progress'])}"
        if title != head:
            head = title
            columns = f"{'calls/s':>9}{'of direct':>11}{'p50 ms':>9}{'p99 ms':>9}{'CPU µs':>8}{'peak MB':>9}{'load':>6}"
            lines += ["", title, f"{'callers':>8}  {'target':14}{columns}   mcpproxy makes"]
        direct = row["ratio"].get("direct", {}).get("per_second", 1.0)
        ours = row["ratio"].get("mcpproxy", {}).get("per_second")
        lines.append(
            f"{row['callers']:>8}  {row['target']:14}{row['per_second']:>9.0f}{direct:>11.3f}{row['p50_ms']:>9.2f}"
            f"{row['p99_ms']:>9.2f}{row['cpu_us']:>8.0f}{row['peak_mb']:>9.0f}{row['load_share']:>6.0%}"
            + (f"   {1 / ours:.2f} times its calls" if ours else "")
        )
    return "\n".join(lines)


def _word(progress: bool) -> str:
    return "a progress token with each call" if progress else "no progress token"


def _order(row: Row) -> tuple[Any, ...]:
    place = (row["front"], row["upstream"], row["size"], row["progress"], row["callers"])
    return (*place, -row["per_second"])


def verdicts(rows: list[Row], peers: list[str]) -> list[Row]:
    """The targets of the project, and whether they are met. Those that were not measured are left out."""
    found: list[Row] = []

    def add(what: str, value: float, limit: float, *, least: bool) -> None:
        met = value >= limit if least else value <= limit
        found.append({"target": what, "value": value, "limit": limit, "at_least": least, "met": met})

    one, many = find(rows, "mcpproxy", callers=1), find(rows, "mcpproxy", callers=64)
    if many is not None:
        against = [many["ratio"][peer] for peer in peers if many["ratio"].get(peer)]
        if against:
            add("calls/s at 64 callers, of the best peer", min(each["per_second"] for each in against), 3, least=True)
            add("p99 at 64 callers, of the best peer", max(each["p99_ms"] for each in against), 1 / 3, least=False)
        if many["ratio"].get("fastmcp"):
            add("calls/s at 64 callers, of FastMCP's proxy", many["ratio"]["fastmcp"]["per_second"], 8, least=True)
    if one is not None:
        slower = [one["ratio"][peer]["p50_ms"] for peer in peers if one["ratio"].get(peer)]
        if slower:
            add("p50 at one caller, of the best peer", max(slower), 0.5, least=False)
        direct, lane = find(rows, "direct", callers=1), find(rows, "bare lane", callers=1)
        if direct is not None and lane is not None:
            ours, bare = one["p50_ms"] - direct["p50_ms"], lane["p50_ms"] - direct["p50_ms"]
            add("p50 added at one caller, of what the bare lane adds", ours / bare, 2, least=False)
    large = [row for row in rows if row["size"] == 1_000_000 and row["front"] == "http" and row["upstream"] == "stdio"]
    ours_large = [row for row in large if row["target"] == "mcpproxy" and not row["progress"]]
    theirs_large = [row for row in large if row["target"] in peers and not row["progress"]]
    if ours_large and theirs_large:
        most = max(row["per_second"] for row in ours_large) / max(row["per_second"] for row in theirs_large)
        add("calls/s with 1 MB, of the best peer", most, 3, least=True)
    for row in ours_large:
        if row["callers"] == 64:
            add("memory per call of 1 MB, in payloads", row["grown_mb"] / row["callers"], 4, least=False)
    return found
