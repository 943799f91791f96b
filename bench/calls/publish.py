"""How do the figures get into the documentation? Between two marks of a page, so that nobody copies them by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Row = dict[str, Any]


def publish(page: Path, name: str, text: str) -> None:
    """Put text between the marks of that name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    before, _, rest = page.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page} has no marks for {name}")
    page.write_text(f"{before}{begin}{text.strip()}\n{end}{after}")


def where_and_when(machine: Row) -> str:
    """What the figures were measured on."""
    return (
        f"{machine['at']} UTC, {machine['cores']} cores ({machine['cpu']}), Python {machine['python']}, "
        f"load before the run {machine['load_before']:.1f}."
    )


def calls(found: Row) -> str:
    """A whole run of bench.calls as Markdown."""
    shown = ", ".join(f"{name} {version}" for name, version in found["versions"].items() if version)
    parts = [
        f"{where_and_when(found['machine'])} {found['rounds']} rounds of {found['seconds']:g} s, medians. {shown}."
    ]
    places = sorted({(row["front"], row["upstream"], row["size"], row["progress"]) for row in found["rows"]})
    for place in places:
        rows = [row for row in found["rows"] if (row["front"], row["upstream"], row["size"], row["progress"]) == place]
        parts.append(_table(place, rows))
    goals = ["| target | limit | measured | |", "|---|---|---|---|"]
    goals += [
        f"| {one['target']} | {'at least' if one['at_least'] else 'at most'} {one['limit']:.2f} | {one['value']:.2f} "
        f"| {'met' if one['met'] else 'missed'} |"
        for one in found["targets"]
    ]
    missing = [f"Not measured: {text}." for text in dict.fromkeys(found["missing"])]
    picture = "![Calls per second and latency beside other gateways](images/performance.png)"
    return "\n\n".join((picture, *parts, "\n".join(goals), *missing))


def front_page(found: Row) -> str:
    """The same in a picture and a sentence."""
    said = {one["target"]: one["value"] for one in found["targets"]}
    more, wait = said["calls/s at 64 callers, of the best peer"], said["p50 at one caller, of the best peer"]
    large = said["calls/s with 1 MB, of the best peer"]
    fast = said["calls/s at 64 callers, of FastMCP's proxy"]
    return (
        "![Calls per second and latency beside other gateways](docs/images/performance.png)\n\n"
        f"Beside the quickest of the other gateways, in turn on the same machine: {more:.1f} times the calls a second\n"
        f"at 64 callers ({fast:.0f} times those of FastMCP's proxy), {large:.1f} times with results of 1 MB, and one\n"
        f"caller alone waits {wait:.1f} times as long. Every call of ours is checked, and on record, by then."
    )


def _table(place: tuple[str, str, int, bool], rows: list[Row]) -> str:
    front, upstream, size, progress = place
    callers = sorted({row["callers"] for row in rows})
    few, many = callers[0], 64 if 64 in callers else callers[-1]
    names = list(dict.fromkeys(row["target"] for row in sorted(rows, key=lambda row: -row["per_second"])))
    token = ", with a progress token" if progress else ""
    heads = [f"calls/s at {count}" for count in callers]
    heads += [f"p50 at {few}, ms", f"p99 at {many}, ms", f"CPU at {many}, µs", f"peak at {many}, MB"]
    lines = [f"**{_size(size)}, {front} in front, {upstream} behind{token}**", ""]
    lines += ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for name in names:
        by = {row["callers"]: row for row in rows if row["target"] == name}
        cells = [_cell(by.get(count), "per_second", "{:,.0f}") for count in callers]
        cells += [_cell(by.get(few), "p50_ms", "{:.2f}"), _cell(by.get(many), "p99_ms", "{:.1f}")]
        cells += [_cell(by.get(many), "cpu_us", "{:,.0f}"), _cell(by.get(many), "peak_mb", "{:,.0f}")]
        shown = f"**{name}**" if name == "mcpproxy" else name
        lines.append(f"| {shown} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: Row | None, key: str, form: str) -> str:
    return form.format(row[key]) if row is not None and row[key] else ""


def _size(size: int) -> str:
    return f"{size} B" if size < 1000 else f"{size // 1000} KB" if size < 1_000_000 else f"{size // 1_000_000} MB"
