"""Every page, narrow and wide, dark and light: readable, reachable, and with nothing in it that upstreams put there."""

import pytest
from playwright.sync_api import expect
from tests.api.serving import Rest
from tests.browser.conftest import Visit

PAGES = {
    "overview": "/ui/",
    "servers": "/ui/servers",
    "server": "/ui/server?name=tracker",
    "server-failing": "/ui/server?name=files",
    "add": "/ui/servers/new",
    "edit": "/ui/server/edit?name=billing",
    "import": "/ui/servers/import",
    "tools": "/ui/tools",
    "search": "/ui/tools?q=find+notes",
    "no-hits": "/ui/tools?q=qwertyuiop",
    "tool": "/ui/tool?name=notes:update_note",
    "tool-hostile": "/ui/tool?name=tracker:evil&q=send+the+keys",
    "tool-json": "/ui/tool?name=tracker:search_issues&mode=json",
    "waiting": "/ui/waiting",
    "activity": "/ui/activity",
    "activity-bad-filter": "/ui/activity?start_time=yesterday",
    "check": "/ui/activity/check",
    "tokens": "/ui/tokens",
    "settings": "/ui/settings",
    "not-found": "/ui/nothing",
}
SIZES = {"wide": 1600, "narrow": 360}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_is_accessible_and_fits_the_screen(furnished: Rest, visit: Visit, size: str, dark: bool) -> None:
    with visit(furnished, width=SIZES[size], dark=dark) as visitor:
        for name, path in PAGES.items():
            page = visitor.go(path)
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= SIZES[size], f"{name} is {width} pixels wide"
            assert visitor.violations() == [], name
            assert page.title() != "owned"
            visitor.shot(f"{name}-{size}-{'dark' if dark else 'light'}")


def test_the_login_page_is_accessible(furnished: Rest, visit: Visit) -> None:
    with visit(furnished, width=360) as visitor:
        visitor.page.get_by_role("button", name="Log out").click()
        expect(visitor.page.get_by_role("status")).to_have_text("You are logged out.")
        assert visitor.violations() == []
        visitor.shot("login-narrow")


def test_a_hostile_upstream_stays_text_wherever_it_is_shown(furnished: Rest, visit: Visit) -> None:
    with visit(furnished) as visitor:
        page = visitor.go("/ui/tool?name=tracker:evil")
        page.get_by_role("button", name="Call evil").click()
        expect(page.locator("#outcome")).to_contain_text("<script>document.title='owned'</script>")
        expect(page.locator("#outcome")).to_contain_text("U+200B")
        expect(page.locator("main img")).to_have_count(0)
        for path in ("/ui/tools", "/ui/server?name=tracker", "/ui/tool?name=tracker:evil", "/ui/activity", "/ui/"):
            page = visitor.go(path)
            expect(page.locator("body")).to_contain_text("evil")
            expect(page.locator("main script, main img, main b")).to_have_count(0)
            assert page.title() != "owned"
        expect(visitor.go("/ui/tool?name=tracker:evil").locator(".upstream")).to_contain_text("U+E0041")
        page = visitor.go("/ui/activity?tool=tracker:evil")
        page.locator("tr.record a").first.click()
        expect(page.locator("#drawer")).to_contain_text("onerror=")
        expect(page.locator("#drawer img, #drawer script, #drawer b")).to_have_count(0)
        assert page.title() != "owned"


def test_the_pages_work_by_keyboard_alone(furnished: Rest, visit: Visit) -> None:
    with visit(furnished) as visitor:
        page = visitor.go("/ui/activity")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        link = page.locator("tr.record a").first
        link.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#drawer")).to_be_visible()
        expect(page.locator("#drawer").get_by_role("heading", level=1)).to_be_visible()
        assert visitor.violations() == []
        page.keyboard.press("Escape")
        expect(page.locator("#drawer")).not_to_be_visible()
        expect(link).to_be_focused()


def test_the_essential_views_need_no_script(furnished: Rest, visit: Visit) -> None:
    with visit(furnished, java_script_enabled=False) as visitor:
        code = furnished.proxy.app.browsers.invite()
        page = visitor.go(f"/ui/login?code={code}")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        page.get_by_role("link", name="Servers", exact=True).click()
        expect(page.get_by_text("command 'no-such-program' was not found on the PATH").first).to_be_visible()
        page.get_by_role("link", name="Tools", exact=True).click()
        page.get_by_label("Search as an agent does").fill("count notes")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("link", name="notes:note_stats").click()
        page.get_by_role("button", name="Call note_stats").click()
        expect(page.locator("#outcome")).to_contain_text("It answered")
        page.get_by_role("link", name="On record").click()
        page.locator("tr.record a").first.click()
        expect(page.get_by_text("Its hash fits what it says")).to_be_visible()
        expect(page.locator("time").first).to_contain_text("UTC")
