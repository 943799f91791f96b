"""How well does the scan do on the shared corpora? The numbers that the documentation gives must hold."""

import pytest
from bench.trust.corpora import SECURITY, WILD, cases, wild

from mcpproxy.catalog.scan.finding import is_clean
from mcpproxy.catalog.scan.rulebook import scan


@pytest.mark.skipif(not SECURITY.is_dir(), reason="the shared security data is not here")
def test_attacks_are_found_and_false_alarms_stay_below_two_in_a_hundred() -> None:
    flagged = [(case, not is_clean(scan(case.definition, case.context))) for case in cases()]
    attacks = [found for case, found in flagged if case.malicious]
    honest = [found for case, found in flagged if not case.malicious]
    assert sum(attacks) / len(attacks) > 0.97
    assert sum(honest) / len(honest) < 0.02
    for half in ("tune", "check"):
        alarms = [found for case, found in flagged if not case.malicious and case.half == half]
        assert sum(alarms) / len(alarms) < 0.02, half


@pytest.mark.skipif(not WILD.is_file(), reason="the shared retrieval data is not here")
def test_definitions_in_the_wild_raise_few_alarms() -> None:
    chosen = [case for number, case in enumerate(wild()) if number % 5 == 0]
    alarms = [case.id for case in chosen if not is_clean(scan(case.definition, case.context))]
    assert len(alarms) / len(chosen) < 0.02
