"""What does not decode says why; a key that occurs twice is found wherever it is."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpproxy.outputs.payload import UndecodableError, decode, repeated_key

TEXT = st.text(alphabet='"\\:ab', max_size=4)
JSON = st.recursive(
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"1e400", "numbers within the range"),
        (b"[-1e999]", "numbers within the range"),
        (b"9" * 5_000, "numbers within the range"),
        (rb'"\ud800"', "surrogate escapes come in pairs"),
        (rb'{"\udfff":1}', "surrogate escapes come in pairs"),
        (b'"\xff"', "UTF-8"),
        (b'"\xed\xa0\x80"', "UTF-8"),
        (b'{"\xc0\x80":1}', "UTF-8"),
        (b"[" * 5_000 + b"]" * 5_000, "fewer levels"),
        (b"", "well-formed JSON"),
        (b"NaN", "well-formed JSON"),
        (b'{"a":1} x', "well-formed JSON"),
        (b"\xef\xbb\xbf{}", "well-formed JSON"),
        (b'"a\x00"', "well-formed JSON"),
    ],
)
def test_what_does_not_decode_says_what_was_expected(raw: bytes, expected: str) -> None:
    with pytest.raises(UndecodableError, match=expected):
        decode(raw)


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b'{"a":1,"a":2}', ([], "a")),
        (b'{"x":[{"b":1},{"b":{"a":1,"a":1}}]}', (["x", 1, "b"], "a")),
        (rb'{"a":1,"\u0061":2}', ([], "a")),
        (b'{"":1,"":2}', ([], "")),
        # One colon less by the repeat, one more by the escape: counting colons alone is fooled.
        (rb'{"a":1,"a":"\u003a"}', ([], "a")),
        (rb'[":",{"a":1,"a":2},"\u003A"]', ([1], "a")),
        (b'{"a":123456789012345678901234567890,"a":1}', ([], "a")),
    ],
)
def test_a_repeated_key_is_found(raw: bytes, found: tuple[list[str | int], str]) -> None:
    assert repeated_key(raw, decode(raw)) == found


LONG = [b'"%s"' % (b'a: \\"{,[' * 5_000), b'"%s"' % (b"x" * 50_000), b"[%s]" % b",".join([b"1"] * 30_000)]


@pytest.mark.parametrize("long", LONG, ids=["a text with marks in it", "a long text", "many numbers"])
@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b'{"l":%s,"a":1,"a":2}', ([], "a")),
        (b'{"l":1,"l":%s}', ([], "l")),
        (b'{"x":[{"b":%s},{"b":{"a":1,"a":1}}]}', (["x", 1, "b"], "a")),
        (b'{"x":{"b":{"c":1}},"l":%s,"x":{"b":{"c":1}}}', ([], "x")),
        (b'{"a":%s,"b":[{"a":1},{"a":{"a":":"}}],"c":{}}', None),
        (b'[%s,{},[],{"":"\\u003a"},"a\\\\",{"\\"":1}]', None),
    ],
)
def test_in_a_long_payload_too(raw: bytes, found: tuple[list[str | int], str] | None, long: bytes) -> None:
    assert repeated_key(raw % long, decode(raw % long)) == found


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON, st.booleans())
def test_a_payload_without_repeats_has_none(value: Any, ascii_only: bool) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).replace("a:", "a\\u003a").encode()
    assert repeated_key(raw, decode(raw)) is None
    raw = b'{"long":"%s","value":%s}' % (b"x" * 40_000, raw)
    assert repeated_key(raw, decode(raw)) is None
