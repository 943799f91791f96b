"""Is a tool definition read for what it says, and kept as it was written?"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpproxy.catalog import listing
from mcpproxy.catalog.listing import Page, read_page, read_tools
from mcpproxy.catalog.tool import BadDefinition, Tool, parse_tool
from mcpproxy.wire.errors import InvalidAnswer


def parse(**definition: Any) -> Tool:
    return parse_tool("srv", json.dumps(definition).encode())


def test_every_part_is_read_and_the_whole_is_kept() -> None:
    raw = (
        b'{ "name":"t","title":"T","description":"d","inputSchema": {"type" :"object"} ,'
        b'"outputSchema":{"n":1.0},"annotations":{"readOnlyHint":true,"odd":[1]},"_meta":{"x":1e400},"name":"u"}'
    )
    tool = parse_tool("srv", raw)
    assert (tool.id, tool.title, tool.description) == ("srv:u", "T", "d")
    assert tool.input_schema == b'{"type" :"object"}'
    assert tool.output_schema == b'{"n":1.0}'
    assert tool.annotations == {"readOnlyHint": True, "odd": [1]}
    assert tool.definition == raw


def test_what_is_absent_or_null_has_a_plain_default() -> None:
    for tool in (
        parse(name="t"),
        parse(name="t", title=None, description=None, inputSchema=None, outputSchema=None, annotations=None),
    ):
        assert (tool.title, tool.description, tool.annotations) == ("", "", {})
        assert (tool.input_schema, tool.output_schema) == (b'{"type":"object"}', None)


def test_the_title_may_stand_in_the_annotations() -> None:
    assert parse(name="t", annotations={"title": "T"}).title == "T"
    assert parse(name="t", title="own", annotations={"title": "T"}).title == "own"
    assert parse(name="t", annotations={"title": 5}).title == ""


def test_a_tool_is_named_by_its_server_and_its_own_name_may_hold_colons() -> None:
    assert parse(name="a:b/c").id == "srv:a:b/c"


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        (b"5", "object"),
        (b"{}", "name"),
        (b'{"name":5}', "name"),
        (b'{"name":""}', "1 to 128 characters"),
        (b'{"name":"' + b"x" * 129 + b'"}', "1 to 128 characters"),
        (rb'{"name":"a\u0000b"}', "no control characters"),
        (rb'{"name":"a\u202eb"}', "no control characters"),
        (rb'{"name":"a\nb"}', "no control characters"),
        (b'{"name":"t","inputSchema":true}', "inputSchema is not an object"),
        (b'{"name":"t","outputSchema":[]}', "outputSchema is not an object"),
        (b'{"name":"t","annotations":[]}', "annotations"),
        (b'{"name":"t","description":{}}', "description"),
        (rb'{"name":"t","description":"\ud800"}', "."),
        (b'{"name":"t","description":"\xff"}', "."),
        (b'{"name":"t","x":"' + b"y" * 600_000 + b'"}', "over the limit of 524288"),
        (b'{"name":"t","inputSchema":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}", "."),
        (b'{"name":"t"', "."),
    ],
    ids=lambda value: repr(value[:32]),
)
def test_a_definition_that_cannot_be_used_says_why(definition: bytes, reason: str) -> None:
    with pytest.raises(BadDefinition, match=reason) as refused:
        parse_tool("srv", definition)
    assert str(refused.value)


@given(
    st.binary(max_size=60)
    | st.dictionaries(st.sampled_from(["name", "annotations", "title", "x"]), st.text() | st.none()).map(
        lambda definition: json.dumps(definition).encode()
    )
)
def test_no_definition_breaks_the_reader(definition: bytes) -> None:
    try:
        tool = parse_tool("srv", definition)
    except BadDefinition:
        return
    assert tool.definition == definition


def test_a_list_keeps_its_order_and_leaves_out_what_is_bad() -> None:
    tools, problems = read_tools("srv", [b'{"name":"b"}', b"5", b'{"name":"a"}', b'{"name":"b","title":"second"}'])
    assert list(tools) == ["b", "a"]
    assert tools["b"].title == ""
    assert len(problems) == 2
    assert problems[0].startswith("tool 2 of 'srv' is left out: ")
    assert problems[1] == "tool 'b' of 'srv' is listed twice; the first one counts"


def test_a_list_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_TOOLS", 3)
    tools, problems = read_tools("srv", [b'{"name":"t%d"}' % number for number in range(5)])
    assert list(tools) == ["t0", "t1", "t2"]
    assert problems == ["'srv' lists 5 tools; those after 3 are left out"]


# Pages.


def test_a_page_is_cut_into_definitions_as_they_were_written() -> None:
    page = read_page(b'{"tools":[ {"name": "a"} ,5,{"n":1.0}],"nextCursor":"c","_meta":{}}')
    assert page.definitions == [b'{"name": "a"}', b"5", b'{"n":1.0}']
    assert page.next_cursor == "c"
    assert read_page(b"{}") == Page([], None)


def test_a_lone_surrogate_costs_its_own_definition_only() -> None:
    page = read_page(rb'{"tools":[{"name":"a"},{"name":"b","description":"\ud83d"},{"n":1.0}],"nextCursor":"c"}')
    assert page == Page([b'{"name":"a"}', rb'{"name":"b","description":"\ud83d"}', b'{"n":1.0}'], "c")


def test_a_page_of_a_million_parts_is_refused_before_it_costs_memory() -> None:
    with pytest.raises(InvalidAnswer, match="more parts than any list"):
        read_page(b'{"tools":[' + b"0," * 1_000_001 + b"0]}")


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b"5",
        b"null",
        b'{"tools":5}',
        b'{"tools":null}',
        b'{"tools":[],"nextCursor":5}',
        rb'{"tools":["\ud800"],"nextCursor":5}',
        b'{"tools":[' + b"[" * 100_000 + b"]" * 100_000 + b"]}",
    ],
    ids=lambda raw: repr(raw[:32]),
)
def test_a_page_that_is_none_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidAnswer):
        read_page(raw)
