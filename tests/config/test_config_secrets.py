"""References are filled in when a server connects."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import ClassVar

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring

from mcpproxy.config.mask import Masker
from mcpproxy.config.models import OAuth, Server
from mcpproxy.config.secrets import KEYRING_SERVICE, SecretMissing, expand

ENV = {"TOKEN": "canary-from-env", "HOST": "mcp.example.com", "HOME": "/home/me"}


class MemoryKeyring(KeyringBackend):
    """A real backend of the keyring library that keeps its entries in memory."""

    priority = 1
    entries: ClassVar[dict[tuple[str, str], str]] = {(KEYRING_SERVICE, "gh"): "canary-from-keyring"}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password


@pytest.fixture
def use() -> Iterator[Callable[[KeyringBackend], None]]:
    before = keyring.get_keyring()
    yield keyring.set_keyring
    keyring.set_keyring(before)


def test_references_are_filled_in_in_every_field() -> None:
    server = Server(
        name="a",
        command="${env:HOME}/bin/run",
        args=("--token=${env:TOKEN}",),
        env={"T": "${env:TOKEN}"},
        working_dir="${env:HOME}",
        url="https://${env:HOST}/mcp",
        headers={"Authorization": "Bearer ${env:TOKEN}"},
        oauth=OAuth(client_id="${env:HOST}", client_secret="${env:TOKEN}", scopes=("${env:HOST}",)),
    )
    assert expand(server, Masker(), ENV) == Server(
        name="a",
        command="/home/me/bin/run",
        args=("--token=canary-from-env",),
        env={"T": "canary-from-env"},
        working_dir="/home/me",
        url="https://mcp.example.com/mcp",
        headers={"Authorization": "Bearer canary-from-env"},
        oauth=OAuth(client_id="mcp.example.com", client_secret="canary-from-env", scopes=("mcp.example.com",)),
    )


def test_the_masker_knows_what_was_filled_in() -> None:
    masker = Masker()
    expand(Server(name="a", command="x", env={"T": "v ${env:TOKEN}"}, working_dir="${env:HOME}"), masker, ENV)
    assert masker.mask("canary-from-env in /home/me") == "*** in /home/me"


@pytest.mark.parametrize(
    ("server", "field"),
    [
        (Server(name="gh", command="x", env={"T": "${env:NOPE}"}), 'env["T"]'),
        (Server(name="gh", command="x", args=("a", "${env:NOPE}")), "args[1]"),
        (Server(name="gh", url="https://h", headers={"X-A": "${env:NOPE}"}), 'headers["X-A"]'),
        (Server(name="gh", url="https://h", oauth=OAuth(client_secret="${env:NOPE}")), "oauth.client_secret"),
        (Server(name="gh", command="${env:NOPE}"), "command"),
    ],
)
def test_what_is_missing_is_named_with_server_field_and_name(server: Server, field: str) -> None:
    with pytest.raises(SecretMissing) as caught:
        expand(server, Masker(), {})
    assert str(caught.value) == (
        f"server 'gh': {field} needs ${{env:NOPE}}, and that environment variable is not set; "
        "set it before mcpproxy starts"
    )


def test_other_dollar_signs_are_left_alone() -> None:
    server = Server(name="a", command="x", args=("${HOME}", "$TOKEN", "${other:TOKEN}", "${env:}", "$${env:HOST}"))
    assert expand(server, Masker(), ENV).args == ("${HOME}", "$TOKEN", "${other:TOKEN}", "${env:}", "$mcp.example.com")


def test_a_filled_in_value_is_not_expanded_again() -> None:
    server = Server(name="a", command="x", env={"T": "${env:A}"})
    assert expand(server, Masker(), {"A": "${env:B}", "B": "no"}).env == {"T": "${env:B}"}


def test_a_url_must_be_one_once_it_is_filled_in() -> None:
    with pytest.raises(SecretMissing, match=r"url needs \$\{env:TOKEN\}, and with it filled in is no http") as caught:
        expand(Server(name="a", url="${env:TOKEN}"), Masker(), ENV)
    assert "canary" not in str(caught.value)


def test_the_keyring_is_asked_for_entries_of_mcpproxy(use: Callable[[KeyringBackend], None]) -> None:
    use(MemoryKeyring())  # type: ignore[no-untyped-call]
    masker = Masker()
    server = Server(name="a", url="https://h", headers={"Authorization": "Bearer ${keyring:gh}"})
    assert expand(server, masker).headers == {"Authorization": "Bearer canary-from-keyring"}
    assert masker.mask("canary-from-keyring") == "***"


def test_a_missing_keyring_entry_says_how_to_store_it(use: Callable[[KeyringBackend], None]) -> None:
    use(MemoryKeyring())  # type: ignore[no-untyped-call]
    with pytest.raises(SecretMissing, match="the keyring holds no such entry; store it with: keyring set mcpproxy no"):
        expand(Server(name="a", command="x", env={"T": "${keyring:no}"}), Masker())


def test_a_machine_without_a_keyring_is_a_clear_error(use: Callable[[KeyringBackend], None]) -> None:
    use(NoKeyring())  # type: ignore[no-untyped-call]
    with pytest.raises(SecretMissing, match="the keyring cannot be asked: NoKeyringError"):
        expand(Server(name="a", command="x", env={"T": "${keyring:gh}"}), Masker())


def test_a_variable_that_is_no_text_is_masked_like_any_other() -> None:
    masker = Masker()
    value = b"secret-\xff-bytes".decode(errors="surrogateescape")
    expand(Server(name="a", command="x", env={"T": "${env:RAW}"}), masker, {"RAW": value})
    assert masker.mask_bytes(b"log: secret-\xff-bytes") == b"log: ***"


def test_a_server_without_references_stays_as_it_is() -> None:
    server = Server(name="a", command="x", env={"T": "literal-value"})
    masker = Masker()
    assert expand(server, masker, os.environ) == server
    assert masker.mask("literal-value") == "***"
