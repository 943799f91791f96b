"""Where spans go: a collector that keeps what it is sent."""

import contextlib
import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """An OpenTelemetry collector as far as the exporter can tell."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.came = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                found = ExportTraceServiceRequest.FromString(body)
                with collector.came:
                    for resource in found.resource_spans:
                        for scope in resource.scope_spans:
                            collector.spans += scope.spans
                    collector.came.notify_all()
                self.send_response(200 if self.path == "/v1/traces" else 404)
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self, count: int) -> list[Any]:
        """The spans, once there are so many."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.spans) >= count, 30), len(self.spans)
            return list(self.spans)


@contextlib.contextmanager
def collecting() -> Iterator[Collector]:
    """A collector for as long as the block lasts."""
    found = Collector()
    try:
        yield found
    finally:
        found.server.shutdown()
        found.server.server_close()
