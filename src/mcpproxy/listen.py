"""Where do we listen, and whom do we let in? Sockets, the HTTP server's bounds, and the check of Host and Origin."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import uvicorn

from mcpproxy.activity.record import new_id
from mcpproxy.asgi import Headers, Work, is_local, respond
from mcpproxy.config.models import Config, is_loopback
from mcpproxy.http1 import Connection, Front

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)

DRAIN_SECONDS = 2.5
"""How long calls under way may take to finish once we are asked to stop."""
_LOOPBACK_NAMES = frozenset(("localhost", "127.0.0.1", "::1"))
_BACKLOG = 2048


class CannotListen(Exception):
    """The address is not to be had."""


class PortInUse(CannotListen):
    """Somebody else has the port."""


def parse_address(listen: str) -> tuple[str, int]:
    """Host and port of a `listen` setting; without a host it is this machine alone."""
    host, _, port = listen.rpartition(":")
    return host.strip("[]") or "127.0.0.1", int(port)


def open_socket(listen: str) -> socket.socket:
    """A listening TCP socket, or one sentence on why there is none."""
    host, port = parse_address(listen)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and host == "::":
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        opened.bind(address)
        opened.listen(_BACKLOG)
        opened.setblocking(False)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"port {port} on {host} is in use. Stop the other program, or choose another port with --listen."
            ) from None
        raise CannotListen(f"cannot listen on {listen}: {error.strerror or error}") from None
    return opened


def address_of(opened: socket.socket) -> str:
    """Where a socket really listens, for a person to open."""
    host, port = opened.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}"


class HostCheck:
    """Turns away requests under a foreign name: a web page that points its own name at us must get nowhere."""

    def __init__(self, app: Front, settings: Callable[[], Config]) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is addressed to us."""
        # No web page reaches a unix socket, so there names mean nothing.
        if scope["type"] != "http" or is_local(scope):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope["headers"])
        if not self._for_us(headers):
            message = "This host name is not served here; add it to trusted_hosts."
            await _refuse(send, headers, 421, "WRONG_HOST", message)
        elif not self._may_ask(headers, scope["path"]):
            await _refuse(send, headers, 403, "WRONG_ORIGIN", "Requests from this origin are refused.")
        else:
            await self._app(scope, receive, send)

    def take(self, headers: Headers, body: bytes, *, local: bool) -> Work | None:
        """The work on a whole POST to `/mcp`, where it is addressed to us and can be done at once."""
        if not local and not (self._for_us(headers) and self._may_ask(headers, "/mcp")):
            return None
        return self._app.take(headers, body, local=local)

    def _for_us(self, headers: Headers) -> bool:
        host = headers.get(b"host")
        return host is not None and b"host" not in headers.repeated and self._known(_hostname(host))

    def _may_ask(self, headers: Headers, path: str) -> bool:
        origin = headers.get(b"origin")
        if origin is None:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or not parts.netloc:
            return False
        # Agents that run in a page of this machine may speak MCP; everything else is for our own pages alone.
        return self._known(parts.hostname or "") if path.startswith("/mcp") else parts.netloc == headers.get(b"host")

    def _known(self, name: str) -> bool:
        config = self._settings()
        if name in _LOOPBACK_NAMES:
            return True
        listen_host = parse_address(config.listen)[0].lower() if config.listen else ""
        if name == listen_host or any(_covers(trusted.lower(), name) for trusted in config.trusted_hosts):
            return True
        # Rebinding needs a name. Where others may reach us, a bare address is us.
        return not is_loopback(config.listen) and _is_address(name)


async def _refuse(send: Send, headers: Headers, status: int, code: str, message: str) -> None:
    named = headers.request_id() or new_id()
    body = {"success": False, "error": {"code": code, "message": message}, "request_id": named}
    await respond(send, status, body, ((b"x-request-id", named.encode()),))


@lru_cache(maxsize=256)
def _hostname(host: str) -> str:
    with contextlib.suppress(ValueError):
        return (urlsplit(f"//{host}").hostname or "").lower()
    return ""


def _covers(trusted: str, name: str) -> bool:
    return name.endswith(trusted[1:]) if trusted.startswith("*.") else name == _hostname(trusted)


def _is_address(name: str) -> bool:
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(name)
        return True
    return False


class _Server(uvicorn.Server):
    """The HTTP server without its hold on signals: it would raise them again before the rest of us has stopped."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_http(
    app: Front, sockets: list[socket.socket], busy: Callable[[], int], stopping: asyncio.Event
) -> None:
    """Serve until we are asked to stop, then let the calls under way finish."""
    config = uvicorn.Config(
        _telling(app),
        http=cast("type[asyncio.Protocol]", partial(Connection, app.take)),
        ws="none",
        proxy_headers=False,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=int(DRAIN_SECONDS) + 1,
        backlog=_BACKLOG,
    )
    server = _Server(config)
    drain = asyncio.create_task(_drain(server, busy, stopping))
    try:
        await server.serve(sockets=sockets)
    finally:
        drain.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await drain


def _telling(app: ASGIApp) -> ASGIApp:
    """Log a fault of our own; the HTTP server's log, which would, is off for all that clients do wrong."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            raise

    return serve


async def _drain(server: _Server, busy: Callable[[], int], stopping: asyncio.Event) -> None:
    """Once asked to stop, wait for calls only: streams that clients merely listen on would hold us for ever."""
    await stopping.wait()
    server.should_exit = True
    loop = asyncio.get_running_loop()
    deadline = loop.time() + DRAIN_SECONDS
    while busy() and loop.time() < deadline:
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.05)  # the last answers are on their way out
    server.force_exit = True
