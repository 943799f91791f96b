"""What did the day look like? Calls per minute by intent, stacked, as paths of an SVG."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from mcpproxy.activity.pace import Pace

WIDTH: Final = 1440
HEIGHT: Final = 200
_ORDER: Final = ("read", "write", "destructive", "")
_TICKS: Final = 4
_ROUND: Final = (1, 2, 3, 4, 5, 6, 8, 10)


class Series(Struct, frozen=True):
    """The calls of one intent."""

    intent: str
    total: int
    path: str
    """Its bars, on top of those of the series before it."""


class Step(Struct, frozen=True):
    """One step of the day, for a reader who points at it."""

    x: float
    width: float
    at: datetime
    text: str


class Chart(Struct, frozen=True, kw_only=True):
    """Everything the template draws."""

    width: int
    height: int
    top: str
    """What the upper edge stands for, in calls per minute."""
    half: str
    series: list[Series]
    steps: list[Step]
    ticks: list[datetime]
    total: int
    peak: str


def chart_of(pace: Pace) -> Chart:
    """The day as paths, with one bar per step."""
    minutes = pace.step.total_seconds() / 60
    length = max((len(counts) for counts in pace.by_intent.values()), default=144)
    present = [intent for intent in _ORDER if any(pace.by_intent.get(intent, ()))]
    sums = [sum(pace.by_intent[intent][place] for intent in present) for place in range(length)]
    peak = max(sums, default=0) / minutes
    top = _round_up(peak)
    width = WIDTH / length
    floor = [0.0] * length
    series = []
    for intent in present:
        counts = pace.by_intent[intent]
        series.append(Series(intent, sum(counts), _bars(counts, floor, width, HEIGHT / (top * minutes))))
        floor = [below + count for below, count in zip(floor, counts, strict=True)]
    return Chart(
        width=WIDTH,
        height=HEIGHT,
        top=_number(top),
        half=_number(top / 2),
        series=series,
        steps=[_step(pace, present, place, width) for place in range(length) if sums[place]],
        ticks=[pace.start + pace.step * (length * tick // _TICKS) for tick in range(_TICKS + 1)],
        total=sum(sums),
        peak=_number(peak),
    )


def _bars(counts: list[int], floor: list[float], width: float, scale: float) -> str:
    gap = width * 0.12
    bars = []
    for place, count in enumerate(counts):
        if count:
            x, y, height = place * width, HEIGHT - floor[place] * scale, count * scale
            bars.append(f"M{x + gap:.1f} {y:.1f}v{-height:.1f}h{width - 2 * gap:.1f}v{height:.1f}z")
    return "".join(bars)


def _step(pace: Pace, present: list[str], place: int, width: float) -> Step:
    counts = ((intent or "undeclared", pace.by_intent[intent][place]) for intent in present)
    text = ", ".join(f"{count} {intent}" for intent, count in counts if count)
    return Step(round(place * width, 1), round(width, 1), pace.start + pace.step * place, text)


def _round_up(number: float) -> float:
    """The next number that reads well as the end of an axis."""
    unit = 0.1
    while number > 10 * unit:
        unit *= 10
    return next(step * unit for step in _ROUND if step * unit >= number - 1e-9)


def _number(number: float) -> str:
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}"
