"""What goes out with a request? The operator's headers, a login where there is one, and nobody else's passwords."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.support.children import run
from tests.support.http_servers import HttpUpstream, answer, serving
from tests.wire.http_talk import CALL, LIMIT, call, replying, talking

from mcpproxy.wire.errors import ChannelClosed, Unauthorized
from mcpproxy.wire.http import HttpChannel


class Keys:
    """Credentials whose next key is better, as long as there is one."""

    def __init__(self, *keys: str) -> None:
        self.keys = list(keys)
        self.challenges: list[str | None] = []

    async def header(self) -> str | None:
        return f"Bearer {self.keys[0]}" if self.keys else None

    async def unauthorized(self, challenge: str | None) -> bool:
        self.challenges.append(challenge)
        self.keys = self.keys[1:]
        return bool(self.keys)


def guarded(headers: Mapping[str, str], status: int = 401) -> HttpUpstream:
    """A server that wants the key `good`."""

    def respond(request: web.Request, message: dict[str, Any]) -> web.Response:
        if request.headers.get("Authorization") == "Bearer good":
            return answer(message, {"structuredContent": "in"})
        return web.Response(status=status, headers=headers)

    return replying(respond)


def test_without_credentials_a_401_asks_for_a_login() -> None:
    async def main() -> None:
        upstream = guarded({"WWW-Authenticate": "Bearer realm=x"})
        async with talking(upstream) as channel:
            with pytest.raises(Unauthorized) as refused:
                await call(channel)
            assert (refused.value.status, refused.value.challenge) == (401, "Bearer realm=x")
        assert len(upstream.messages(CALL)) == 1

    run(main())


@pytest.mark.parametrize(
    ("status", "challenge"), [(401, "Bearer"), (403, 'Bearer error="insufficient_scope", scope="more"')]
)
def test_better_credentials_are_tried_once(status: int, challenge: str) -> None:
    async def main() -> None:
        keys = Keys("old", "good")
        upstream = guarded({"WWW-Authenticate": challenge}, status)
        async with talking(upstream, credentials=keys) as channel:
            assert await call(channel) == "in"
            assert keys.challenges == [challenge]
        keys = Keys("old", "bad", "good")
        async with talking(upstream, credentials=keys) as channel:
            with pytest.raises(Unauthorized):
                await call(channel)
        assert len(upstream.messages(CALL)) == 4

    run(main())


def test_the_operators_headers_and_the_passwords_of_an_address_go_out_and_a_login_wins_over_both() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        async with serving(upstream) as url:
            named = url.replace("://", "://me:pa%20ss@")
            for address, headers, credentials in (
                (url, {"x-Team": "1", "Accept": "*/*"}, None),
                (named, {}, None),
                (named, {"authorization": "Token own"}, None),
                (named, {"authorization": "Token own"}, Keys("key")),
            ):
                channel = HttpChannel(address, headers=headers, max_result_bytes=LIMIT, credentials=credentials)
                await channel.call_raw("ping", b"{}", timeout=20)
                await channel.close()
        first, *others = [seen.headers for seen in upstream.seen]
        assert first["X-Team"] == "1" and "Authorization" not in first
        assert first.getall("Accept") == ["application/json, text/event-stream"]
        assert [headers.getall("Authorization") for headers in others] == [
            ["Basic bWU6cGEgc3M="],
            ["Token own"],
            ["Bearer key"],
        ]

    run(main())


def test_the_passwords_of_netrc_are_nobodys_business(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))

    async def main() -> None:
        upstream = HttpUpstream()
        async with talking(upstream) as channel:
            await call(channel)
        assert "Authorization" not in upstream.seen[0].headers

    run(main())


def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        proxy, upstream = HttpUpstream(), HttpUpstream()
        async with serving(proxy) as there, serving(upstream) as here:
            monkeypatch.setenv("http_proxy", there.removesuffix("/mcp"))
            monkeypatch.setenv("no_proxy", "other.invalid")
            for address, reached in (("http://far.invalid/mcp", True), (here, True), ("http://other.invalid/", False)):
                channel = HttpChannel(address, headers={}, max_result_bytes=LIMIT)
                if reached:
                    await channel.call_raw("ping", b"{}", timeout=20)
                else:
                    with pytest.raises(ChannelClosed, match="cannot reach"):
                        await channel.call_raw("ping", b"{}", timeout=20)
                await channel.close()
        assert [seen.headers["Host"] for seen in proxy.seen] == ["far.invalid"]
        assert len(upstream.seen) == 1

    run(main())
