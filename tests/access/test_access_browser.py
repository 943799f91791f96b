"""A browser gets in by a link that works once, stays in by a cookie, and changes nothing without our pages' token."""

import pytest

from mcpproxy.access import browser
from mcpproxy.access.browser import COOKIE, Browsers, set_cookie


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def key() -> list[str]:
    return ["the key"]


@pytest.fixture
def browsers(clock: Clock, key: list[str]) -> Browsers:
    return Browsers(lambda: key[0], clock)


def test_a_link_works_once(browsers: Browsers) -> None:
    code = browsers.invite()
    session = browsers.accept(code)
    assert session is not None
    assert browsers.accept(code) is None
    assert browsers.find(f"{COOKIE}={session.secret}") is session


def test_a_link_works_for_minutes(browsers: Browsers, clock: Clock) -> None:
    code = browsers.invite()
    clock.now += browser.LINK_SECONDS + 1
    assert browsers.accept(code) is None


def test_a_link_ends_with_the_key_that_it_came_from(browsers: Browsers, key: list[str]) -> None:
    code = browsers.invite()
    key[0] = "a new key"
    assert browsers.accept(code) is None


def test_a_code_that_is_made_up_opens_nothing(browsers: Browsers) -> None:
    browsers.invite()
    assert browsers.accept("") is None
    assert browsers.accept("x" * 43) is None


def test_only_so_many_links_wait(browsers: Browsers) -> None:
    first = browsers.invite()
    for _ in range(200):
        last = browsers.invite()
    assert browsers.accept(first) is None
    assert browsers.accept(last) is not None


def test_a_session_is_found_among_the_cookies_of_other_programs(browsers: Browsers) -> None:
    session = browsers.open()
    for cookies in (
        f"{COOKIE}={session.secret}",
        f'a={{"x": [1, "2"]}}; {COOKIE}={session.secret}; b',
        f"=;;x;{COOKIE}={session.secret}",
    ):
        assert browsers.find(cookies) is session
    for wrong in (None, "", "a=b", f"{COOKIE}=", f"{COOKIE}=x{session.secret}", f"x{COOKIE}={session.secret}", "é=ü"):
        assert browsers.find(wrong) is None


def test_a_session_ends_when_it_is_idle_too_old_or_closed(browsers: Browsers, clock: Clock) -> None:
    session = browsers.open()
    cookies = f"{COOKIE}={session.secret}"
    clock.now += browser.IDLE_SECONDS - 1
    assert browsers.find(cookies) is session
    clock.now += browser.IDLE_SECONDS + 1
    assert browsers.find(cookies) is None
    busy = browsers.open()
    for _ in range(int(browser.LONGEST_SECONDS / browser.IDLE_SECONDS * 2) + 2):
        clock.now += browser.IDLE_SECONDS / 2
        found = browsers.find(f"{COOKIE}={busy.secret}")
    assert found is None
    closed = browsers.open()
    browsers.close(closed)
    assert browsers.find(f"{COOKIE}={closed.secret}") is None


def test_a_session_ends_with_the_key_that_it_came_from(browsers: Browsers, key: list[str]) -> None:
    session = browsers.open()
    key[0] = "another key"
    assert browsers.find(f"{COOKIE}={session.secret}") is None


def test_a_change_needs_the_sessions_own_csrf_token(browsers: Browsers) -> None:
    session, other = browsers.open(), browsers.open()
    token = browsers.csrf_token(session)
    assert browsers.may(session, "GET", None)
    assert browsers.may(session, "POST", token)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for wrong in (None, "", "x", token[:-1], browsers.csrf_token(other), session.secret, "é"):
            assert not browsers.may(session, method, wrong)


def test_the_cookie_is_for_us_alone(browsers: Browsers) -> None:
    session = browsers.open()
    plain, secure = set_cookie(session, secure=False), set_cookie(session, secure=True)
    assert plain == f"{COOKIE}={session.secret}; Path=/; HttpOnly; SameSite=Strict"
    assert secure == f"{plain}; Secure"
