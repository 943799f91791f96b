"""Who is who: key, token, socket, or nobody; a wrong credential is never nobody."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from mcpproxy.access.identify import CannotIdentify, Gate, Identity, Unidentified
from mcpproxy.access.tokens import Grant, Tokens, TokensUnknown
from mcpproxy.config.models import Config
from mcpproxy.storage.engine import open_storage

KEY = "k" * 64


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(open_storage("sqlite", tmp_path))


@pytest.fixture
def gate(tokens: Tokens) -> Gate:
    return Gate(lambda: Config(api_key=KEY), tokens)


def identify(gate: Gate, authorization: str | None = None, api_key: str | None = None, **more: bool) -> Identity:
    return gate.identify(authorization, api_key, **{"required": True, **more})


@pytest.mark.parametrize(
    ("authorization", "api_key"), [(None, KEY), (f"Bearer {KEY}", None), (f"bearer  {KEY} ", None), ("Bearer x", KEY)]
)
def test_the_api_key_is_the_operators(gate: Gate, authorization: str | None, api_key: str | None) -> None:
    found = identify(gate, authorization, api_key)
    assert found.admin
    assert found.key == "api-key"


@pytest.mark.parametrize(
    ("authorization", "api_key"),
    [
        (None, ""),
        (None, KEY[:-1]),
        (None, KEY + "k"),
        (None, KEY.upper()),
        ("Bearer", None),
        ("Bearer ", None),
        (f"Basic {KEY}", None),
        (KEY, None),
        (f"Bearer {KEY}", "wrong"),
        (f"Bearer {KEY} {KEY}", None),
        ("Bearer mcpp_unknown", None),
    ],
)
@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("local", [True, False])
def test_a_wrong_credential_is_never_nobody(
    gate: Gate, authorization: str | None, api_key: str | None, required: bool, local: bool
) -> None:
    with pytest.raises(Unidentified, match="not known") as caught:
        identify(gate, authorization, api_key, required=required, local=local)
    assert caught.value.status == 401


def test_nobody_is_let_in_where_no_key_is_needed_and_never_as_operator(gate: Gate) -> None:
    found = identify(gate, required=False)
    assert (found.key, found.admin) == ("anonymous", False)
    with pytest.raises(Unidentified, match="X-API-Key"):
        identify(gate)


def test_whoever_opens_the_socket_is_the_operator(gate: Gate) -> None:
    assert identify(gate, local=True).admin
    assert identify(gate, required=False, local=True).admin


def test_a_token_has_its_scope_and_no_more(gate: Gate, tokens: Tokens) -> None:
    made, secret = asyncio.run(tokens.create("ci", Grant(servers=("git*",), allow=("read",)), None))
    tokens._looked_at = float("inf")
    found = identify(gate, f"Bearer {secret}")
    assert (found.key, found.admin) == (made.key, False)
    assert found.scope.sees_server("github")
    assert not found.scope.sees_server("jira")
    assert not found.scope.allows("write")
    assert identify(gate, api_key=secret) == found


def test_an_expired_token_says_so(gate: Gate, tokens: Tokens) -> None:
    _, secret = asyncio.run(tokens.create("ci", Grant(), timedelta(microseconds=1)))
    tokens._looked_at = float("inf")
    with pytest.raises(Unidentified, match="expired"):
        identify(gate, api_key=secret)


def test_a_token_that_cannot_be_checked_is_neither_let_in_nor_called_wrong(
    gate: Gate, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(secret: str) -> None:
        raise TokensUnknown("the database does not answer")

    monkeypatch.setattr(tokens, "find", unknown)
    with pytest.raises(CannotIdentify, match="does not answer") as caught:
        identify(gate, api_key="mcpp_something")
    assert caught.value.status == 503
    assert identify(gate, api_key=KEY).admin
