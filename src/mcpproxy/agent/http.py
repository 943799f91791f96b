"""How do agents reach us over HTTP? `/mcp`: who it is, whose session it is, and then the lane or the SDK."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from msgspec import Struct

from mcpproxy.access.identify import Gate, Identity, Unidentified
from mcpproxy.activity.record import new_id
from mcpproxy.agent.lane import Arrived, Lane
from mcpproxy.agent.peek import Carried, peek
from mcpproxy.agent.sdk import MARK, AgentServer, Placeholders
from mcpproxy.agent.sessions import Session, Sessions
from mcpproxy.asgi import (
    AsgiReply,
    BodyTooLarge,
    BodyTooSlow,
    Gone,
    Headers,
    Work,
    is_local,
    read_body,
    replay,
    respond,
)
from mcpproxy.calls.model import Caller
from mcpproxy.config.models import Config

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

log = logging.getLogger(__name__)

_SWEEP_EVERY = 30.0
_NO_SESSION = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Session not found"}}
_TWO_SESSIONS = {
    "jsonrpc": "2.0",
    "id": None,
    "error": {"code": -32600, "message": "Mcp-Session-Id is given more than once"},
}


class _NoSession(Exception):
    """The request names a session that it cannot have."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


class HttpIncoming(Struct):
    """What the HTTP face knows about a request, for the SDK's handlers."""

    caller: Caller
    request_id: str
    arguments: bytes = b"{}"
    gone: asyncio.Event | None = None
    carried: Carried | None = None


def incoming_of(request: Any) -> HttpIncoming:
    """What this face noted about the request that the SDK hands to a handler."""
    found = request.scope["mcpproxy.incoming"]
    assert isinstance(found, HttpIncoming)
    return found


class HttpFace:
    """The ASGI application behind `/mcp`."""

    def __init__(
        self,
        *,
        server: AgentServer,
        lane: Lane,
        placeholders: Placeholders,
        gate: Gate,
        settings: Callable[[], Config],
        auth_required: Callable[[], bool],
    ) -> None:
        self._server = server
        self._lane = lane
        self._placeholders = placeholders
        self._gate = gate
        self._settings = settings
        self._auth_required = auth_required
        self.sessions = Sessions()
        # Host, Origin and the size of the body are checked before the SDK is asked.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        manager = partial(
            StreamableHTTPSessionManager, server, security_settings=security, max_request_body_size=sys.maxsize
        )
        self._stateful = manager(session_idle_timeout=None, max_sessions=None)
        self._stateless = manager(stateless=True)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve for as long as the block lasts."""
        async with self._stateful.run(), self._stateless.run():
            sweeper = asyncio.create_task(self._sweep())
            try:
                yield
            finally:
                sweeper.cancel()
                await asyncio.wait({sweeper})
                self._server.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = Headers(scope["headers"])
        try:
            identity = self._identify(headers, local=is_local(scope))
        except Unidentified as error:
            challenge = ((b"www-authenticate", b'Bearer realm="mcpproxy"'),) if error.status == 401 else ()
            await respond(send, error.status, {"error": str(error)}, challenge)
            return
        body = b""
        if scope["method"] == "POST":
            try:
                body = await read_body(receive, headers, self._settings().max_request_bytes)
            except (BodyTooLarge, BodyTooSlow) as error:
                await respond(send, error.status, {"error": str(error)})
                return
            except Gone:
                return
        try:
            arrived = self._arrived(headers, body, identity)
        except _NoSession as error:
            await respond(send, error.status, error.body)
            return
        await self._in_session(arrived.session, self._serve(arrived, scope, receive, send))

    def take(self, headers: Headers, body: bytes, *, local: bool) -> Work | None:
        """The work on a whole request that the lane takes; None where it has to go the long way, for good or ill."""
        if len(body) > self._settings().max_request_bytes:
            return None
        try:
            arrived = self._arrived(headers, body, self._identify(headers, local=local))
        except (Unidentified, _NoSession):
            return None
        taken = self._lane.read(arrived)
        if taken is None:
            return None
        return lambda reply: self._in_session(arrived.session, self._lane.run(taken, reply))

    def _identify(self, headers: Headers, *, local: bool) -> Identity:
        return self._gate.identify(
            headers.get(b"authorization"), headers.get(b"x-api-key"), required=self._auth_required(), local=local
        )

    def _arrived(self, headers: Headers, body: bytes, identity: Identity) -> Arrived:
        if b"mcp-session-id" in headers.repeated:
            # We would look at the one and the SDK at the other: nobody gets at a session by naming two.
            raise _NoSession(400, _TWO_SESSIONS)
        session_id = headers.get(b"mcp-session-id")
        session = self.sessions.get(session_id) if session_id is not None else None
        foreign = session is not None and session.owner != identity.key
        if foreign or (session is None and session_id is not None and _of_the_handshake_era(headers)):
            # A session of somebody else is answered exactly as if it did not exist.
            raise _NoSession(404, _NO_SESSION)
        return Arrived(headers, body, self._caller(identity, session), headers.request_id() or new_id(), session)

    async def _in_session(self, session: Session | None, work: Coroutine[Any, Any, None]) -> None:
        if session is None:
            await work
            return
        self.sessions.begin(session)
        try:
            await work
        finally:
            self.sessions.end(session)

    def _caller(self, identity: Identity, session: Session | None) -> Caller:
        return Caller(
            source="mcp",
            key=identity.key,
            scope=identity.scope,
            admin=identity.admin,
            session_id=session.id if session is not None else None,
            client_name=session.client_name if session is not None else None,
            modern=session is None,
        )

    async def _serve(self, arrived: Arrived, scope: Scope, receive: Receive, send: Send) -> None:
        taken = self._lane.read(arrived) if arrived.body else None
        if taken is not None:
            await self._lane.run(taken, AsgiReply(receive, send))
            return
        headers, body, caller, session = arrived.headers, arrived.body, arrived.caller, arrived.session
        seen = peek(body)
        if _of_the_handshake_era(headers):
            caller = msgspec.structs.replace(caller, modern=False)
        if session is None:
            caller = msgspec.structs.replace(caller, client_name=seen.client_name)
        gone = asyncio.Event()
        carried = (headers, seen.meta)
        scope["mcpproxy.incoming"] = HttpIncoming(caller, arrived.request_id, seen.arguments, gone, carried)
        if seen.method == "notifications/cancelled" and session is not None and seen.request_id is not None:
            self._lane.cancel(session.id, seen.request_id)
        scope["headers"] = list(_for_the_sdk(scope["headers"], session))
        # Without a session only a handshake opens one; any other message of that era stands for itself.
        alone = scope["method"] == "POST" and headers.get(b"mcp-session-id") is None
        manager = self._stateless if alone and seen.method not in (None, "initialize") else self._stateful
        opened = False

        def noted(status: int, inner: str | None) -> str | None:
            """Before the answer leaves: the client's next message may come in at once."""
            nonlocal opened
            if alone and status == 200 and inner is not None:
                # The SDK took it for a handshake, whatever it looked like to us.
                opened = True
                return self.sessions.add(inner, caller.key, seen.client_name).id
            if session is not None and (status == 404 or (scope["method"] == "DELETE" and status == 200)):
                self._forget(session)
            return session.id if session is not None and inner is not None else None

        writer = _Writer(send, self._placeholders, noted)
        source = replay(body, receive) if scope["method"] == "POST" else receive
        await manager.handle_request(scope, _noticing(source, gone), writer)
        if opened:
            await self._close_overdue()
        self._lane.learn(headers, body, writer.status)

    async def close_sessions(self, owner: str) -> None:
        """End every session of a caller that is no longer let in."""
        for session in self.sessions:
            if session.owner == owner:
                self._forget(session)
                await self._delete(session)

    def _forget(self, session: Session) -> None:
        self.sessions.forget(session.id)
        self._server.forget(session.id)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_EVERY)
            await self._close_overdue()

    async def _close_overdue(self) -> None:
        for session in self.sessions.overdue(self._settings().max_sessions):
            if session.in_use or self.sessions.get(session.id) is None:
                continue  # its client came back, or it is closed already
            self._forget(session)
            await self._delete(session)
            await asyncio.sleep(0)  # thousands may be due at once, and others wait for their answers

    async def _delete(self, session: Session) -> None:
        """End a session in the SDK the way a client would."""
        scope: Scope = {
            "type": "http",
            "method": "DELETE",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "http_version": "1.1",
            "scheme": "http",
            "headers": [
                (b"mcp-session-id", session.inner.encode()),
                (b"accept", b"application/json, text/event-stream"),
            ],
        }

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def ignore(message: Message) -> None:
            return None

        try:
            await self._stateful.handle_request(scope, receive, ignore)
        except Exception as error:  # the session is gone for us either way
            log.debug("session %s did not end cleanly: %s", session.id, error)


