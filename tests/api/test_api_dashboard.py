"""`/dashboard/login`: whoever has the key gets a link that lets one browser in, once; a session gets none."""

from datetime import UTC, datetime, timedelta

import httpx2
from tests.api.serving import Rest
from tests.calls.proxy import KEY

from mcpproxy.access.browser import COOKIE


def browser(rest: Rest) -> httpx2.Client:
    return httpx2.Client(base_url=rest.url, timeout=30, trust_env=False)


def code_in(link: str) -> str:
    return link.partition("?code=")[2]


def test_a_link_lets_in_once(rest: Rest) -> None:
    link = rest.post("dashboard/login")["login_url"]
    assert link.startswith(f"{rest.url}/ui/login?code=")
    with browser(rest) as first, browser(rest) as second:
        assert code_in(link) in first.get(link).text
        assert first.post("/ui/login", data={"code": code_in(link)}).status_code == 303
        assert first.get("/ui/").status_code == 200
        refused = second.post("/ui/login", data={"code": code_in(link)})
        assert (refused.status_code, "used already" in refused.text) == (401, True)
        assert second.get("/ui/").status_code == 303


def test_a_link_says_until_when_it_works(rest: Rest) -> None:
    before = datetime.now(UTC)
    until = datetime.fromisoformat(rest.post("dashboard/login")["expires_at"])
    assert before < until <= datetime.now(UTC) + timedelta(minutes=5)


def test_every_link_is_another(rest: Rest) -> None:
    links = {rest.post("dashboard/login")["login_url"] for _ in range(3)}
    assert len(links) == 3


def test_an_agent_token_gets_none(rest: Rest) -> None:
    made = rest.post("tokens", {"name": "agent", "allow": ["read", "write", "destructive"]}, status=201)
    error = rest.error("POST", "dashboard/login", 403, key=made["token"])
    assert error["code"] == "FORBIDDEN"


def test_a_session_opens_no_other(rest: Rest) -> None:
    browsers = rest.proxy.app.browsers
    session = browsers.open()
    headers = {"Cookie": f"{COOKIE}={session.secret}", "X-CSRF-Token": browsers.csrf_token(session)}
    assert rest.ask("GET", "status", key=None, headers=headers).status_code == 200
    error = rest.error("POST", "dashboard/login", 403, key=None, headers=headers)
    assert "session" in error["message"]


def test_a_link_of_the_old_key_is_worth_nothing_under_a_new_one(rest: Rest) -> None:
    code = code_in(rest.post("dashboard/login")["login_url"])
    new = "f" * 64
    rest.patch("config", {"api_key": new})
    try:
        with browser(rest) as late:
            assert late.post("/ui/login", data={"code": code}).status_code == 401
    finally:
        rest.patch("config", {"api_key": KEY}, key=new)
