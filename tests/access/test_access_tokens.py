"""Agent tokens in the database and in memory, on one replica and on two."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, text

from mcpproxy.access import tokens as tokens_module
from mcpproxy.access.tables import agent_tokens
from mcpproxy.access.tokens import PREFIX, Grant, NameTaken, Token, Tokens, TokensUnknown, TooManyTokens
from mcpproxy.storage.engine import Storage, open_storage
from mcpproxy.storage.errors import StorageUnreadable

GRANT = Grant(servers=("git*",), tools=("list_*", "jira:get_issue"), allow=("read", "write"))


@asynccontextmanager
async def opened(setting: str, home: Path, on_gone: Callable[[Token], None] = lambda _: None) -> AsyncIterator[Tokens]:
    storage = open_storage(setting, home)
    tokens = Tokens(storage, on_gone)
    await tokens.start()
    try:
        yield tokens
    finally:
        await tokens.stop()
        storage.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def stored(tokens: Tokens) -> list[dict[str, object]]:
    with tokens._storage.read() as connection:
        return [dict(row) for row in connection.execute(select(agent_tokens)).mappings()]


def test_a_token_survives_a_restart_and_only_its_hash_is_kept(storage_setting: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(storage_setting, tmp_path) as tokens:
            made, secret = await tokens.create("ci", GRANT, timedelta(days=1))
            assert secret.startswith(PREFIX)
            row = stored(tokens)[0]
            assert bytes(row["digest"]) == hashlib.sha256(secret.encode()).digest()  # type: ignore[call-overload]
            assert secret not in str(row)
        async with opened(storage_setting, tmp_path) as tokens:
            found = tokens.find(secret)
            assert found is not None
            assert (found.id, found.name, found.grant, found.key) == (made.id, "ci", GRANT, f"token:{made.id}")
            assert found.expires_at == made.expires_at
            assert found.scope.sees_tool("github", "list_repos")
            assert not found.scope.sees_tool("github", "get_issue")
            assert not found.scope.sees_tool("jira", "list_issues")
            assert found.scope.allows("write")
            assert not found.scope.allows("destructive")

    asyncio.run(main())


def test_secrets_are_long_random_and_never_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened("sqlite", tmp_path) as tokens:
            secrets = {(await tokens.create(str(number), GRANT, None))[1] for number in range(20)}
            assert len(secrets) == 20
            assert {len(secret) for secret in secrets} == {len(PREFIX) + 43}
            assert tokens.find(PREFIX + "x" * 43) is None
            assert tokens.find("") is None

    asyncio.run(main())


def test_a_name_is_given_once(storage_setting: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(storage_setting, tmp_path) as tokens:
            await tokens.create("ci", GRANT, None)
            with pytest.raises(NameTaken, match="'ci' already"):
                await tokens.create("ci", GRANT, None)

    asyncio.run(main())


def test_there_is_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_module, "MOST_TOKENS", 2)

    async def main() -> None:
        async with opened("sqlite", tmp_path) as tokens:
            await tokens.create("1", GRANT, None)
            await tokens.create("2", GRANT, None)
            with pytest.raises(TooManyTokens, match="revoke some"):
                await tokens.create("3", GRANT, None)

    asyncio.run(main())


def test_a_revoked_token_is_gone_at_once_and_for_good(storage_setting: str, tmp_path: Path) -> None:
    gone: list[str] = []

    async def main() -> None:
        async with opened(storage_setting, tmp_path, lambda token: gone.append(token.name)) as tokens:
            made, secret = await tokens.create("ci", GRANT, None)
            revoking = asyncio.create_task(tokens.revoke(made.id))
            await asyncio.sleep(0)
            assert tokens.find(secret) is None  # before the database has even answered
            assert (await revoking) is not None
            assert await tokens.revoke(made.id) is None
            assert stored(tokens) == []
        async with opened(storage_setting, tmp_path) as tokens:
            assert tokens.find(secret) is None

    asyncio.run(main())
    assert gone == ["ci"]


def test_another_replica_knows_within_a_second(storage_setting: str, tmp_path: Path) -> None:
    gone: list[str] = []

    async def main() -> None:
        async with (
            opened(storage_setting, tmp_path) as here,
            opened(storage_setting, tmp_path, lambda token: gone.append(token.name)) as there,
        ):
            made, secret = await here.create("ci", GRANT, None)
            await until(lambda: there.find(secret) is not None)
            await here.revoke(made.id)
            await until(lambda: there.find(secret) is None)
            await until(lambda: gone == ["ci"])

    assert tokens_module.LOOK_EVERY < 1
    asyncio.run(main())


def test_an_expired_token_is_found_as_such_and_counts_as_unused(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened("sqlite", tmp_path) as tokens:
            _, secret = await tokens.create("brief", GRANT, timedelta(microseconds=1))
            found = tokens.find(secret)
            assert found is not None
            assert found.expired()
            assert next(iter(tokens)).last_used_at is None

    asyncio.run(main())


def test_the_last_use_is_kept_to_the_minute_and_the_latest_of_all_replicas_counts(
    storage_setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 1_800_000_017.0

    async def main() -> None:
        nonlocal clock
        monkeypatch.setattr(time, "time", lambda: clock)
        async with opened(storage_setting, tmp_path) as tokens:
            _, secret = await tokens.create("ci", GRANT, None)
            clock += 600
            tokens.find(secret)
        async with opened(storage_setting, tmp_path) as tokens:
            first = next(iter(tokens)).last_used_at
            assert first is not None
            assert first.timestamp() == clock // 60 * 60
            clock -= 300  # a replica whose clock is behind
            tokens.find(secret)
        async with opened(storage_setting, tmp_path) as tokens:
            assert next(iter(tokens)).last_used_at == first

    asyncio.run(main())


def test_tokens_nobody_can_check_are_not_taken_on_trust_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with opened("sqlite", tmp_path) as tokens:
            _, secret = await tokens.create("ci", GRANT, None)

            def unreadable(known: set[str]) -> None:
                raise StorageUnreadable("the disk is gone")

            monkeypatch.setattr(tokens, "_read", unreadable)
            assert tokens.find(secret) is not None
            now = time.monotonic()
            monkeypatch.setattr(time, "monotonic", lambda: now + tokens_module.TRUSTED_FOR + 1)
            with pytest.raises(TokensUnknown, match="does not answer"):
                tokens.find(secret)
            assert tokens.find("mcpp_unknown") is None
            monkeypatch.undo()
            await until(lambda: tokens.find(secret) is not None)

    asyncio.run(main())


def test_a_list_shows_tokens_in_the_order_of_their_making(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened("sqlite", tmp_path) as tokens:
            for name in ("b", "a", "c"):
                await tokens.create(name, GRANT, None)
            assert [token.name for token in tokens] == ["b", "a", "c"]

    asyncio.run(main())


def test_a_failure_of_the_database_makes_no_token(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened("sqlite", tmp_path) as tokens:
            storage: Storage = tokens._storage
            with storage.write() as connection:
                connection.execute(text("DROP TABLE agent_tokens"))
            with pytest.raises(Exception, match="agent_tokens"):
                await tokens.create("ci", GRANT, None)
            assert list(tokens) == []

    asyncio.run(main())
