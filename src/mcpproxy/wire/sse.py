"""How do we talk to an upstream of 2024? One long stream of events for what it says, a POST for what we say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
from yarl import URL

from mcpproxy.wire.channel import Channel, Pending
from mcpproxy.wire.client import Client, how_it_broke, origin, readable
from mcpproxy.wire.credentials import Credentials
from mcpproxy.wire.envelope import RequestId
from mcpproxy.wire.errors import ChannelClosed, HttpStatus, InvalidAnswer, WireError
from mcpproxy.wire.events import Event, EventParser
from mcpproxy.wire.streams import follow


class SseChannel(Channel):
    """The HTTP+SSE transport that streamable HTTP replaced."""

    kind = "sse"

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        max_result_bytes: int,
        credentials: Credentials | None = None,
    ) -> None:
        super().__init__(max_result_bytes=max_result_bytes)
        self._url = URL(url)
        self._client = Client(url, headers, credentials)
        self._endpoint: asyncio.Future[URL] = asyncio.get_running_loop().create_future()
        self._reader: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the stream and wait for the address to post to."""
        self._reader = asyncio.create_task(self._read())
        waiting: set[asyncio.Future[Any]] = {self._reader, self._endpoint}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if not self._endpoint.done():
            self._reader.result()
            raise InvalidAnswer("the event stream ended before it named an address to post to")
        self._endpoint.result()

    async def _read(self) -> None:
        reason = "the event stream ended"
        try:
            async with self._client.request("GET", self._url, None, {"Accept": "text/event-stream"}) as response:
                await self._read_stream(response)
        except aiohttp.ClientConnectorError as error:
            reason = f"cannot reach {origin(self._url)}: {error.strerror or error}"
            raise ChannelClosed(reason) from None
        except aiohttp.ClientError as error:
            reason = f"the event stream broke: {how_it_broke(error)}"
            raise ChannelClosed(reason) from None
        except WireError as error:
            reason = str(error)
            raise
        finally:
            self.fail_all(reason)

    async def _read_stream(self, response: aiohttp.ClientResponse) -> None:
        if response.status != 200 or response.content_type != "text/event-stream":
            raise HttpStatus(response.status, f"no event stream, but {response.content_type}")
        await follow(response, EventParser(lambda: self.max_result_bytes), self._take)

    def _take(self, event: Event) -> bool:
        if event.name != "endpoint":
            return self.take_event(event)
        news = not self._endpoint.done()
        self._take_endpoint(event.data.decode(errors="replace"))
        return news

    def _take_endpoint(self, text: str) -> None:
        if self._endpoint.done():
            return
        try:
            endpoint = self._url.join(URL(text))
            same_origin = endpoint.origin() == self._url.origin()
        except ValueError:
            self._endpoint.set_exception(InvalidAnswer("the server names no address that could be posted to"))
            return
        if same_origin:
            self._endpoint.set_result(endpoint)
        else:
            self._endpoint.set_exception(InvalidAnswer("the server wants its messages posted to another host"))

    async def _send_request(
        self, pending: Pending, request_id: RequestId, body: bytes, headers: Mapping[str, str]
    ) -> None:
        await self.send_message(body, headers)

    async def send_message(self, body: bytes, headers: Mapping[str, str]) -> None:
        endpoint = await asyncio.shield(self._endpoint)
        try:
            sent = {"Content-Type": "application/json", **headers}
            async with self._client.request("POST", endpoint, body, sent) as response:
                if response.status >= 300:
                    raise HttpStatus(response.status, readable(response.reason or ""))
        except aiohttp.ClientError as error:
            raise ChannelClosed(f"the connection broke: {how_it_broke(error)}") from None

    async def close(self) -> None:
        """Drop the stream and the pool."""
        self.fail_all("the connection was closed")
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait({self._reader})
            if not self._reader.cancelled():
                self._reader.exception()  # seen: `open` or `fail_all` has said it already
        if self._endpoint.done() and not self._endpoint.cancelled():
            self._endpoint.exception()
        await self._client.close()
