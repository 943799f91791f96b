"""`/metrics` and traces: numbers that add up, labels that nobody can blow up, spans that reach a collector."""

from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.api.serving import Rest, serving
from tests.calls.proxy import echo
from tests.support.collector import Collector, collecting

from mcpproxy.calls.meter import BUCKETS, MOST_SERVERS, OTHERS, Latency, Meter
from mcpproxy.calls.pipeline import STAGES
from mcpproxy.telemetry import traces_url

Sample = tuple[str, frozenset[tuple[str, str]]]


def scrape(rest: Rest) -> dict[Sample, float]:
    answer = rest.ask("GET", "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(samples: dict[Sample, float], name: str, **labels: str) -> float:
    return samples.get((name, frozenset(labels.items())), 0.0)


def call(rest: Rest, name: str, variant: str = "read", **arguments: Any) -> int:
    return rest.ask("POST", "tools/call", json={"name": name, "variant": variant, "arguments": arguments}).status_code


def test_calls_are_counted_by_server_variant_and_status(rest: Rest) -> None:
    call(rest, "echo:reads")
    call(rest, "echo:reads")
    call(rest, "other:deletes", "write")
    call(rest, "echo:plain", "write")
    call(rest, "echo:raw", result='{"content":[],"isError":true}')
    samples = scrape(rest)
    read, write = "call_tool_read", "call_tool_write"
    assert value(samples, "mcpproxy_calls_total", server="echo", variant=read, status="success") == 2
    assert value(samples, "mcpproxy_calls_total", server="echo", variant=read, status="error") == 1
    assert value(samples, "mcpproxy_calls_total", server="echo", variant=write, status="success") == 1
    assert value(samples, "mcpproxy_calls_total", server="other", variant=write, status="blocked") == 1
    assert value(samples, "mcpproxy_call_seconds_count", server="echo", variant=read) == 3
    assert value(samples, "mcpproxy_call_seconds_bucket", server="echo", variant=read, le="+Inf") == 3
    assert value(samples, "mcpproxy_call_seconds_sum", server="echo", variant=read) > 0


def test_a_caller_cannot_make_up_labels(rest: Rest) -> None:
    before = len(scrape(rest))
    for number in range(20):
        assert call(rest, f"made-up-{number}:x") == 404
        assert call(rest, f"echo:made-up-{number}") == 404
    samples = scrape(rest)
    assert value(samples, "mcpproxy_calls_total", server="", variant="call_tool_read", status="rejected") == 20
    assert "made-up" not in rest.ask("GET", "/metrics").text
    assert len(samples) - before < 50


def test_validation_outcomes_are_counted(rest: Rest) -> None:
    before = scrape(rest)
    call(rest, "echo:typed", result='{"content":[],"structuredContent":{"count":1}}')
    call(rest, "echo:typed", result='{"content":[],"structuredContent":{"count":-1}}')
    call(rest, "echo:typed", result='{"content":[],"isError":true}')
    after = scrape(rest)
    name = "mcpproxy_output_validations_total"
    grown = {o: value(after, name, outcome=o) - value(before, name, outcome=o) for o in ("passed", "warned", "blocked")}
    assert grown == {"passed": 1, "warned": 1, "blocked": 0}


def test_the_house_tells_of_servers_journal_and_itself(rest: Rest) -> None:
    samples = scrape(rest)
    assert value(samples, "mcpproxy_upstreams", state="ready") == 2
    assert value(samples, "mcpproxy_upstreams", state="failed") == 0
    assert value(samples, "mcpproxy_upstream_up", server="echo") == 1
    assert value(samples, "mcpproxy_tools", server="echo") > 10
    assert value(samples, "mcpproxy_journal_records_total") > 0
    assert value(samples, "mcpproxy_journal_lost_total") == 0
    assert value(samples, "mcpproxy_calls_in_flight") == 0
    assert value(samples, "process_resident_memory_bytes") > 0
    for name in ("mcpproxy_sessions", "mcpproxy_journal_waiting", "mcpproxy_journal_failing", "mcpproxy_config_error"):
        assert (name, frozenset()) in samples


def test_the_head_of_the_log_can_be_kept_elsewhere(rest: Rest) -> None:
    import json

    answer = rest.ask("GET", "/metrics").text
    head = json.loads(next(line for line in answer.splitlines() if line.startswith("# journal head: "))[16:])
    samples = scrape(rest)
    writer = head["writer"]
    assert value(samples, "mcpproxy_journal_head_position", writer=writer) >= head["position"]
    assert (head["kind"], len(head["hash"]), len(head["signature"])) == ("head", 64, 128)


def test_buckets_count_what_is_below_their_bound() -> None:
    latency = Latency()
    for seconds in (0.0, BUCKETS[0], BUCKETS[0] * 1.01, BUCKETS[-1], BUCKETS[-1] + 1):
        latency.add(seconds)
    assert latency.counts == [2, 1, *([0] * (len(BUCKETS) - 3)), 1, 1]


def test_servers_beyond_the_bound_are_counted_together() -> None:
    class Everyone:
        pool = dict.fromkeys(map(str, range(MOST_SERVERS + 5)), True)

    class SomeCall:
        variant, started, plan, view, findings = "call_tool_read", 0.0, None, None, dict[str, Any]()
        server = ""

    meter = Meter()
    for name in Everyone.pool:
        some = SomeCall()
        some.server = name
        meter.add(some, Everyone, "success")  # type: ignore[arg-type]
    assert len(meter.calls) == MOST_SERVERS + 1
    assert meter.calls[OTHERS, "call_tool_read", "success"] == 5


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


def test_a_call_is_traced_stage_by_stage_where_that_is_wanted(collector: Collector, tmp_path: Any) -> None:
    with serving(tmp_path / "data", [echo()]) as rest:
        call(rest, "echo:reads")
        assert rest.proxy.app.pipeline.tracing is None
        rest.patch("config", {"otel_endpoint": collector.url})
        body = {"name": "echo:reads", "variant": "read", "arguments": {"secret": "not for the collector"}}
        rest.post("tools/call", body, headers={"X-Request-Id": "traced-1"})
        call(rest, "echo:deletes")
        rest.patch("config", {"otel_endpoint": None})  # sends what is left
        assert rest.proxy.app.pipeline.tracing is None
        spans = collector.wait(len(STAGES) + 2)
    roots = [span for span in spans if span.name == "tools/call"]
    attributes = [{item.key: item.value.string_value for item in span.attributes} for span in roots]
    assert attributes[0] == {
        "mcpproxy.server": "echo",
        "mcpproxy.tool": "reads",
        "mcpproxy.variant": "call_tool_read",
        "mcpproxy.source": "api",
        "mcpproxy.request_id": "traced-1",
    }
    assert attributes[1]["mcpproxy.code"] == "SERVER_MISMATCH"
    children = [span.name for span in spans if span.parent_span_id == roots[0].span_id]
    assert children == [*(stage.__name__ for stage in STAGES), "close_record"]
    assert not [span for span in spans if b"not for the collector" in span.SerializeToString()]


def test_an_absent_collector_costs_no_call(tmp_path: Any) -> None:
    with serving(tmp_path / "data", [echo()], otel_endpoint="http://127.0.0.1:9") as rest:
        assert call(rest, "echo:reads") == 200


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://h:4318", "http://h:4318/v1/traces"),
        ("http://h:4318/", "http://h:4318/v1/traces"),
        ("https://h/otlp/traces", "https://h/otlp/traces"),
    ],
)
def test_the_usual_path_is_filled_in(endpoint: str, url: str) -> None:
    assert traces_url(endpoint) == url
