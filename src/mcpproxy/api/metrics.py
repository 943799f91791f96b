"""`/metrics`: how is it going, in Prometheus' words? Everything is read when it is asked for, nothing is kept twice.

Labels are servers, variants, states and statuses, and nothing that a caller can make up. The head of the activity log
changes with every signature, so its hash is no label: it stands in a comment, whole, and as a number of 52 bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate

import msgspec
from fastapi import Request
from fastapi.responses import Response
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

import mcpproxy
from mcpproxy.activity.chain import Statement
from mcpproxy.api.services import Rooms, Services, turns
from mcpproxy.calls.meter import BUCKETS, Meter
from mcpproxy.upstream.server import State

_MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (*(str(bound) for bound in BUCKETS), "+Inf")


async def metrics(request: Request, rooms: Rooms) -> Response:
    """The numbers of this process."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_House(rooms, turns(request).streams.taken))
    ProcessCollector(registry=registry)
    head = rooms.house.journal.stats().head
    return Response(generate_latest(registry) + _comment(head), media_type=_MEDIA)


class _House(Collector):
    """Asks every room for its numbers."""

    def __init__(self, rooms: Services, streams: int) -> None:
        self._rooms = rooms
        self._streams = streams

    def collect(self) -> Iterator[Metric]:
        """One family after the other."""
        rooms = self._rooms
        yield _gauge("mcpproxy_info", "Version of mcpproxy", ("version",), [((mcpproxy.__version__,), 1)])
        yield _one("mcpproxy_start_time_seconds", "When this process started", rooms.started_at)
        yield from _calls(rooms.pipeline.meter)
        yield _one("mcpproxy_calls_in_flight", "Calls under way", rooms.pipeline.in_flight)
        yield _one("mcpproxy_sessions", "Open MCP sessions", rooms.sessions())
        yield _one("mcpproxy_event_streams", "Open event streams", self._streams)
        yield _one("mcpproxy_agent_tokens", "Agent tokens, expired ones included", sum(1 for _ in rooms.tokens))
        yield from _upstreams(rooms)
        yield from _journal(rooms)
        error = rooms.config_error() is not None
        yield _one("mcpproxy_config_error", "1 where the changed configuration does not load", int(error))


def _one(name: str, text: str, value: float) -> Metric:
    return _gauge(name, text, (), [((), value)])


def _gauge(name: str, text: str, labels: tuple[str, ...], samples: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _counter(name: str, text: str, labels: tuple[str, ...], samples: Iterable[tuple[tuple[str, ...], int]]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _calls(meter: Meter) -> Iterator[Metric]:
    kinds = ("server", "variant", "status")
    yield _counter("mcpproxy_calls", "Calls of tools", kinds, list(meter.calls.items()))
    latency = HistogramMetricFamily("mcpproxy_call_seconds", "How long calls took", labels=("server", "variant"))
    for kind, found in list(meter.latency.items()):
        buckets = list(zip(_BOUNDS, map(float, accumulate(found.counts)), strict=True))
        latency.add_metric(kind, buckets, sum_value=found.seconds)
    yield latency
    outcomes = [((outcome,), count) for outcome, count in meter.outputs.items()]
    yield _counter("mcpproxy_output_validations", "Results held against the declared schema", ("outcome",), outcomes)


def _upstreams(rooms: Services) -> Iterator[Metric]:
    pool = list(rooms.house.pool)
    states = Counter(upstream.state for upstream in pool)
    yield _gauge("mcpproxy_upstreams", "Servers by state", ("state",), [((str(s),), states[s]) for s in State])
    ready = [((upstream.name,), int(upstream.state is State.READY)) for upstream in pool]
    yield _gauge("mcpproxy_upstream_up", "1 where a server is ready", ("server",), ready)
    listings = rooms.house.catalog.snapshot.listings
    tools = [((name,), len(listing.tools)) for name, listing in listings.items()]
    yield _gauge("mcpproxy_tools", "Tools that a server has listed", ("server",), tools)


def _journal(rooms: Services) -> Iterator[Metric]:
    stats = rooms.house.journal.stats()
    yield _counter("mcpproxy_journal_records", "Records written", (), [((), stats.written)])
    yield _counter("mcpproxy_journal_lost", "Records that could not be written", (), [((), stats.lost)])
    yield _one("mcpproxy_journal_waiting", "Jobs that wait for the journal", stats.waiting)
    yield _one("mcpproxy_journal_failing", "1 where the last attempt to write failed", int(stats.failure is not None))
    if stats.head is not None:
        label = (stats.head.writer,)
        position, number = stats.head.position, int(stats.head.hash.hex()[:13], 16)
        yield _gauge("mcpproxy_journal_head_position", "Signed length of the chain", ("writer",), [(label, position)])
        yield _gauge("mcpproxy_journal_head_hash", "First 52 bits of its hash", ("writer",), [(label, number)])


def _comment(head: Statement | None) -> bytes:
    if head is None:
        return b""
    return b"# journal head: %s\n" % msgspec.json.encode(head.shown())
