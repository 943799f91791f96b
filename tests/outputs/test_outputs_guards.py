"""The depth guard and the key count agree with a real parser, and nothing crashes them."""

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpproxy.outputs import guards
from mcpproxy.outputs.guards import count_keys, count_marks, too_deep
from mcpproxy.outputs.strings import strings

# Brackets, quotes, colons and backslashes in strings and keys are what a careless scan trips over.
TEXT = st.text(alphabet='"\\[]{}:,a\u2028\n', max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=30,
)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


def keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(keys, value.values()))
    return sum(map(keys, value)) if isinstance(value, list) else 0


def marks(value: Any) -> int:
    """Two brackets and the commas between, in everything that has them."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return 2 + max(len(value) - 1, 0) + sum(map(marks, inner))
    return 0


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON, st.booleans(), st.integers(0, 12), st.sampled_from([0, 32_768]), st.sampled_from([0, 3, 2_000]))
def test_the_limit_is_drawn_exactly_where_a_parser_would_draw_it(
    value: Any, ascii_only: bool, wrap: int, large: int, few: int
) -> None:
    for _ in range(wrap):
        value = [value]
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    with patch.object(guards, "_LARGE", large), patch.object(guards, "_FEW_QUOTES", few):
        assert not too_deep(raw, max(depth(value), 1))
        if depth(value) > 1:
            assert too_deep(raw, depth(value) - 1)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON, st.sampled_from([0, 32_768]))
def test_marks_are_counted_outside_strings_only(value: Any, large: int) -> None:
    bare = json.dumps(value, ensure_ascii=False)
    with patch.object(guards, "_LARGE", large), patch.object(guards, "_FEW_QUOTES", 2_000):
        assert count_marks(bare.encode()) == marks(value)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON)
def test_keys_are_counted_as_they_are_written(value: Any) -> None:
    assert count_keys(json.dumps(value).encode()) == keys(value)


def test_repeated_keys_are_counted_each_time() -> None:
    assert count_keys(rb'{"a":1,"a":{"b\":":":"}}') == 3


@pytest.mark.parametrize("levels", [65, 1_000, 100_000, 2_500_000])
def test_any_depth_over_the_limit_is_seen_without_recursion(levels: int) -> None:
    assert too_deep(b"[" * levels + b"]" * levels, 64)
    assert too_deep(b'{"a":' * levels + b"1" + b"}" * levels, 64)


def test_a_wide_payload_at_the_limit_passes() -> None:
    tower = b"[" * 63 + b"]" * 63
    assert not too_deep(b"[" + b",".join([tower] * 2_000) + b"]", 64)
    assert too_deep(b"[" + b",".join([tower] * 2_000) + b"]", 63)


def test_depth_that_shows_late_is_still_seen() -> None:
    assert too_deep(b"[" + b"[],[" * 40_000 + b"]" * 40_000 + b"," + b"[" * 65 + b"]" * 65 + b"]", 64)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200) | st.text(alphabet='"\\[]{}:', max_size=200).map(str.encode), st.integers(1, 500))
def test_what_is_not_json_never_raises(raw: bytes, limit: int) -> None:
    assert too_deep(raw, limit) in (True, False)
    with patch.object(guards, "_LARGE", 0):
        assert too_deep(raw, limit) in (True, False)


@pytest.mark.parametrize("count", [1, 2, 4095, 4096, 4097, 8192, 8193, 12_288, 100_001])
def test_a_quote_ends_its_string_behind_an_even_number_of_backslashes(count: int) -> None:
    first = b'"x' + b"\\" * count + b'"'
    raw = b"[%s,0]" % first
    assert strings(raw, 2) == [(1, 1 + len(first) if count % 2 == 0 else len(raw))]
