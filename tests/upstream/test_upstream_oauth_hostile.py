"""A hostile upstream or authorization server gets nothing opened and nothing fetched elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.upstream.oauth_hostile import (
    CALLBACK,
    METADATA,
    RESOURCE,
    HostileServer,
    hostile_server,
    no_keyring,
    no_process,
    server,
    session_for,
)

from mcpproxy.config.models import OAuth
from mcpproxy.upstream.oauth import LoginFailed, gate
from mcpproxy.upstream.oauth.session import OAuthSession
from mcpproxy.upstream.tokens import TokenStore

__all__ = ["no_keyring", "no_process", "server"]


def failing_login(server: HostileServer, folder: Path) -> str:
    """Start a login that must not even give a link; gives what the person is told."""

    async def story() -> str:
        login = session_for(server, folder)
        with pytest.raises(LoginFailed) as failed:
            await login.begin_login()
        assert login.login_url is None
        assert await login.login_link() is None
        return str(failed.value)

    return asyncio.run(story())


HOSTILE = [
    "javascript:alert(1)",
    "file:///etc/passwd",
    "$(touch /tmp/owned)",
    "`id`",
    "--flag",
    "-oProxyCommand=id",
    "a:$(id)?response_type=code",
    "data:text/html,<script>",
    "ssh://host/x",
    "http://as.example/authorize",
    "https://user:pass@as.example/authorize",
    "https://as.example\\@evil.example/",
    "https://as.example/a b",
    "https://as.example/\n--flag",
    "https:///nohost",
    "https://as.example:port/",
    "",
    17,
    ["https://as.example"],
]


@pytest.mark.parametrize("field", ["authorization_endpoint", "token_endpoint", "registration_endpoint", "issuer"])
def test_an_endpoint_that_is_not_https_ends_the_login_before_anything_is_opened(
    server: HostileServer, tmp_path: Path, field: str
) -> None:
    for endpoint in HOSTILE:
        server.say_metadata(**{field: endpoint})
        told = failing_login(server, tmp_path)
        assert told.startswith(f"the server's {field} {ascii(endpoint)[:120]} is refused: ")
    assert not any(asked.startswith("POST") for asked in server.asked)


def test_a_link_that_means_something_to_a_shell_is_not_shown(server: HostileServer, tmp_path: Path) -> None:
    for tail in ("/$(id)", "/a;b", "/'x'", "/a*b!"):
        server.say_metadata(authorization_endpoint=f"{server.origin}{tail}")
        assert "it is no plain URL" in failing_login(server, tmp_path)


def test_an_authorization_endpoint_with_a_query_of_its_own_keeps_it(server: HostileServer, tmp_path: Path) -> None:
    server.say_metadata(authorization_endpoint=f"{server.origin}/authorize?tenant=a")

    async def story() -> None:
        login = session_for(server, tmp_path)
        query = parse_qs(urlsplit(await login.begin_login()).query)
        assert (query["tenant"], query["response_type"]) == (["a"], ["code"])
        await login.close()

    asyncio.run(story())


@pytest.mark.parametrize("place", ["javascript:alert(1)", "--flag", "http://10.0.0.1/x", "file:///etc/passwd"])
def test_hostile_addresses_of_metadata_are_not_fetched(server: HostileServer, tmp_path: Path, place: str) -> None:
    server.say("/mcp", 401, {}, WWW_Authenticate=f'Bearer resource_metadata="{place}"')
    assert "is refused" in failing_login(server, tmp_path)
    server.say("/mcp", 401, {})
    server.say(RESOURCE, 200, {"resource": f"{server.origin}/mcp", "authorization_servers": [place]})
    assert "the authorization server" in failing_login(server, tmp_path)
    assert METADATA not in " ".join(server.asked)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "x.localhost."])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_remote_upstream_cannot_send_us_to_this_machine(scheme: str, host: str) -> None:
    with pytest.raises(LoginFailed, match="must not send us to this machine"):
        gate.Gate("https://remote.example/mcp").check(f"{scheme}://{host}:9/token", "the address")
    gate.Gate("http://127.0.0.1:1/mcp").check(f"{scheme}://{host}:9/token", "the address")


def test_an_upstream_on_plain_http_elsewhere_gets_no_login(tmp_path: Path) -> None:
    async def story() -> None:
        login = OAuthSession("notes", "http://192.0.2.1/mcp", None, TokenStore(tmp_path), redirect_uri=CALLBACK)
        with pytest.raises(LoginFailed, match="only https is allowed"):
            await login.begin_login()

    asyncio.run(story())


@pytest.mark.parametrize("path", [RESOURCE, METADATA, "/register"])
def test_no_redirect_is_followed_to_another_host(
    server: HostileServer, tmp_path: Path, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0)
        port = elsewhere.getsockname()[1]
        server.say(path, 307, b"", Location=f"http://localhost:{port}/metadata")

        async def story() -> None:
            login = session_for(server, tmp_path)
            with contextlib.suppress(LoginFailed):  # without its metadata the flow finds its way on this host
                await login.begin_login()
            await login.close()

        asyncio.run(story())
        with pytest.raises(BlockingIOError):
            elsewhere.accept()
    assert "127.0.0.1 redirects to 'localhost', which was not followed" in caplog.text


def test_a_redirect_on_the_same_host_is_followed(server: HostileServer, tmp_path: Path) -> None:
    server.answers["/moved"] = server.answers[METADATA]
    server.say(METADATA, 302, b"", Location="/moved")

    async def story() -> None:
        login = session_for(server, tmp_path)
        assert (await login.begin_login()).startswith(f"{server.origin}/authorize?")
        await login.close()

    asyncio.run(story())


def test_metadata_that_names_another_issuer_is_refused(server: HostileServer, tmp_path: Path) -> None:
    server.say_metadata(issuer="https://honest.example")
    assert "issuer mismatch" in failing_login(server, tmp_path)
    assert "POST /register" not in server.asked


@pytest.mark.parametrize("path", [RESOURCE, METADATA, "/register"])
def test_an_endless_answer_is_cut_off(server: HostileServer, tmp_path: Path, path: str) -> None:
    server.say(path, 200, b"[" * 1_000_000)
    assert "more than 65536 bytes" in failing_login(server, tmp_path)


def test_a_compressed_answer_is_not_unpacked(server: HostileServer, tmp_path: Path) -> None:
    server.say(METADATA, 200, b"\x1f\x8b", Content_Encoding="gzip")
    assert "compressed its answer" in failing_login(server, tmp_path)


def test_a_server_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "_TIMEOUT", 0.2)

    async def story(origin: str) -> None:
        login = OAuthSession("notes", f"{origin}/mcp", None, TokenStore(tmp_path), redirect_uri=CALLBACK)
        with pytest.raises(LoginFailed, match="could not be reached"):
            await login.begin_login()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        asyncio.run(story(f"http://127.0.0.1:{silent.getsockname()[1]}"))


def test_a_server_without_any_oauth_says_so(server: HostileServer, tmp_path: Path) -> None:
    server.answers.clear()
    told = failing_login(server, tmp_path)
    assert "publishes no OAuth metadata" in told
    assert "HTTP 404" in told


def test_a_client_metadata_document_stands_in_for_a_registration_where_it_is_offered(
    server: HostileServer, tmp_path: Path
) -> None:
    document = "https://me.example/mcpproxy.json"

    async def client_asked_for(oauth: OAuth) -> str:
        login = session_for(server, tmp_path, oauth)
        link = await login.begin_login()
        await login.close()
        return parse_qs(urlsplit(link).query)["client_id"][0]

    assert asyncio.run(client_asked_for(OAuth(client_metadata_url=document))) == "us"
    server.say_metadata(client_id_metadata_document_supported=True)
    server.asked.clear()
    assert asyncio.run(client_asked_for(OAuth(client_metadata_url=document))) == document
    assert "POST /register" not in server.asked
    with pytest.raises(LoginFailed, match="client_metadata_url"):
        asyncio.run(client_asked_for(OAuth(client_metadata_url="http://me.example/")))


def test_the_operators_secret_is_not_taken_to_another_authorization_server(tmp_path: Path) -> None:
    oauth = OAuth(client_id="ours", client_secret="CANARY-config-secret")

    async def log_in(server: HostileServer) -> None:
        login = session_for(server, tmp_path, oauth)
        state = parse_qs(urlsplit(await login.begin_login()).query)["state"][0]
        await login.finish_login({"code": "c", "state": state})

    with hostile_server() as server, hostile_server() as attacker:
        server.say("/token", 200, {"access_token": "t", "token_type": "bearer"})
        asyncio.run(log_in(server))
        server.say(RESOURCE, 200, {"resource": f"{server.origin}/mcp", "authorization_servers": [attacker.origin]})
        with pytest.raises(LoginFailed, match="another authorization server than at the last login"):
            asyncio.run(log_in(server))
        assert "POST /token" not in attacker.asked


def test_a_token_is_renewed_where_the_login_found_its_endpoint_even_after_a_restart(tmp_path: Path) -> None:
    async def story(upstream: HostileServer) -> None:
        login = session_for(upstream, tmp_path)
        state = parse_qs(urlsplit(await login.begin_login()).query)["state"][0]
        await login.finish_login({"code": "c", "state": state})
        restarted = session_for(upstream, tmp_path)
        assert await restarted.header() == "Bearer t"
        assert await restarted.unauthorized(None)

    with hostile_server() as upstream, hostile_server() as authority:
        upstream.say(RESOURCE, 200, {"resource": f"{upstream.origin}/mcp", "authorization_servers": [authority.origin]})
        authority.say_metadata(token_endpoint=f"{authority.origin}/deep/token")
        authority.say("/deep/token", 200, {"access_token": "t", "refresh_token": "r", "token_type": "bearer"})
        asyncio.run(story(upstream))
        assert authority.asked.count("POST /deep/token") == 2
        assert not any(asked.startswith("POST") for asked in upstream.asked)
