"""Request headers near the valid ones, as they stand on the wire."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

Head = list[tuple[bytes, bytes]]

SESSION = b"<session>"
OTHER_SESSION = b"<session of another caller>"
CLOSED_SESSION = b"<session that was closed>"
"""Filled in by whoever sends the request."""

ACCEPT = b"application/json, text/event-stream"
ODD: dict[bytes, list[bytes]] = {
    b"Content-Type": [
        b"",
        b"text/plain",
        b"application/JSON",
        b"application/json; charset=utf-8",
        b"application/json;charset=latin-1",
        b"application/json; charset=utf-16",
        b"application/json, text/plain",
        b"application/jsonp",
        b"application/json;",
        b"application/json; boundary=x",
    ],
    b"Accept": [
        b"",
        b"*/*",
        b"application/*",
        b"application/json",
        b"text/event-stream",
        b"text/html",
        b"text/event-stream,application/json",
        b"application/json;q=0, text/event-stream",
        b"APPLICATION/JSON, TEXT/EVENT-STREAM",
        b"application/jsonx, text/event-streamy",
        b"application/json;text/event-stream",
        b"application/json ,\ttext/event-stream",
        b'application/json; x="a,b", text/event-stream',
        b"*/*, application/json, text/event-stream",
    ],
    b"MCP-Protocol-Version": [
        b"",
        b"2024-11-05",
        b"2025-03-26",
        b"2025-06-18",
        b"2025-11-25",
        b"2026-07-28",
        b"2031-01-01",
        b"2026-07-28 ",
        b"2026-07-28, 2026-07-28",
        b"\xe9",
    ],
    b"Mcp-Session-Id": [SESSION, OTHER_SESSION, CLOSED_SESSION, b"", b"no-such", SESSION + b"0", b"\xe9", b"a b"],
    b"Mcp-Method": [b"", b"tools/call", b"tools/list", b"TOOLS/CALL", b"=?base64?dG9vbHMvY2FsbA==?="],
    b"Mcp-Name": [
        b"",
        b"call_tool_read",
        b"call_tool_write",
        b"call_tool_destructive",
        b"=?base64?Y2FsbF90b29sX3JlYWQ=?=",
        b"=?base64?!!?=",
        b"Call_Tool_Read",
    ],
    b"Mcp-Param-City": [b"", b"Rome", b"=?base64?UmE=?="],
    b"Mcp-Param-": [b"x"],
    b"Last-Event-ID": [b"1"],
    b"Origin": [b"http://localhost", b"null"],
    b"Content-Encoding": [b"identity", b"gzip"],
}
KNOWN = list(ODD)
_OF = {name.lower(): values for name, values in ODD.items()}


def valid_head(modern: bool, tool: bytes) -> Head:
    """The headers of a call, valid in its era."""
    common = [(b"Content-Type", b"application/json"), (b"Accept", ACCEPT)]
    if not modern:
        return [*common, (b"Mcp-Session-Id", SESSION), (b"MCP-Protocol-Version", b"2025-11-25")]
    return [*common, (b"MCP-Protocol-Version", b"2026-07-28"), (b"Mcp-Method", b"tools/call"), (b"Mcp-Name", tool)]


@st.composite
def heads(draw: DrawFn, modern: bool, tool: bytes) -> Head:
    """Headers with some things wrong, or none."""
    head = valid_head(modern, tool)
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        kind = draw(st.sampled_from(("set", "drop", "add", "twice", "case", "space")))
        at = draw(st.integers(0, len(head) - 1)) if head else 0
        if kind == "add" or not head:
            name = draw(st.sampled_from(KNOWN))
            head.insert(at, (name, draw(st.sampled_from(ODD[name]))))
            continue
        name, value = head[at]
        if kind == "drop":
            del head[at]
        elif kind == "set":
            head[at] = (name, draw(st.sampled_from(_OF[name.lower()])))
        elif kind == "twice":
            again = (name, draw(st.just(value) | st.sampled_from(_OF[name.lower()])))
            head.insert(draw(st.sampled_from((at, len(head)))), again)
        elif kind == "case":
            head[at] = (draw(st.sampled_from((name.upper(), name.lower()))), value)
        else:
            head[at] = (name, draw(st.sampled_from((b" \t" + value + b" ", value + b"\t"))))
    return head
