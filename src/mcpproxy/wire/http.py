"""How do we talk to a streamable-HTTP upstream? One POST a message; the answer is JSON or a stream of events.

A call is never sent twice: not on a redirect, not on a lost connection. Only a refusal that proves it was not
processed (401, an unknown session) may be followed by another try.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Protocol

import aiohttp

from mcpproxy.wire import envelope
from mcpproxy.wire.channel import Channel, Pending
from mcpproxy.wire.envelope import RequestId
from mcpproxy.wire.errors import (
    AnswerTooLarge,
    ChannelClosed,
    HttpStatus,
    InvalidAnswer,
    RpcError,
    SessionExpired,
    Unauthorized,
    WireError,
)
from mcpproxy.wire.events import EventParser

log = logging.getLogger(__name__)

_MAX_ERROR_BODY = 65_536
_MAX_CONNECTIONS = 512
_RESUMES = 5
_SESSION_HEADER = "Mcp-Session-Id"
_JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Credentials(Protocol):
    """Who we are to an upstream that asks for a login."""

    async def header(self) -> str | None:
        """The Authorization header, or None where there is none yet."""

    async def unauthorized(self, challenge: str | None) -> bool:
        """The upstream refused it: True where another try makes sense."""


def client_session(headers: Mapping[str, str]) -> aiohttp.ClientSession:
    """A warm pool for one upstream and one identity."""
    # Most servers drop an idle connection after five seconds. We drop it first, since a POST that meets a closing
    # connection cannot be sent again.
    connector = aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, keepalive_timeout=4)
    return aiohttp.ClientSession(
        connector=connector,
        headers=dict(headers),
        timeout=aiohttp.ClientTimeout(total=None, connect=30),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=True,
    )


class HttpChannel(Channel):
    """Streamable HTTP, in both protocol eras."""

    kind = "http"

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        max_result_bytes: int,
        credentials: Credentials | None = None,
    ) -> None:
        super().__init__(max_result_bytes=max_result_bytes)
        self.url = url
        self.session_id: str | None = None
        self.modern = False
        """Whether the upstream speaks 2026-07-28, where closing a stream is how a call is cancelled."""
        self._credentials = credentials
        self._http = client_session(headers)

    @contextlib.asynccontextmanager
    async def _request(
        self, method: str, body: bytes | None, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        for attempt in (1, 2):
            async with self._open(method, body, headers) as response:
                if response.status not in (401, 403):
                    yield response
                    return
                challenge = response.headers.get("WWW-Authenticate")
                if response.status == 403 and "insufficient_scope" not in (challenge or ""):
                    yield response
                    return
            if attempt == 2 or self._credentials is None or not await self._credentials.unauthorized(challenge):
                raise Unauthorized(response.status, challenge)

    @contextlib.asynccontextmanager
    async def _open(
        self, method: str, body: bytes | None, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        sent = {**_JSON, **headers}
        if self.session_id is not None:
            sent[_SESSION_HEADER] = self.session_id
        if self._credentials is not None and (bearer := await self._credentials.header()) is not None:
            sent["Authorization"] = bearer
        try:
            async with self._http.request(method, self.url, data=body, headers=sent, allow_redirects=False) as response:
                yield response
        except aiohttp.ClientConnectorError as error:
            reason = f"cannot reach {response_origin(self.url)}: {error.strerror or error}"
            self.fail_all(reason)
            raise ChannelClosed(reason) from None
        except aiohttp.ClientError as error:
            raise ChannelClosed(f"the connection broke: {error or type(error).__name__}") from None

    async def _send_request(
        self, pending: Pending, request_id: RequestId, body: bytes, headers: Mapping[str, str]
    ) -> None:
        async with self._request("POST", body, headers) as response:
            await self._check(response)
            if response.content_type == "text/event-stream":
                parser = EventParser(self.max_result_bytes)
                await self._read_events(response, parser, pending)
            elif response.content_type == "application/json":
                self._adopt_session(response)
                self._deliver_to(pending, await self._read(response, self.max_result_bytes))
                return
            else:
                raise InvalidAnswer(
                    f"the answer's content type is {response.content_type!r}, not JSON or an event stream"
                )
        if not pending.future.done():
            await self._resume(parser, pending, headers)

    def _adopt_session(self, response: aiohttp.ClientResponse) -> None:
        if self.session_id is None:
            self.session_id = response.headers.get(_SESSION_HEADER)

    def _deliver_to(self, pending: Pending, data: bytes) -> None:
        self.deliver(data)
        if not pending.future.done():
            pending.fail(InvalidAnswer("the HTTP answer does not answer the request"))

    async def _read_events(self, response: aiohttp.ClientResponse, parser: EventParser, pending: Pending) -> None:
        self._adopt_session(response)
        async for chunk in response.content.iter_any():
            for event in parser.feed(chunk):
                if event.name == "message":
                    self.deliver(event.data)
            if pending.future.done():
                return

    async def _resume(self, parser: EventParser, pending: Pending, headers: Mapping[str, str]) -> None:
        """Pick up a stream that the server closed before the answer, where it said from where."""
        for _ in range(_RESUMES):
            if parser.last_id is None or self.modern:
                break
            await asyncio.sleep(parser.retry if parser.retry is not None else 1)
            again = {**headers, "Accept": "text/event-stream", "Last-Event-ID": parser.last_id}
            async with self._request("GET", None, again) as response:
                await self._check(response)
                await self._read_events(response, parser, pending)
            if pending.future.done():
                return
        pending.fail(ChannelClosed("the stream ended before the answer came"))

    async def _send_message(self, body: bytes, headers: Mapping[str, str]) -> None:
        async with self._request("POST", body, headers) as response:
            await self._check(response)

    async def _cancel(self, request_id: RequestId, reason: str) -> None:
        if not self.modern:
            await super()._cancel(request_id, reason)

    async def _check(self, response: aiohttp.ClientResponse) -> None:
        """Raise what a refusal means."""
        status = response.status
        if status < 300:
            return
        if status < 400:
            raise HttpStatus(
                status, f"it redirects to {response.headers.get('Location', '?')[:200]}; set `url` to that"
            )
        body = (await self._read(response, _MAX_ERROR_BODY, cut=True)) if response.content_length != 0 else b""
        if status == 404 and self.session_id is not None:
            raise SessionExpired(status, "the server no longer knows our session")
        with contextlib.suppress(InvalidAnswer):
            message = envelope.decode(body)[0]
            if message.error:
                error = envelope.error_body(message.error)
                raise RpcError(error.code, error.message, error.data)
        raise HttpStatus(status, " ".join(body[:200].decode(errors="replace").split()))

    async def _read(self, response: aiohttp.ClientResponse, limit: int, *, cut: bool = False) -> bytes:
        if not cut and response.content_length is not None and response.content_length > limit:
            raise AnswerTooLarge(limit)
        parts: list[bytes] = []
        size = 0
        async for chunk in response.content.iter_any():
            parts.append(chunk)
            size += len(chunk)
            if size > limit:
                if cut:
                    break
                raise AnswerTooLarge(limit)
        return b"".join(parts)[:limit]

    async def listen(self, headers: Mapping[str, str]) -> None:
        """Take what a server of the handshake era says outside of answers, for as long as it offers a stream."""
        parser = EventParser(self.max_result_bytes)
        pause = 1.0
        while not self.closed.done():
            sent = {**headers, "Accept": "text/event-stream"}
            if parser.last_id is not None:
                sent["Last-Event-ID"] = parser.last_id
            try:
                async with self._request("GET", None, sent) as response:
                    if response.status >= 300 or response.content_type != "text/event-stream":
                        return  # no such stream, which a server may decide
                    pause = 1.0
                    async for chunk in response.content.iter_any():
                        for event in parser.feed(chunk):
                            self.deliver(event.data)
            except (WireError, OSError) as error:
                log.debug("the listening stream broke: %s", error)
            await asyncio.sleep(parser.retry if parser.retry is not None else pause)
            pause = min(pause * 2, 60)

    async def close(self) -> None:
        """End the session and drop the pool."""
        ended = self.closed.done()
        self.fail_all("the connection was closed")
        if self.session_id is not None and not ended:
            with contextlib.suppress(WireError, OSError, TimeoutError):
                async with asyncio.timeout(1), self._open("DELETE", None, {}):
                    pass
        await self._http.close()


def response_origin(url: str) -> str:
    """Scheme, host and port: enough to name a server, without what a path or query may hide."""
    from yarl import URL

    with contextlib.suppress(ValueError):
        return str(URL(url).origin())
    return "the server"
