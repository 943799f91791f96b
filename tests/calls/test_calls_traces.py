"""One trace from the agent through the proxy to the server, whichever way the call takes; and none of it unasked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import get_current_span
from tests.agent.pipe_agent import ENVELOPE, talking
from tests.agent.wire_client import WireClient, connected
from tests.calls.proxy import KEY, Proxy, echo, running
from tests.support.collector import Collector, collecting
from tests.support.http_servers import HttpUpstream, serving

from mcpproxy.asgi import Headers
from mcpproxy.calls.tracing import Tracing

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
AGENT = f"00-{TRACE}-{SPAN}-01"
NEARER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
LINE = '{"name":"echo:line"}'
WAYS = [(era, lane) for era in ("legacy", "modern") for lane in (True, False)]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


async def heard(
    client: WireClient, name: str, meta: dict[str, Any] | None = None, **headers: str
) -> dict[str, Any] | None:
    """Make a call that goes by this name; gives the `_meta` that the server behind the proxy got, if any."""
    body, own = client.request("call_tool_read", LINE)
    message = json.loads(body)
    if meta is not None:
        message["params"]["_meta"] = {**message["params"].get("_meta", {}), **meta}
    answer = await client.post(json.dumps(message), {**own, "X-Request-Id": name, **headers})
    return meta_of(answer.decoded["result"])


def meta_of(result: dict[str, Any]) -> dict[str, Any] | None:
    line: dict[str, Any] = json.loads(result["content"][0]["text"])
    found: dict[str, Any] | None = line["params"].get("_meta")
    return found


class Trace:
    """The spans of one call."""

    def __init__(self, spans: list[Any], name: str) -> None:
        (self.root,) = (span for span in spans if _request_id(span) == name)
        (self.asking,) = (
            span for span in spans if span.name == "ask_upstream" and span.parent_span_id == self.root.span_id
        )

    @property
    def parent(self) -> str:
        """What the call came below, as a traceparent; nothing where it began a trace."""
        parent = self.root.parent_span_id.hex()
        return f"00-{self.root.trace_id.hex()}-{parent}-01" if parent else ""

    @property
    def told(self) -> str:
        """What the server has to be told: the span in which it was asked."""
        return f"00-{self.root.trace_id.hex()}-{self.asking.span_id.hex()}-01"


def traces(collector: Collector, *names: str) -> list[Trace]:
    """The traces of the calls of these names, once their spans have come. A call's own span comes last."""
    with collector.came:
        assert collector.came.wait_for(lambda: set(names) <= set(map(_request_id, collector.spans)), 30)
        return [Trace(collector.spans, name) for name in names]


def parents(collector: Collector, *names: str) -> dict[str, str]:
    return {name: trace.parent for name, trace in zip(names, traces(collector, *names), strict=True)}


def calls(collector: Collector, count: int) -> list[Any]:
    """The spans of whole calls, once there are so many."""

    def found() -> list[Any]:
        return [span for span in collector.spans if span.name == "tools/call"]

    with collector.came:
        assert collector.came.wait_for(lambda: len(found()) >= count, 30)
        return found()


def _request_id(span: Any) -> str:
    """The name of a call, by its own span; its stages have none."""
    return next((item.value.string_value for item in span.attributes if item.key == "mcpproxy.request_id"), "")


@pytest.mark.anyio
@pytest.mark.parametrize(("era", "lane"), WAYS)
async def test_an_agents_trace_goes_on_through_the_proxy_to_the_server(
    era: str, lane: bool, collector: Collector, tmp_path: Path
) -> None:
    async with (
        running(tmp_path, [echo()], otel_endpoint=collector.url) as proxy,
        connected(proxy.mcp, era=era, lane=lane) as agent,
    ):
        met = {
            "in a header": await heard(agent, "header", traceparent=AGENT, tracestate="vendor=1"),
            "in _meta": await heard(agent, "meta", {"traceparent": AGENT, "tracestate": "vendor=1"}),
            "in both": await heard(agent, "both", {"traceparent": NEARER}, traceparent=AGENT, tracestate="vendor=1"),
            "nowhere": await heard(agent, "none"),
        }
    header, meta, both, none = traces(collector, "header", "meta", "both", "none")
    assert [found.parent for found in (header, meta, both, none)] == [AGENT, AGENT, NEARER, ""]
    assert met["in a header"] == {"traceparent": header.told, "tracestate": "vendor=1"}
    assert met["in _meta"] == {"traceparent": meta.told, "tracestate": "vendor=1"}
    assert met["in both"] == {"traceparent": both.told}
    assert met["nowhere"] is not None
    assert met["nowhere"]["traceparent"][:-2] == none.told[:-2]  # flags of a trace of our own are the library's


