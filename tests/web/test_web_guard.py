"""Who gets in, and which changes are a session's own wish."""

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from starlette.routing import Route
from tests.api.serving import Rest, serving
from tests.calls.proxy import echo

from mcpproxy.access.browser import COOKIE
from mcpproxy.web.app import PAGES

ALL = [route for page in PAGES for route in page.routes]
ROUTES = sorted(
    {(method, route.path) for route in ALL for method in route.methods or () if method != "HEAD"}
    | {("GET", "/"), ("GET", "/ui"), ("GET", "/ui/nav")}
)
OPEN = {("GET", "/ui/login"), ("POST", "/ui/login")}
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    with serving(tmp_path_factory.mktemp("web") / "home", [echo()]) as found:
        yield found


class Browser:
    """A browser without scripts: follows no redirect by itself, and keeps its cookie."""

    def __init__(self, rest: Rest) -> None:
        self.rest = rest
        self._client = httpx2.Client(base_url=rest.url, timeout=30, trust_env=False)

    def get(self, path: str, **more: Any) -> httpx2.Response:
        return self._client.get(path, **more)

    def post(self, path: str, fields: dict[str, str] | None = None, **headers: str) -> httpx2.Response:
        return self._client.post(path, data=fields or {}, headers=headers)

    def log_in(self) -> str:
        """Open a session; gives its CSRF token."""
        code = self.rest.proxy.app.browsers.invite()
        answer = self.post("/ui/login", {"code": code})
        assert answer.status_code == 303, answer.text
        found = re.search(r'name="csrf" value="([0-9a-f]{64})"', self.get("/ui/").text)
        assert found is not None
        return found[1]


@pytest.fixture
def stranger(rest: Rest) -> Browser:
    return Browser(rest)


def test_every_route_is_looked_at() -> None:
    assert all(isinstance(route, Route) for route in ALL)
    assert len(ROUTES) > 25


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if route not in OPEN])
def test_every_route_without_a_session_leads_to_the_login_page(stranger: Browser, method: str, path: str) -> None:
    answer = stranger.get(path) if method == "GET" else stranger.post(path, {"name": "echo", "action": "disable"})
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/ui/login")
    assert answer.content == b""
    part = stranger.get(path, headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["hx-redirect"]) == (401, "/ui/login")


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if route[0] == "POST" and route not in OPEN])
def test_a_change_without_the_sessions_token_is_refused(rest: Rest, stranger: Browser, method: str, path: str) -> None:
    stranger.log_in()
    fields = {"name": "echo", "action": "remove", "tools_limit": "99", "decision": "approve"}
    for token in ({}, {"csrf": ""}, {"csrf": "0" * 64}):
        assert stranger.post(path, fields | token).status_code == 403
    assert rest.get("servers/echo")["state"] == "ready"
    assert rest.get("config")["config"]["tools_limit"] == 15


def test_the_token_of_one_session_is_worth_nothing_in_another(rest: Rest, stranger: Browser) -> None:
    token = stranger.log_in()
    other = Browser(rest)
    other.log_in()
    assert other.post("/ui/tokens", {"csrf": token, "name": "x", "allow": "read"}).status_code == 403
    assert list(rest.proxy.app.tokens) == []


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x", ""])
def test_only_forms_are_taken(rest: Rest, kind: str) -> None:
    browser = Browser(rest)
    browser.log_in()
    answer = browser._client.post("/ui/servers/new", content=b"{}", headers={"Content-Type": kind})
    assert answer.status_code == 415


def test_a_login_link_works_once_and_only_when_it_is_confirmed(rest: Rest, stranger: Browser) -> None:
    code = rest.proxy.app.browsers.invite()
    for _ in range(2):  # whoever only looks at it does not use it up
        looked = stranger.get(f"/ui/login?code={code}")
        assert looked.status_code == 200
        assert "set-cookie" not in looked.headers
    answer = stranger.post("/ui/login", {"code": code})
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    again = Browser(rest).post("/ui/login", {"code": code})
    assert again.status_code == 401
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize("key", ["", "wrong", "mcpp_" + "a" * 43])
def test_a_wrong_key_opens_nothing(stranger: Browser, key: str) -> None:
    answer = stranger.post("/ui/login", {"key": key})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_an_agent_token_does_not_open_the_dashboard(rest: Rest, stranger: Browser) -> None:
    made = rest.post("tokens", {"name": "agent"}, status=201)
    assert stranger.post("/ui/login", {"key": made["token"]}).status_code == 401
    rest.delete(f"tokens/{made['id']}")


@pytest.mark.parametrize(
    "wanted",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "/ui/\\x", "/ui/\nx", "/api/v1/status", "x"],
)
def test_a_login_leads_to_pages_of_ours_only(rest: Rest, stranger: Browser, wanted: str) -> None:
    code = rest.proxy.app.browsers.invite()
    answer = stranger.post("/ui/login", {"code": code, "next": wanted})
    assert answer.headers["location"] == "/ui/"


def test_a_login_leads_back_to_the_page_that_was_asked_for(stranger: Browser) -> None:
    location = stranger.get("/ui/tools?q=a%20b&server=echo").headers["location"]
    page = stranger.get(location).text
    assert 'name="next" value="/ui/tools?q=a%20b&amp;server=echo"' in page


def test_logging_out_ends_the_session(rest: Rest, stranger: Browser) -> None:
    token = stranger.log_in()
    cookies = dict(stranger._client.cookies)
    assert stranger.post("/ui/logout", {"csrf": token}).status_code == 303
    late = Browser(rest)
    late._client.cookies.update(cookies)
    assert late.get("/ui/").status_code == 303


@pytest.mark.parametrize("path", ["/ui/login", "/ui/", "/ui/nothing", "/ui/servers", "/ui/static/app.js", "/ui/tool"])
def test_every_answer_forbids_what_pages_do_not_need(stranger: Browser, path: str) -> None:
    stranger.log_in()
    headers = stranger.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert ("immutable" in headers["cache-control"]) == path.startswith("/ui/static/")


@pytest.mark.parametrize("path", ["/ui/", "/ui/login", "/ui/servers/new", "/ui/settings", "/ui/activity"])
def test_nothing_in_a_page_is_inline(stranger: Browser, path: str) -> None:
    stranger.log_in()
    page = stranger.get(path).text
    assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>|<style|\sstyle=|\son\w+=|javascript:|hx-on", page)
    assert not re.search(r'(?:src|href|action)="(?:https?:)?//', page)


def test_an_asset_that_is_not_there_is_not_looked_for_elsewhere(stranger: Browser) -> None:
    for name in ("nothing.css", "../app.py", "..%2fapp.py", "%2e%2e/app.py"):
        assert stranger.get(f"/ui/static/{name}").status_code in (303, 404)


def test_a_form_that_is_too_large_is_refused(rest: Rest, stranger: Browser) -> None:
    token = stranger.log_in()
    many = stranger._client.post("/ui/tokens", content=b"a=1&" * 3000, headers={"Content-Type": FORM})
    assert many.status_code == 400
    large = b"csrf=%s&name=%s" % (token.encode(), b"x" * (rest.proxy.app.config.max_request_bytes))
    assert stranger._client.post("/ui/tokens", content=large, headers={"Content-Type": FORM}).status_code == 413


def test_another_origin_is_turned_away(rest: Rest, stranger: Browser) -> None:
    token = stranger.log_in()
    answer = stranger.post("/ui/tokens", {"csrf": token, "name": "x"}, Origin="http://evil.example")
    assert answer.status_code == 403
    assert stranger.get("/ui/", headers={"Host": "evil.example"}).status_code == 421
