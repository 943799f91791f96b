"""A canary in every place where a secret can stand: no surface of REST may show one."""

import logging
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.api.serving import PREFIX, Rest, serving
from tests.calls.proxy import ECHO, KEY, echo

CANARIES = {
    place: f"canary-{place}-4f9a1c77e2"
    for place in ("env", "expanded", "args", "inline", "user", "query", "header", "oauth", "refused")
}
TELLTALE = "import os, sys; print(dict(os.environ), sys.argv, file=sys.stderr); sys.exit(3)"


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CANARY_EXPANDED", CANARIES["expanded"])
        secrets = ["--token", CANARIES["args"], f"--api-key={CANARIES['inline']}"]
        env = {"API_TOKEN": CANARIES["env"], "OTHER_SECRET": "${env:CANARY_EXPANDED}"}
        servers = [
            {"name": "good", "command": sys.executable, "args": [str(ECHO), *secrets], "env": env},
            {"name": "telltale", "command": sys.executable, "args": ["-c", TELLTALE, *secrets], "env": env},
            {
                "name": "remote",
                "url": f"http://me:{CANARIES['user']}@127.0.0.1:9/mcp?api_key={CANARIES['query']}",
                "headers": {"Authorization": f"Bearer {CANARIES['header']}", "X-Auth-Token": CANARIES["header"]},
            },
            {
                "name": "guarded",
                "url": "http://127.0.0.1:9/mcp",
                "oauth": {"client_id": "me", "client_secret": CANARIES["oauth"]},
            },
        ]
        before = logging.getLogger("mcpproxy").level
        home = tmp_path_factory.mktemp("secrets") / "data"
        with serving(home, servers, log_level="debug") as found:
            deadline = time.monotonic() + 20
            while "reason" not in found.get("servers/telltale") or "reason" not in found.get("servers/remote"):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield found
        logging.getLogger("mcpproxy").setLevel(before)


def clean(text: str, *, key: bool = True) -> None:
    found = [place for place, canary in CANARIES.items() if canary in text]
    assert not found, (found, text[:2000])
    assert not key or KEY not in text


READS = [
    "status",
    "servers",
    *(f"servers/{name}" for name in ("good", "telltale", "remote", "guarded")),
    *(f"servers/{name}/logs" for name in ("good", "telltale", "remote", "guarded")),
    "servers/good/tools",
    "tools",
    "tools/search?q=reads",
    "config",
    "tokens",
    "activity?limit=1000",
    "activity/summary",
    "activity/export",
    "activity/export?format=csv",
    "activity/verify",
    "/metrics",
    "docs",
    "openapi.json",
]


def test_no_read_shows_a_secret(rest: Rest) -> None:
    use_everything(rest)
    for path in READS:
        answer = rest.ask("GET", path)
        assert answer.status_code == 200, path
        clean(answer.text)


def use_everything(rest: Rest) -> None:
    """Leave as many traces as can be left."""
    everything = " ".join(canary for place, canary in CANARIES.items() if place != "refused")
    body = {"name": "good:line", "variant": "read", "arguments": {"text": everything}, "intent": {"reason": everything}}
    rest.ask("POST", "tools/call", json=body)
    rest.ask("POST", "tools/call", json={"name": f"good:{CANARIES['env']}", "variant": "read"})
    rest.ask("POST", "tools/call", json={"name": "remote:x", "variant": "read"})
    for name in ("good", "telltale", "remote"):
        rest.post(f"servers/{name}/restart")
    rest.ask("POST", "servers/guarded/login")
    rest.patch("servers/good", {"working_dir": "/tmp"})


def test_the_masks_are_there_to_be_seen(rest: Rest) -> None:
    shown = {server["name"]: server["config"] for server in rest.get("servers")["servers"]}
    assert shown["good"]["env"] == {"API_TOKEN": "***", "OTHER_SECRET": "${env:CANARY_EXPANDED}"}
    assert shown["good"]["args"][1:] == ["--token", "***", "--api-key=***"]
    assert "***" in shown["remote"]["url"]
    assert shown["remote"]["headers"]["Authorization"] == "Bearer ***"
    assert shown["guarded"]["oauth"]["client_secret"] == "***"
    assert any("***" in line for line in rest.get("servers/telltale/logs")["lines"])


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "servers", {"name": "x", "url": f"ftp://me:{CANARIES['refused']}@h/"}),
        ("POST", "servers", {"name": "x", "command": "c", "env": {f"T={CANARIES['refused']}": "x"}}),
        ("POST", "servers", {"name": "x", "url": "http://h/", "headers": {"A": f"{CANARIES['refused']}\n"}}),
        ("PATCH", "config", {"storage": f"mysql://me:{CANARIES['refused']}@h/db"}),
        ("PATCH", "config", {"api_key": [CANARIES["refused"]]}),
        (
            "POST",
            "config/validate",
            {"api_key": {"x": CANARIES["refused"]}, "storage": f"x://:{CANARIES['refused']}@h"},
        ),
    ],
)
def test_a_refusal_does_not_repeat_the_secret_that_it_refuses(
    rest: Rest, method: str, path: str, body: dict[str, Any]
) -> None:
    answer = rest.ask(method, path, json=body)
    assert answer.status_code in (200, 422)
    clean(answer.text)


def test_an_answer_to_a_change_shows_no_secret(rest: Rest) -> None:
    added = echo("added", enabled=False) | {"env": {"TOKEN": CANARIES["refused"]}}
    answers = [
        rest.ask("POST", "servers", json=added),
        rest.ask("PATCH", "servers/added", json={"headers": {"Authorization": f"Bearer {CANARIES['refused']}"}}),
        rest.ask("POST", "servers/added/disable"),
        rest.ask("PATCH", "config", json={"tools_limit": 14}),
        rest.ask("DELETE", "servers/added"),
    ]
    assert [answer.status_code for answer in answers] == [201, 200, 200, 200, 200]
    for answer in answers:
        clean(answer.text)


def test_the_events_of_all_that_show_no_secret(rest: Rest) -> None:
    first = rest.get("activity?limit=1000")["activities"][-1]["id"]
    count = rest.get("activity")["total"] - 1
    with (
        httpx2.Client(timeout=20, trust_env=False) as client,
        client.stream(
            "GET", f"{rest.url}{PREFIX}/events", headers={"X-API-Key": KEY, "Last-Event-ID": first}
        ) as answer,
    ):
        got = 0
        for line in answer.iter_lines():
            clean(line)
            got += line.startswith("event: activity")
            if got == count:
                break


def test_a_login_link_is_in_no_later_answer_and_in_no_log(rest: Rest, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        link = rest.post("dashboard/login")["login_url"]
        code = link.partition("?code=")[2]
        assert code in rest.ask("GET", link.removeprefix(rest.url), key=None).text
        assert rest.ask("POST", "/ui/login", key=None, data={"code": code}).status_code == 303
        for path in READS:
            assert code not in rest.ask("GET", path).text
    assert code not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("mcpproxy"))


def test_a_token_is_in_no_later_answer(rest: Rest) -> None:
    token = rest.post("tokens", {"name": "canary"}, status=201)["token"]
    rest.get("tools", key=token)
    for path in READS:
        assert token not in rest.ask("GET", path).text
