"""Can a person see what changed, the dangerous part first, and nothing that was not there?"""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.catalog.trust_desk import DELETE

from mcpproxy.catalog.diff import MAX_DIFFERENCES, Difference, diff, is_rewording, render
from mcpproxy.catalog.pins import canonical

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def text(value: Any) -> bytes:
    return json.dumps(value).encode()


def changed(**fields: Any) -> tuple[Difference, ...]:
    return diff(text(DELETE), text({**DELETE, **fields}))


def test_flipped_hints_come_first_and_loud() -> None:
    found = changed(description="Deletes it.", annotations={"readOnlyHint": True})
    assert [(one.path, one.kind, one.before, one.after, one.loud) for one in found[:2]] == [
        ("annotations.readOnlyHint", "changed", "false", "true", True),
        ("annotations.destructiveHint", "removed", "true", None, True),
    ]
    assert not found[2].loud
    assert render(found).splitlines()[0] == "!! ~ annotations.readOnlyHint: false -> true"


def test_a_description_is_compared_word_by_word() -> None:
    (found,) = changed(description="Deletes a repository, its forks and everything in it.")
    assert found.kind == "wording" and is_rewording((found,))
    assert render((found,)).strip() == (
        "~ description: Deletes a [-repository -]{+repository, its forks +}and everything in it."
    )


def test_a_new_parameter_is_loud_and_a_schema_is_compared_by_structure() -> None:
    schema = {
        "type": "object",
        "properties": {"repo": {"type": "integer"}, "a.b": {"type": "string"}},
        "required": ["repo", "a.b"],
    }
    found = changed(inputSchema=schema)
    assert [(one.path, one.kind, one.before, one.after, one.loud) for one in found] == [
        ("inputSchema.properties.a.b", "added", None, '{"type":"string"}', True),
        ("inputSchema.properties.repo.type", "changed", '"string"', '"integer"', False),
        ("inputSchema.required[1]", "added", None, '"a.b"', False),
    ]
    assert not is_rewording(found)


def test_an_output_schema_that_goes_is_loud() -> None:
    without = {key: value for key, value in DELETE.items() if key != "outputSchema"}
    (found,) = diff(text(DELETE), text(without))
    assert found.loud and found.kind == "removed"


def test_tricks_are_written_out() -> None:
    hostile = "Lists\u202e it.\u200b\x1b[2J\U000e0041"
    shown = render(changed(description=hostile, **{"k\u202ey": "v\u2066"}))
    assert "\\u{202e}" in shown and "\\u{200b}" in shown and "\\u{1b}" in shown and "\\u{e0041}" in shown
    assert all(char.isprintable() or char == "\n" for char in shown)


def test_numbers_are_compared_as_they_are_spelled_and_every_equal_key_is_seen() -> None:
    assert render(diff(b'{"a":1}', b'{"a":1.0}')).strip() == "~ a: 1 -> 1.0"
    assert render(diff(b'{"a":1}', b'{"a":"1"}')).strip() == '~ a: 1 -> "1"'
    assert render(diff(b'{"a":{"b":1}}', b'{"a":{"b":"1"}}')).strip() == '~ a.b: 1 -> "1"'
    assert render(diff(b'{"a":1}', b'{"a":1,"a":2}')).strip() == "+ a (again, 2): 2"


@given(JSON, JSON)
def test_there_is_a_difference_exactly_where_the_versions_differ(one: Any, other: Any) -> None:
    found = diff(text(one), text(other))
    assert bool(found) == (canonical(text(one)) != canonical(text(other)))
    assert all(char.isprintable() or char == "\n" for char in render(found))


def test_what_cannot_be_shown_in_full_is_cut_and_said_to_be() -> None:
    found = diff(text({"enum": list(range(5000))}), text({"enum": list(range(1, 5001))}))
    assert len(found) == MAX_DIFFERENCES + 1 and any("more differences" in (one.after or "") for one in found)
    assert not is_rewording(found)
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    assert len(diff(deep, b"{}")) == 1
    long_text = {"description": "a b c " * 50_000}
    other_text = {"description": "c b a " * 50_000}
    assert len(render(diff(text(long_text), text(other_text)))) < 100_000
