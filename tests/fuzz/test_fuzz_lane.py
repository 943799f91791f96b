"""Whatever is posted to `/mcp`: the lane and the SDK alone give the same answer and leave the same record.

Runs a few hundred requests; FUZZ_EXAMPLES=50000 makes it a long session.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from tests.fuzz.bodies import CALLS, bodies
from tests.fuzz.heads import heads
from tests.fuzz.lanes import Lanes, Posted, fuzzed, verdict

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "250"))
SESSION = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize="FUZZ_EXAMPLES" not in os.environ,  # a short run is the same every time, a long one is new
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)


@st.composite
def requests(draw: DrawFn, modern: bool) -> Posted:
    """A request near a valid one of the era."""
    tool = draw(st.sampled_from(CALLS))
    return Posted(draw(heads(modern, tool.encode())), draw(bodies(modern, tool)))


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lanes]:
    with fuzzed(tmp_path_factory.mktemp("fuzz")) as started:
        yield started


@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
def test_no_request_is_judged_differently_by_the_lane(lanes: Lanes, modern: bool) -> None:
    @SESSION
    @given(requests(modern))
    def differ(posted: Posted) -> None:
        first = lanes.ask(posted, lane=True)
        again = lanes.ask(posted, lane=True)  # by now the lane may have learnt the envelope
        alone, recorded = lanes.ask(posted, lane=False)
        for answer, records in (first, again):
            assert 0 < answer.status < 500 and b"-32603" not in answer.messages[-1][:100], (posted, answer)
            assert verdict(answer) == verdict(alone), posted
            assert records == recorded, posted

    lanes.taken = 0
    differ()
    assert lanes.taken > EXAMPLES / 10, "the lane took next to nothing: nothing was compared"
