"""How do we talk to a streamable-HTTP upstream? One POST a message; the answer is JSON or a stream of events.

A call is never sent twice: not on a redirect, not on a lost connection. Only a refusal that proves it was not
processed (401, an unknown session) may be followed by another try.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping

import aiohttp
from multidict import CIMultiDict

from mcpproxy.wire import envelope
from mcpproxy.wire.channel import Channel, Pending
from mcpproxy.wire.client import Client, how_it_broke, origin, readable
from mcpproxy.wire.credentials import Credentials
from mcpproxy.wire.envelope import RequestId
from mcpproxy.wire.errors import (
    AnswerTooLarge,
    ChannelClosed,
    HttpStatus,
    InvalidAnswer,
    RpcError,
    SessionExpired,
    WireError,
)
from mcpproxy.wire.events import EventParser
from mcpproxy.wire.streams import follow

__all__ = ["Credentials", "HttpChannel"]

log = logging.getLogger(__name__)

_MAX_ERROR_BODY = 65_536
_FRUITLESS_RESUMES = 5
_SHORTEST_PAUSE = 0.1
_PAUSE_AFTER_FLOOD = 60.0
_DRAIN_PATIENCE = 1.0
_SESSION_HEADER = "Mcp-Session-Id"
_JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


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
        """Whether the upstream speaks 2026-07-28: no sessions, and closing a stream is how a call is cancelled."""
        self.common_headers: Mapping[str, str] = {}
        """What every message carries once the handshake is done."""
        self._client = Client(url, headers, credentials)

    @contextlib.asynccontextmanager
    async def _request(
        self, method: str, body: bytes | None, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        sent = CIMultiDict(_JSON)  # the SDK spells its headers in another case; none may be there twice
        sent.update(self.common_headers)
        sent.update(headers)
        if self._in_session:
            sent[_SESSION_HEADER] = self.session_id or ""
        try:
            async with self._client.request(method, self.url, body, sent) as response:
                yield response
        except aiohttp.ClientConnectorError as error:
            # This request's misfortune; others may be under way on connections that stand.
            raise ChannelClosed(f"cannot reach {origin(self.url)}: {error.strerror or error}") from None
        except aiohttp.ClientError as error:
            raise ChannelClosed(f"the connection broke: {how_it_broke(error)}") from None

    async def _send_request(
        self, pending: Pending, request_id: RequestId, body: bytes, headers: Mapping[str, str]
    ) -> None:
        async with self._request("POST", body, headers) as response:
            await self._check(response)
            if response.content_type == "text/event-stream":
                parser = EventParser(lambda: self.max_result_bytes)
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

    @property
    def _in_session(self) -> bool:
        return self.session_id is not None and not self.modern

    def _adopt_session(self, response: aiohttp.ClientResponse) -> None:
        given = response.headers.get(_SESSION_HEADER)
        if self.session_id is None and given is not None:
            if not (given.isascii() and given.isprintable()):
                raise InvalidAnswer("its session id is not made of visible characters")
            self.session_id = given

    def _deliver_to(self, pending: Pending, data: bytes) -> None:
        """Take the answer to one POST: whatever is wrong with it is that request's fault."""
        try:
            for message in envelope.decode(data):
                self.route(message)
        except InvalidAnswer as error:
            pending.fail(error)
        if not pending.future.done():
            pending.fail(InvalidAnswer("the HTTP answer does not answer the request"))

    async def _read_events(self, response: aiohttp.ClientResponse, parser: EventParser, pending: Pending) -> None:
        def answered() -> bool:
            if parser.overflowing and not pending.future.done():
                raise AnswerTooLarge(self.max_result_bytes)
            return pending.future.done()

        self._adopt_session(response)
        parser.restart()
        try:
            await follow(response, parser, lambda event: event.name == "message" and self.take_event(event), answered)
        except aiohttp.ClientPayloadError:
            if parser.last_id is None:
                raise  # it broke, and the server did not say how to go on

    async def _resume(self, parser: EventParser, pending: Pending, headers: Mapping[str, str]) -> None:
        """Pick up a stream that ended before the answer, where the server said from where."""
        fruitless = 0
        while parser.last_id is not None and not self.modern and fruitless < _FRUITLESS_RESUMES:
            before = parser.last_id
            await asyncio.sleep(_pause(parser.retry, 1.0))
            again = {**headers, "Accept": "text/event-stream", "Last-Event-ID": before}
            async with self._request("GET", None, again) as response:
                try:
                    await self._check(response)
                except SessionExpired as error:
                    # The server took the call before it forgot us: it must not look as if it could be sent again.
                    raise ChannelClosed(f"the server lost the call's stream ({error})") from None
                await self._read_events(response, parser, pending)
            if pending.future.done():
                return
            fruitless = fruitless + 1 if parser.last_id == before else 0
        pending.fail(ChannelClosed("the stream ended before the answer came"))

    async def send_message(self, body: bytes, headers: Mapping[str, str]) -> None:
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
            target = readable(response.headers.get("Location", "?"))
            raise HttpStatus(status, f"it redirects to {target}; set `url` to that")
        body = (await self._read(response, _MAX_ERROR_BODY, cut=True)) if response.content_length != 0 else b""
        if status == 404 and self._in_session:
            raise SessionExpired(status, "the server no longer knows our session")
        with contextlib.suppress(InvalidAnswer):
            message = envelope.decode_one(body)
            if message.error:
                error = envelope.error_body(message.error)
                # Without an id it was refused at the door; with one, the call failed, and may have done something.
                at_the_door = status == 400 and message.id is None
                if at_the_door and self._in_session and _speaks_of_session(error.message):
                    raise SessionExpired(status, "the server no longer knows our session")
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

    async def listen(self) -> None:
        """Take what a server of the handshake era says outside of answers, for as long as it offers a stream."""
        parser = EventParser(lambda: self.max_result_bytes)
        pause = 1.0
        heard = False
        while not self.closed.done():
            sent = {"Accept": "text/event-stream"}
            if parser.last_id is not None:
                sent["Last-Event-ID"] = parser.last_id
            try:
                async with self._request("GET", None, sent) as response:
                    if response.status < 500 and response.content_type != "text/event-stream":
                        if heard and response.status in (400, 404) and self._in_session:
                            self.fail_all("the server no longer knows our session")  # it was started again
                        return  # no such stream, which a server may decide
                    if response.status < 300:
                        heard = True
                        pause = 1.0
                        await self._read_notices(response, parser)
            except (WireError, OSError) as error:
                log.debug("the listening stream broke: %s", error)
            if parser.flooding:
                parser.junk = 0
                await asyncio.sleep(_PAUSE_AFTER_FLOOD)
            await asyncio.sleep(_pause(parser.retry, pause))
            pause = min(pause * 2, 60)

    async def _read_notices(self, response: aiohttp.ClientResponse, parser: EventParser) -> None:
        parser.restart()
        await follow(response, parser, self.take_event)

    async def close(self) -> None:
        """End the session and drop the pool."""
        ended = self.closed.done()
        self.fail_all("the connection was closed")
        if ended:
            await self._drain()
        elif self._in_session:
            with contextlib.suppress(WireError, OSError, TimeoutError):
                async with asyncio.timeout(1), self._request("DELETE", None, {}):
                    pass
        await self._client.close()

    async def _drain(self) -> None:
        """Let requests under way hear for themselves what ended the channel: a lost session lets each be sent again."""
        deadline = asyncio.get_running_loop().time() + _DRAIN_PATIENCE
        while self.in_flight and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)


def _speaks_of_session(message: str) -> bool:
    # The specification says 404, but the official TypeScript examples, and all that follow them, say 400 in words.
    return "session" in message.lower() or "not initialized" in message.lower()


def _pause(asked: float | None, otherwise: float) -> float:
    """How long to wait before the next try; not even a server that says zero is asked without a break."""
    return max(otherwise if asked is None else asked, _SHORTEST_PAUSE)
