"""Does anybody want to see traces? Sends spans to `otel_endpoint`; without one, nothing of it is loaded."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import mcpproxy

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from mcpproxy.calls.pipeline import Pipeline

log = logging.getLogger(__name__)

_PATH: Final = "/v1/traces"
_EXPORT_SECONDS: Final = 5
_CLOSE_SECONDS: Final = 2.0


class Telemetry:
    """The way of spans out of the house, as the configuration says at the moment."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._endpoint: str | None = None
        self._provider: TracerProvider | None = None

    async def point_at(self, endpoint: str | None) -> None:
        """Send spans there from now on, or nowhere."""
        if endpoint == self._endpoint:
            return
        before, self._provider, self._endpoint = self._provider, None, endpoint
        self._pipeline.tracing = None
        if endpoint is not None:
            try:
                provider = self._provider = await asyncio.to_thread(_provider, endpoint)
            except ImportError:
                log.warning("otel_endpoint has no effect: install the exporter with pip install 'mcpproxy[otel]'")
            else:
                from mcpproxy.calls.tracing import Tracing

                self._pipeline.tracing = Tracing(provider.get_tracer("mcpproxy", mcpproxy.__version__))
        if before is not None:
            # A collector that hangs must not hold up our end: what cannot be sent soon is let go.
            closing = threading.Thread(target=before.shutdown, name="otel-shutdown", daemon=True)
            closing.start()
            await asyncio.to_thread(closing.join, _CLOSE_SECONDS)

    async def close(self) -> None:
        """Send what is left."""
        await self.point_at(None)


def _provider(endpoint: str) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"service.name": "mcpproxy", "service.version": mcpproxy.__version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=traces_url(endpoint), timeout=_EXPORT_SECONDS)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def traces_url(endpoint: str) -> str:
    """Where traces go: the address as it is where it names a path, else the usual one below it."""
    return endpoint if urlsplit(endpoint).path.strip("/") else endpoint.rstrip("/") + _PATH
