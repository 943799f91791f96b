"""Do docs/operations.md and SECURITY.md tell the truth? Their limits are the code's, and their commands are run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest
from tests.config.test_config_docs import documented
from tests.faults.stores import call, new_proxy
from tests.faults.upstream_table import FAULTS
from tests.journeys.support import CONSOLE, KEY, Proxy, environment
from tests.support.postgres import postgres_server, postgres_url

from mcpproxy import asgi, http1
from mcpproxy.access import tokens
from mcpproxy.activity import journal
from mcpproxy.agent import sessions
from mcpproxy.api.services import AllTurns
from mcpproxy.calls import reports
from mcpproxy.catalog import listing, tool
from mcpproxy.config.models import Config
from mcpproxy.storage import engine
from mcpproxy.upstream import connection, log
from mcpproxy.wire import channel, events

__all__ = ["postgres_server", "postgres_url"]

ROOT = Path(__file__).parents[2]
PAGE_TEXT = (ROOT / "docs" / "operations.md").read_text()
SECURITY = (ROOT / "SECURITY.md").read_text()
TOLD_ELSEWHERE = {
    "cannot be started",
    "answers after the timeout",
    "answers with an error",
    "breaks the schema that it declared",
    "wants a login",
    "lists new or other tools",
}
MEBIBYTE, KIBIBYTE = 1024 * 1024, 1024


def blocks(section: str) -> list[str]:
    """The commands of a section."""
    text = PAGE_TEXT.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def shell(commands: str, proxy: Proxy, more: Mapping[str, str] | None = None) -> str:
    """Run commands of the page as a user would, in the proxy's home."""
    path = f"{CONSOLE.parent}:{os.environ['PATH']}"
    places = {"MCPPROXY_DATA": str(proxy.data), "MCPPROXY_CONFIG": str(proxy.config)}
    url = {"MCPPROXY_URL": proxy.url.removesuffix("/mcp")}
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", commands],
        env={**environment(proxy.home), **places, **url, "PATH": path, **(more or {})},
        cwd=proxy.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def calls(proxy: Proxy) -> int:
    found: int = proxy.api("/activity?type=tool_call")["total"]
    return found


def test_every_limit_of_the_configuration_is_there_with_its_default() -> None:
    limits = {key: default for key, default in documented(Config) if re.fullmatch(r'`(\d+|"\d+[a-z]+")`', default)}
    written = dict(
        re.findall(r"^\| `([\w.]+)` \| (`[^`]+`) \| \S", PAGE_TEXT.split("These are fixed:")[0], re.MULTILINE)
    )
    assert written == limits


def test_the_fixed_limits_are_those_of_the_code() -> None:
    turns = AllTurns.fresh()
    fixed = {
        "headers of a request": f"{http1.HEADER_SECONDS:g} s",
        "the head of a request, past its first packet": f"{http1.LONGEST_HEAD // KIBIBYTE} KiB",
        "body of a request": f"{asgi.BODY_SECONDS:g} s",
        "a client that takes nothing of its answer": f"{http1.STALLED_SECONDS:g} s",
        "a session without a request": f"{sessions.IDLE_SECONDS / 60:g} min",
        "progress that waits for a slow client": f"{reports.MOST_REPORTS} reports, "
        f"{reports.MOST_BYTES // MEBIBYTE} MiB",
        "calls that wait for one server": f"{channel.MAX_PENDING}",
        "records that wait to be written": f"{journal.MOST_WAITING}",
        "tools of one server": f"{listing.MAX_TOOLS}, {connection._MAX_LISTING_BYTES // MEBIBYTE} MiB",
        "one tool's definition": f"{tool.MAX_DEFINITION_BYTES // KIBIBYTE} KiB",
        "notifications of one server": f"{channel._MAX_NOTICES_PER_SECOND} a second",
        "output of a server that answers nothing": f"{events.MAX_JUNK_BYTES // MEBIBYTE} MiB",
        "a server's stderr": f"{log.MAX_BYTES_PER_SECOND // KIBIBYTE} KiB a second, "
        f"{log.MAX_FILE_BYTES // MEBIBYTE} MiB in its file",
        "event streams; exports; verifications of the log": f"{turns.streams._most}; {turns.exports._most}; "
        f"{turns.verifications._most} at a time",
        "agent tokens": f"{tokens.MOST_TOKENS}",
        "a wait for another process's lock on the database": f"{engine.BUSY_TIMEOUT_MS / 1000:g} s",
    }
    table = PAGE_TEXT.split("These are fixed:")[1].split("\n## ")[0]
    assert dict(re.findall(r"^\| ([^|`]+?) \| ([^|]+?) \| \S", table, re.MULTILINE)) == {
        "what": "bound",
        **fixed,
    }


