"""Request bodies near the valid one: what a strange, broken or hostile client may post.

A body is a tree of raw pieces, so that it can hold what no encoder would write: a member twice, odd numbers, escapes
in names, white space anywhere. Most draws make one or two changes, for far from the valid one both lanes say the same.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

Node = Any
"""A raw piece of JSON text, or the members of an object: a list of [name, node] with the name raw as well."""

VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT = "io.modelcontextprotocol/clientInfo"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"

NUMBERS = [
    *"0 -0 1 -1 7 1.0 1e2 1E5 -0.0 0.10 1e400 -1e400 1e-400 01 +1 1. .5 0x1 NaN -Infinity".split(),
    *"9007199254740993 9223372036854775807 9223372036854775808 -9223372036854775809 18446744073709551616".split(),
    "9" * 30,
    "9" * 400,
    "9" * 5000,
    "0." + "1" * 400,
]
TEXTS = [
    '""',
    '"x"',
    '"1"',
    '"\\u0000"',
    '"\\u0041"',
    '"\\/"',
    '"\\ud83d\\ude00"',
    '"\\ud83d"',
    '"\\ude00"',
    '"\\ude00\\ud83d"',
    '"\\ud83d\\u0041"',
    '"\\uD83D\\n"',
    '"\\u12"',
    '"\\x41"',
    '"\\u2028"',
    '"\u2028"',
    '"é😀"',
    '"\x01"',
    '"\t"',
    '"\n"',
    '"\x7f"',
    '"unfinished',
    "'single'",
    '"' + "x" * 70_000 + '"',
]
OTHERS = [
    *"null true false {} [] [{}] [1,2] [1,] [,] {1:2} True nul undefined".split(),
    '{"a":1,"a":2}',
    '{"a":1,}',
    '{"":null}',
    "/*x*/1",
    "",
    " ",
]
DEEP = [
    ("[" * depth + "]" * depth) if square else ('{"a":' * depth + "1" + "}" * depth)
    for depth in (20, 120, 190, 198, 200, 202, 260, 500, 900, 1000, 1100, 5000)
    for square in (True, False)
]
NAMES = [
    *"jsonrpc id method params name arguments _meta progressToken task args args_json intent x".split(),
    *"Method NAME Arguments result error meta requestId".split(),
    VERSION,
    CLIENT,
    CAPABILITIES,
]
CALLS = ["call_tool_read", "call_tool_write", "call_tool_destructive"]
METHODS = [
    "tools/call",
    "tools/list",
    "ping",
    "initialize",
    "Tools/Call",
    "tools/call ",
    "notifications/cancelled",
    "x",
]

odd: SearchStrategy[str] = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.sampled_from(OTHERS), st.sampled_from(DEEP)
)
tame: SearchStrategy[str] = st.sampled_from(["1", '"x"', "null", "{}", "true", "1.5", "[]"])
values: SearchStrategy[str] = odd | tame


def quoted(text: str) -> str:
    """A name or a text as a raw piece; none of ours needs escapes."""
    return f'"{text}"'


def members(**given: Node) -> list[list[Node]]:
    """An object of these members."""
    return [[quoted(name), value] for name, value in given.items()]


def envelope(modern: bool, name: str, arguments: Node, more: list[list[Node]]) -> list[list[Node]]:
    """The body of a call, valid in its era; `more` goes into its `_meta`."""
    meta = list(more)
    if modern:
        meta += [
            [quoted(VERSION), '"2026-07-28"'],
            [quoted(CLIENT), '{"name":"fuzz","version":"1"}'],
            [quoted(CAPABILITIES), "{}"],
        ]
    params = members(name=quoted(name), arguments=arguments)
    if meta:
        params.append([quoted("_meta"), meta])
    return members(jsonrpc='"2.0"', id="1", method='"tools/call"', params=params)


def objects(node: Node) -> list[list[list[Node]]]:
    """Every object of a tree, the outermost first."""
    if not isinstance(node, list):
        return []
    return [node, *(found for _, value in node for found in objects(value))]


def render(node: Node, space: str) -> str:
    """A tree as text."""
    if not isinstance(node, list):
        return str(node)
    inner = f",{space}".join(f"{name}{space}:{space}{render(value, space)}" for name, value in node)
    return f"{{{space}{inner}{space}}}"


def escaped(raw: str) -> str:
    """The same text with its first letter written as an escape."""
    return f'"\\u{ord(raw[1]):04x}{raw[2:]}' if len(raw) > 2 and raw[1].isalpha() else raw


@st.composite
def bodies(draw: DrawFn, modern: bool, tool: str) -> bytes:
    """A body with some things wrong, or none."""
    more: list[list[Node]] = []
    if draw(st.booleans()):
        more = [['"progressToken"', draw(st.sampled_from(['"t"', "5"]) | values)]]
    args = members(a=draw(tame), b=draw(tame))
    arguments = members(name='"echo:line"', args=args)
    tree = envelope(modern, tool, arguments, more)
    for _ in range(draw(st.integers(0, 3))):
        change(draw, tree)
    space = draw(st.sampled_from(["", "", "", " ", "\n", "\t\r\n "]))
    body = render(tree, space).encode("utf-8", "surrogatepass")
    return damaged(draw, body) if draw(st.integers(0, 7)) == 0 else body


def change(draw: DrawFn, tree: Node) -> None:
    """Do something odd to one object of the tree."""
    chosen = draw(st.sampled_from(objects(tree)))
    at = draw(st.integers(0, len(chosen) - 1)) if chosen else 0
    kind = draw(st.sampled_from(("set", "set", "set", "drop", "twice", "extra", "escape", "rename", "move")))
    if kind == "extra" or not chosen:
        chosen.insert(at, [quoted(draw(st.sampled_from(NAMES))), draw(values)])
    elif kind == "set":
        chosen[at][1] = draw(meant_for(chosen[at][0]))
    elif kind == "drop":
        del chosen[at]
    elif kind == "twice":
        again = [chosen[at][0], draw(st.just(chosen[at][1]) | meant_for(chosen[at][0]))]
        chosen.insert(draw(st.sampled_from((at, len(chosen)))), again)
    elif kind == "escape":
        chosen[at][0] = escaped(chosen[at][0])
    elif kind == "rename":
        chosen[at][0] = quoted(draw(st.sampled_from(NAMES)))
    else:
        chosen.append(chosen.pop(at))


def meant_for(name: str) -> SearchStrategy[str]:
    """Values for one member: odd ones, and those that would be right elsewhere."""
    near = {
        '"method"': [quoted(method) for method in METHODS],
        '"name"': [*map(quoted, CALLS), '"call_tool_\\u0072ead"', '"call_tool"', '"retrieve_tools"', '"echo:none"'],
        '"jsonrpc"': ['"2.0"', '"\\u0032.0"', '"1.0"', "2.0", '"2.0 "'],
        '"arguments"': ["{}", '{"name":"echo:none"}', '{"name":"echo:none","args":{"x":1.0}}', '[{"name":"x"}]'],
        '"_meta"': ["null", "{}", "[]", '{"progressToken":"t"}'],
        quoted(VERSION): ['"2026-07-28"', '"2025-11-25"', '"2026-07-2\\u0038"', '"2031-01-01"', ' "2026-07-28" '],
        quoted(CLIENT): ['{"name":"fuzz"}', '{"name":1,"version":"1"}', '{"name":"x","version":"1","title":7}', "{}"],
        quoted(CAPABILITIES): ['{"sampling":{}}', '{"sampling":1}', '{"elicitation":{"form":{}}}', '{"x":1e400}'],
    }.get(name)
    return st.sampled_from(near) | values if near else values


def damaged(draw: DrawFn, body: bytes) -> bytes:
    """The same bytes with a hole, a foreign byte, a mark before them or something around them."""
    at = draw(st.integers(0, len(body)))
    kind = draw(st.sampled_from(("cut", "hole", "byte", "mark", "batch", "behind", "twice", "wide")))
    if kind == "cut":
        return body[:at]
    if kind == "hole":
        return body[:at] + body[at + draw(st.integers(1, 3)) :]
    if kind == "byte":
        foreign = draw(
            st.sampled_from([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\0", b'"', b"}", b"\\", b",", b"\xf4\x90\x80\x80"])
        )
        return body[:at] + foreign + body[at:]
    if kind == "mark":
        return b"\xef\xbb\xbf" + body
    if kind == "batch":
        return b"[" + body + draw(st.sampled_from([b"]", b"," + body + b"]", b",]"]))
    if kind == "behind":
        return body + draw(st.sampled_from([b" x", b"\0", b" ", b"\n\n", b"{}", b"]"]))
    if kind == "twice":
        return body + body
    return body.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass")