@pytest.mark.anyio
async def test_a_traceparent_that_is_none_is_as_good_as_not_there(
    collector: Collector, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = {
        "text": "nonsense",
        "zeros": f"00-{'0' * 32}-{SPAN}-01",
        "no-span": f"00-{TRACE}-{'0' * 16}-01",
        "capitals": AGENT.upper(),
        "version": AGENT.replace("00-", "ff-", 1),
        "longer": f"{AGENT}-more",
        "endless": AGENT + "0" * 5000,
    }
    odd: dict[str, Any] = {"number": 17, "list": [AGENT], "null": None}
    async with (
        running(tmp_path, [echo()], otel_endpoint=collector.url) as proxy,
        connected(proxy.mcp, era="legacy", lane=True) as agent,
    ):
        for name, value in bad.items():
            await heard(agent, name, traceparent=value)
        met = await heard(agent, "bad-state", traceparent=AGENT, tracestate="no state at all")
        odd |= {f"{name}-in-meta": value for name, value in bad.items()}
        for name, thing in odd.items():
            await heard(agent, name, {"traceparent": thing}, traceparent=AGENT)
    assert parents(collector, *bad) == dict.fromkeys(bad, "")
    assert parents(collector, *odd) == dict.fromkeys(odd, AGENT)
    assert met == {"traceparent": traces(collector, "bad-state")[0].told}
    assert "trace" not in caplog.text  # an agent cannot fill our log with it


def test_of_two_traceparents_neither_counts() -> None:
    tracing = Tracing(TracerProvider(shutdown_on_exit=False).get_tracer("test"))
    once, twice = ([(b"traceparent", AGENT.encode())] * times for times in (1, 2))
    assert get_current_span(tracing.parent_of(Headers(once))).get_span_context().is_valid
    assert not get_current_span(tracing.parent_of(Headers(twice))).get_span_context().is_valid


@pytest.mark.anyio
async def test_what_the_agent_does_not_sample_is_not_sampled_here(collector: Collector, tmp_path: Path) -> None:
    async with (
        running(tmp_path, [echo()], otel_endpoint=collector.url) as proxy,
        connected(proxy.mcp, era="legacy", lane=True) as agent,
    ):
        met = await heard(agent, "unsampled", traceparent=f"00-{TRACE}-{SPAN}-00")
        await heard(agent, "sampled", traceparent=AGENT)
    assert met is not None
    assert met["traceparent"].startswith(f"00-{TRACE}-")
    assert met["traceparent"].endswith("-00")
    traces(collector, "sampled")
    assert {_request_id(span) for span in collector.spans} == {"", "sampled"}


@pytest.mark.anyio
async def test_a_rest_call_takes_up_the_trace_of_its_headers(collector: Collector, tmp_path: Path) -> None:
    async with running(tmp_path, [echo()], otel_endpoint=collector.url) as proxy:
        kinds = {"plain": "*/*", "stream": "text/event-stream"}
        met = [await over_rest(proxy, name, accept) for name, accept in kinds.items()]
    for trace, found in zip(traces(collector, "plain", "stream"), met, strict=True):
        assert trace.parent == AGENT
        assert found is not None
        found.pop("progressToken", None)  # the stream asks for progress
        assert found == {"traceparent": trace.told, "tracestate": "vendor=1"}


async def over_rest(proxy: Proxy, name: str, accept: str) -> dict[str, Any] | None:
    headers = {"X-API-Key": KEY, "Accept": accept, "X-Request-Id": name, "traceparent": AGENT, "tracestate": "vendor=1"}
    body = {"name": "echo:line", "variant": "read"}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.post(f"{proxy.url}/api/v1/tools/call", json=body) as answer,
    ):
        text = await answer.text()
    return meta_of(json.loads(text[text.index("{") :])["data"])


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_an_agent_on_stdio_names_its_trace_in_meta(era: str, collector: Collector, tmp_path: Path) -> None:
    async with running(tmp_path, [echo()], otel_endpoint=collector.url) as proxy, talking(proxy) as agent:
        await agent.greet(era)
        meta = {**(ENVELOPE if era == "modern" else {}), "traceparent": AGENT}
        params = f'{{"name":"call_tool_read","arguments":{LINE},"_meta":{json.dumps(meta)}}}'
        met = []
        for _ in range(2):  # the second one by the lane
            agent.send("tools/call", params)
            met.append(meta_of(json.loads(await agent.answer())["result"]))
    ours = [span for span in calls(collector, 3) if span.parent_span_id.hex() == SPAN]
    assert [span.trace_id.hex() for span in ours] == [TRACE, TRACE]
    assert met == [{"traceparent": trace.told} for trace in traces(collector, *(_request_id(span) for span in ours))]


@pytest.mark.anyio
@pytest.mark.parametrize("traced", [True, False])
async def test_a_server_over_http_gets_our_span_in_a_header_too_and_only_where_calls_are_traced(
    traced: bool, collector: Collector, tmp_path: Path
) -> None:
    upstream = HttpUpstream()
    async with serving(upstream) as url:
        settings = {"otel_endpoint": collector.url} if traced else {}
        async with (
            running(tmp_path, [{"name": "far", "url": url}], **settings) as proxy,
            connected(proxy.mcp, era="legacy", lane=True) as agent,
        ):
            body, _ = agent.request("call_tool_write", '{"name":"far:echo","intent":{"operation_type":"write"}}')
            await agent.post(body, {"X-Request-Id": "far", "traceparent": AGENT, "tracestate": "vendor=1"})
    (seen,) = upstream.messages("tools/call")
    named = {name: seen.headers[name] for name in ("traceparent", "tracestate") if name in seen.headers}
    if traced:
        (trace,) = traces(collector, "far")
        assert trace.parent == AGENT
        assert named == seen.message["params"]["_meta"] == {"traceparent": trace.told, "tracestate": "vendor=1"}
    else:
        assert not named
        assert "_meta" not in seen.message["params"]


@pytest.mark.anyio
@pytest.mark.parametrize(("era", "lane"), WAYS)
async def test_where_calls_are_not_traced_nothing_is_handed_on(era: str, lane: bool, tmp_path: Path) -> None:
    async with running(tmp_path, [echo()]) as proxy, connected(proxy.mcp, era=era, lane=lane) as agent:
        assert await heard(agent, "header", traceparent=AGENT) is None
        assert await heard(agent, "meta", {"traceparent": AGENT, "tracestate": "vendor=1"}) is None
        assert await over_rest(proxy, "rest", "*/*") is None