def _of_the_handshake_era(headers: Headers) -> bool:
    version = headers.get(b"mcp-protocol-version")
    return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS


def _for_the_sdk(headers: Iterable[tuple[bytes, bytes]], session: Session | None) -> Iterator[tuple[bytes, bytes]]:
    """Every header as we read it ourselves; a session goes under the SDK's own name for it."""
    for name, value in headers:
        if name != b"mcp-session-id":
            yield name, value.strip(b" \t")
        elif session is not None:
            yield name, session.inner.encode()


def _noticing(receive: Receive, gone: asyncio.Event) -> Receive:
    """The same `receive`, which notes when the client has left."""

    async def noticed() -> Message:
        message = await receive()
        if message["type"] == "http.disconnect":
            gone.set()
        return message

    return noticed


class _Writer:
    """Passes an answer of the SDK on, with raw results where placeholders stand."""

    def __init__(
        self, send: Send, placeholders: Placeholders, on_start: Callable[[int, str | None], str | None]
    ) -> None:
        self._send = send
        self._placeholders = placeholders
        self._on_start = on_start
        """Told the status and the SDK's name for the session, where it gives one; returns the client's name for it."""
        self._start: Message | None = None
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            named = dict(message.get("headers", ()))
            inner = named.pop(b"mcp-session-id", None)
            session_id = self._on_start(self.status, inner.decode("latin-1") if inner is not None else None)
            if session_id is not None:
                named[b"mcp-session-id"] = session_id.encode()
            message = {**message, "headers": list(named.items())}
            if named.get(b"content-type", b"").startswith(b"application/json"):
                self._start = message  # its content-length is known only once the body is
                return
        elif message["type"] == "http.response.body":
            body = message.get("body", b"")
            if MARK in body:
                body = self._restore(body)
                message = {**message, "body": body}
            if self._start is not None:
                start, self._start = self._start, None
                await self._send(_with_length(start, len(body)) if not message.get("more_body") else start)
        await self._send(message)

    def _restore(self, body: bytes) -> bytes:
        if self._start is not None:
            return self._placeholders.restore(body)
        lines = body.split(b"\r\n")
        return b"\r\n".join(
            b"data: " + self._placeholders.restore(line[6:]).replace(b"\n", b" ").replace(b"\r", b" ")
            if line.startswith(b"data: ")
            else line
            for line in lines
        )


def _with_length(start: Message, length: int) -> Message:
    headers = [(name, value) for name, value in start.get("headers", ()) if name != b"content-length"]
    return {**start, "headers": [*headers, (b"content-length", str(length).encode())]}
