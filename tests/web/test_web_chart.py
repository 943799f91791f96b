"""The day as a picture."""

from datetime import UTC, datetime, timedelta

import pytest

from mcpproxy.activity.pace import STEP, Pace
from mcpproxy.web.chart import HEIGHT, chart_of

START = datetime(2026, 1, 14, 12, 40, tzinfo=UTC)


def pace(**counts: dict[int, int]) -> Pace:
    rows = {intent: [given.get(place, 0) for place in range(144)] for intent, given in counts.items()}
    total = sum(sum(row) for row in rows.values())
    return Pace(start=START, step=STEP, by_intent=rows, by_status={"success": total} if total else {})


def test_intents_are_stacked_in_one_order_and_scaled_to_a_round_number() -> None:
    chart = chart_of(pace(destructive={3: 10}, read={3: 20, 10: 5}))
    assert [(one.intent, one.total) for one in chart.series] == [("read", 25), ("destructive", 10)]
    assert (chart.total, chart.peak, chart.top) == (35, "3", "3")
    read, destructive = chart.series
    # 20 of 30 calls fill two thirds of the height; the other third stands on top of them.
    assert f"M31.2 {HEIGHT:.1f}v-133.3" in read.path
    assert f"M31.2 {HEIGHT - 133.3:.1f}v-66.7" in destructive.path
    assert [(step.at, step.text) for step in chart.steps] == [
        (START + 3 * STEP, "20 read, 10 destructive"),
        (START + 10 * STEP, "5 read"),
    ]


def test_the_axis_spans_the_day() -> None:
    chart = chart_of(pace(read={0: 1}))
    assert chart.ticks[0] == START
    assert chart.ticks[-1] == START + timedelta(hours=24)


def test_a_day_without_calls_is_flat() -> None:
    chart = chart_of(pace())
    assert (chart.series, chart.steps, chart.total) == ([], [], 0)


@pytest.mark.parametrize(("most", "top"), [(1, "0.1"), (7, "0.8"), (100, "10"), (1010, "200"), (123_456, "20,000")])
def test_the_upper_edge_reads_well_and_holds_the_highest_bar(most: int, top: str) -> None:
    assert chart_of(pace(read={1: most})).top == top
