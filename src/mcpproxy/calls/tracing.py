"""Where does a call spend its time? One span per call and one per stage, where somebody wants to see them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from mcpproxy.asgi import Headers
    from mcpproxy.calls.model import Call, Reply

_NAMES = ("traceparent", "tracestate")


class Tracing:
    """Spans around calls. What a call carries, arguments and results, stays out of them."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._w3c = TraceContextTextMapPropagator()
        logging.getLogger("opentelemetry.trace").setLevel(logging.ERROR)  # it would tell of each odd header it is sent

    def parent_of(self, headers: Headers, meta: Mapping[str, Raw] | UnsetType = UNSET) -> Context:
        """The caller's span, where it names one: in `_meta`, which is nearer to the call, or else in its headers."""
        # Of a header that is given twice neither value counts.
        once = {name: headers.get(name.encode()) for name in _NAMES if name.encode() not in headers.repeated}
        return self._w3c.extract(_texts(meta or {}), self._w3c.extract(once, Context()))

    def handed_on(self) -> dict[str, str]:
        """What names the span that we are in to a server, so that its own come below."""
        carrier: dict[str, str] = {}
        self._w3c.inject(carrier)
        return carrier

    async def call(self, call: Call, work: Awaitable[Reply]) -> Reply:
        """Make the call within a span of its own."""
        call.trace = self.handed_on
        with self._tracer.start_as_current_span(
            "tools/call", context=call.parent, kind=SpanKind.SERVER, record_exception=False
        ) as span:
            reply = await work
            span.set_attributes(
                {
                    "mcpproxy.server": call.server,
                    "mcpproxy.tool": call.tool_name,
                    "mcpproxy.variant": call.variant,
                    "mcpproxy.source": call.caller.source,
                    "mcpproxy.request_id": call.request_id,
                }
            )
            if reply.refusal is not None:
                span.set_attribute("mcpproxy.code", reply.refusal.code)
                span.set_status(Status(StatusCode.ERROR, reply.refusal.code))
            return reply

    async def step(self, name: str, take: Callable[[], Any]) -> Any:
        """Take one step of a call within a span of its own."""
        with self._tracer.start_as_current_span(name, record_exception=False):
            outcome = take()
            return await outcome if isinstance(outcome, Awaitable) else outcome


def _texts(meta: Mapping[str, Raw]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _NAMES:
        with contextlib.suppress(KeyError, msgspec.MsgspecError, UnicodeDecodeError):
            found[name] = msgspec.json.decode(meta[name], type=str)
    return found
