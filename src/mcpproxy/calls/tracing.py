"""Where does a call spend its time? One span per call and one per stage, where somebody wants to see them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import SpanKind, Status, StatusCode

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from mcpproxy.calls.model import Call, Reply


class Tracing:
    """Spans around calls. What a call carries, arguments and results, stays out of them."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    async def call(self, call: Call, work: Awaitable[Reply]) -> Reply:
        """Make the call within a span of its own."""
        with self._tracer.start_as_current_span("tools/call", kind=SpanKind.SERVER, record_exception=False) as span:
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
