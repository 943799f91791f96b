"""A real Chromium in front of a real proxy. All of these tests share one browser, in one worker."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from tests.api.serving import Rest, serving

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
ROOT = Path(__file__).parents[2]
ARTIFACTS = ROOT / "test-artifacts"
AXE = ROOT / ".node" / "node_modules" / "axe-core" / "axe.min.js"
HOSTILE = Path(__file__).with_name("hostile_server.py")
PATIENCE = 30_000
"""Milliseconds for anything in the page; far above what it takes, so that a busy machine passes."""

NOTES = {"name": "notes", "command": sys.executable, "args": ["-m", "mcpproxy.demo"]}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("browser"))


def hostile(name: str = "tracker", **more: Any) -> dict[str, Any]:
    """The configuration of the server that tries to get into the page."""
    return {"name": name, "command": sys.executable, "args": [str(HOSTILE)], **more}


class Visitor:
    """An operator's browser window, logged in, that remembers whatever went wrong in it."""

    def __init__(self, page: Page, rest: Rest) -> None:
        self.page = page
        self.rest = rest
        self.troubles: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.troubles.append(f"script: {error}"))
        page.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        # A refused form is answered with a status that Chromium remarks on.
        if message.type == "error" and not re.search(r"status of (401|403|404|409|422)", message.text):
            self.troubles.append(f"console: {message.text}")

    def _on_request(self, request: Any) -> None:
        if not request.url.startswith((self.rest.url, "data:", "blob:")):
            self.troubles.append(f"asked a stranger: {request.url}")

    def log_in(self) -> None:
        """Open a fresh login link, as the proxy prints it."""
        code = self.rest.proxy.app.browsers.invite()
        self.page.goto(f"{self.rest.url}/ui/login?code={code}")
        self.page.wait_for_url("**/ui/")

    def go(self, path: str) -> Page:
        """Open a page of ours."""
        self.page.goto(self.rest.url + path)
        return self.page

    def shot(self, name: str) -> None:
        """Keep a picture of the page."""
        ARTIFACTS.mkdir(exist_ok=True)
        self.page.screenshot(path=ARTIFACTS / f"{name}.png", full_page=True)

    def violations(self) -> list[str]:
        """What axe finds to be serious or critical on the page as it is now."""
        # Through the debugger, which our own content policy does not bind.
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("axe.run({resultTypes: ['violations']}).then(result => result.violations)")
        return [
            f"{each['id']}: {node['html'][:200]} {node['failureSummary']}"
            for each in found
            for node in each["nodes"]
            if each["impact"] in ("serious", "critical")
        ]


Visit = Callable[..., AbstractContextManager[Visitor]]


# No longer than a module: while Playwright runs, its event loop counts as running, and other tests start theirs.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        pytest.fail(f"{CHROMIUM} is not there: run `make test`, which installs it, or set CHROMIUM")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def visit(browser: Browser) -> Visit:
    """Opens a window on a running proxy; at its end nothing may have gone wrong in it."""

    @contextmanager
    def window(
        rest: Rest, *, width: int = 1280, height: int = 900, dark: bool = False, **more: Any
    ) -> Iterator[Visitor]:
        context: BrowserContext = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", **more
        )
        visitor = Visitor(context.new_page(), rest)
        try:
            if more.get("java_script_enabled", True):
                visitor.log_in()
            yield visitor
        finally:
            context.close()
        assert visitor.troubles == []

    return window


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Rest]:
    """A proxy on its first start: nothing is configured."""
    with serving(tmp_path / "home") as rest:
        yield rest


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    """A proxy with servers in several states, one of them hostile."""
    servers = [
        NOTES,
        hostile(),
        {"name": "files", "command": "no-such-program", "args": ["--root", "/srv/docs"]},
        {"name": "billing", "url": "https://billing.example.com/mcp", "quarantined": True},
        {"name": "old", "command": "old-server", "enabled": False},
    ]
    with serving(tmp_path_factory.mktemp("furnished") / "home", servers) as rest:
        yield rest