def test_a_backup_is_made_while_it_runs_and_put_back(tmp_path: Path) -> None:
    by_sqlite, by_program, restore, _ = blocks("Backup")
    with new_proxy(tmp_path / "home") as proxy:
        proxy.start()
        for _ in range(3):
            assert call(proxy).status == 200
        proxy.await_ready("tiny")
        shell(PAGE_TEXT.split("```sh\n")[1].split("```")[0] + "".join(blocks("Health and metrics")), proxy)
        _, metrics = proxy.get("/metrics", {"X-API-Key": KEY})
        for name in re.findall(r"^\| `(mcpproxy_\w+)` \|", PAGE_TEXT, re.MULTILINE):
            assert f"\n{name}" in metrics
        shell(by_sqlite, proxy)
        if shutil.which("sqlite3"):
            shell(by_program, proxy)
        for _ in range(2):
            assert call(proxy).status == 200
        assert calls(proxy) == 5
        kept = {path.name: path.stat().st_mode & 0o077 for path in (proxy.home / "backup").iterdir()}
        assert {"mcpproxy.db", "activity-signing.key", "mcp_config.json"} <= set(kept)
        assert not kept["mcpproxy.db"] and not kept["activity-signing.key"]
        assert proxy.stop() == 0
        assert "Nothing is broken." in shell(restore, proxy)
        proxy.start()
        assert calls(proxy) == 3


def test_a_postgresql_database_is_backed_up_and_put_back(postgres_url: str, tmp_path: Path) -> None:
    programs = Path(str(import_module("pgserver").__file__)).parent / "pginstall" / "bin"
    dump, restore = blocks("Backup")[-1].splitlines()
    settings = {"STORAGE": postgres_url, "PATH": f"{programs}:{CONSOLE.parent}:{os.environ['PATH']}"}
    with new_proxy(tmp_path / "home", storage=postgres_url) as proxy:
        (proxy.home / "backup").mkdir()
        proxy.plain_user = False
        proxy.start()
        assert call(proxy).status == 200
        proxy.stop()
        shell(dump, proxy, settings)
        proxy.start()
        assert call(proxy).status == 200
        assert calls(proxy) == 2
        proxy.stop()
        shell(restore, proxy, settings)
        proxy.start()
        assert calls(proxy) == 1


def test_the_faults_of_servers_are_told_as_they_are() -> None:
    table = PAGE_TEXT.split("\n### A server\n")[1].split("\n### ")[0]
    rows = re.findall(r"^\| (\w[^|]+?) \| `\w+`[^|]* \| (?:`(\w+)`)?[^|]* \| `([^`]+)`", table, re.MULTILINE)
    told = [name for name, code, words in rows if any(f.code == code and re.search(f.says, words) for f in FAULTS)]
    assert set(told) >= {name for name, _, _ in rows} - TOLD_ELSEWHERE
    assert len(told) >= 7


@pytest.mark.parametrize("name", ["docs/operations.md", "SECURITY.md"])
def test_every_link_and_every_test_that_is_named_is_there(name: str) -> None:
    page = ROOT / name
    links = [link for link in re.findall(r"\]\(([^)]+)\)", page.read_text()) if not link.startswith("http")]
    assert links
    for link in links:
        target, _, anchor = link.partition("#")
        found = page.parent / target if target else page
        assert found.exists(), link
        titles = re.findall(r"^#+ (.+)$", found.read_text(), re.MULTILINE)
        assert not anchor or anchor in {re.sub(r"[^a-z0-9_ -]", "", t.lower()).replace(" ", "-") for t in titles}, link
    for test in re.findall(r"`(tests/[\w/.]+)`", page.read_text()):
        assert (ROOT / test).is_file(), test


def test_every_promise_names_where_it_is_shown() -> None:
    promises = SECURITY.split("\n## What is promised\n")[1].split("\n## ")[0]
    rows = [line for line in promises.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) >= 10
    for row in rows:
        assert re.search(r"\| \[docs/.+\| `tests/", row), row
