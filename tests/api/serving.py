"""A whole proxy on a real port, in a thread of its own, for tests that ask it over HTTP."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from tests.calls.proxy import KEY, Proxy, running

Result = TypeVar("Result")
PREFIX = "/api/v1"


class Rest:
    """A running proxy and a client that has its key."""

    def __init__(self, proxy: Proxy, loop: asyncio.AbstractEventLoop) -> None:
        self.proxy = proxy
        self.url = proxy.url
        self._loop = loop
        self._client = httpx2.Client(base_url=proxy.url, timeout=30, trust_env=False)

    def ask(self, method: str, path: str, *, key: str | None = KEY, **more: Any) -> httpx2.Response:
        """One request; a path that does not begin with a slash is one of the API."""
        headers = {**({"X-API-Key": key} if key is not None else {}), **more.pop("headers", {})}
        where = path if path.startswith("/") else f"{PREFIX}/{path}"
        return self._client.request(method, where, headers=headers, **more)

    def get(self, path: str, **more: Any) -> Any:
        """The data of a successful GET."""
        return self._data(self.ask("GET", path, **more), 200)

    def post(self, path: str, body: Any = None, *, status: int = 200, **more: Any) -> Any:
        """The data of a successful POST."""
        return self._data(self.ask("POST", path, json=body, **more), status)

    def patch(self, path: str, body: Any, **more: Any) -> Any:
        """The data of a successful PATCH."""
        return self._data(self.ask("PATCH", path, json=body, **more), 200)

    def delete(self, path: str, **more: Any) -> Any:
        """The data of a successful DELETE."""
        return self._data(self.ask("DELETE", path, **more), 200)

    def error(self, method: str, path: str, status: int, **more: Any) -> Any:
        """The error of a request that must fail so."""
        answer = self.ask(method, path, **more)
        assert answer.status_code == status, answer.text
        body = answer.json()
        assert body["success"] is False
        assert body["request_id"] == answer.headers["x-request-id"]
        assert body["error"]["code"] and body["error"]["message"]
        return body["error"]

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do something in the proxy's own event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def _data(self, answer: httpx2.Response, status: int) -> Any:
        assert answer.status_code == status, answer.text
        body = answer.json()
        assert body["success"] is True
        assert body["request_id"] == answer.headers["x-request-id"]
        return body["data"]


@contextlib.contextmanager
def serving(home: Path, servers: list[dict[str, Any]] | None = None, **settings: Any) -> Iterator[Rest]:
    """Run a proxy with these servers and settings until the block ends."""
    started: Future[tuple[Proxy, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def main() -> None:
        stop = asyncio.Event()
        async with running(home, servers, **settings) as proxy:
            started.set_result((proxy, asyncio.get_running_loop(), stop))
            await stop.wait()
            proxy.app.stopping.set()

    def body() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
            raise

    thread = threading.Thread(target=body)
    thread.start()
    try:
        proxy, loop, stop = started.result(60)
    except BaseException:
        thread.join()
        raise
    try:
        yield Rest(proxy, loop)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
