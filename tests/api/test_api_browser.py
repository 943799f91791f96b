"""A browser's session on REST: reads by cookie alone, changes with our pages' token, and nothing of it on /mcp."""

from typing import Any

import pytest
from tests.api.serving import Rest

from mcpproxy.access.browser import COOKIE, Session


@pytest.fixture
def session(rest: Rest) -> Session:
    async def log_in() -> Session:
        browsers = rest.proxy.app.browsers
        found = browsers.accept(browsers.invite())
        assert found is not None
        return found

    return rest.run(log_in())


def cookie(session: Session) -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={session.secret}"}


def test_a_session_reads_what_the_operator_reads(rest: Rest, session: Session) -> None:
    for path in ("status", "servers", "docs", "openapi.json", "/metrics"):
        assert rest.ask("GET", path, key=None, headers=cookie(session)).status_code == 200


def test_a_change_needs_the_csrf_token(rest: Rest, session: Session) -> None:
    token = rest.proxy.app.browsers.csrf_token(session)
    body: dict[str, Any] = {"json": {}, "key": None}
    for wrong in ({}, {"X-CSRF-Token": "x"}, {"X-CSRF-Token": session.secret}):
        error = rest.error("PATCH", "config", 403, headers={**cookie(session), **wrong}, **body)
        assert "X-CSRF-Token" in error["message"]
    headers = {**cookie(session), "X-CSRF-Token": token}
    assert rest.ask("PATCH", "config", headers=headers, **body).status_code == 200


def test_a_cookie_that_is_not_known_is_401(rest: Rest, session: Session) -> None:
    rest.error("GET", "status", 401, key=None, headers={"Cookie": f"{COOKIE}=made-up"})
    rest.proxy.app.browsers.close(session)
    rest.error("GET", "status", 401, key=None, headers=cookie(session))


def test_a_wrong_key_is_not_made_good_by_a_cookie(rest: Rest, session: Session) -> None:
    rest.error("GET", "status", 401, key="wrong", headers=cookie(session))


def test_a_cookie_is_no_credential_for_agents(rest: Rest, session: Session) -> None:
    rest.patch("config", {"require_mcp_auth": True})
    try:
        assert rest.ask("POST", "/mcp", key=None, json={}, headers=cookie(session)).status_code == 401
    finally:
        rest.patch("config", {"require_mcp_auth": None})
