"""The console's shell: who gets in, what everyone finds there, and that it is for everyone to read."""

from pathlib import Path

from playwright.async_api import Browser, expect

from keepsake.core.principal import local_owner
from tests.auth.conftest import as_, served
from tests.console.looking import DESKTOP, PHONE, add_person, check_page, looking


async def test_a_newcomer_is_the_local_owner_and_sees_the_first_steps(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        assert await me.go("/console") == 200
        await me.sees("Nothing to remember yet", "Local owner", "keepsake connect claude-code --write --hooks")
        await check_page(me, "empty")

        assert await me.go("/console/no/such/page") == 404
        await me.sees("Nothing is here")
        await expect(me.page.locator(".side nav a", has_text="Memories")).to_be_visible()
        assert await me.go("/console/b/nowhere/memories") == 404
        await check_page(me, "missing")


async def test_home_shows_the_banks_in_the_theme_that_was_chosen(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        await as_(server.app, local_owner(), "memory.retain", content="Tea is at four.")
        await me.go("/console")
        await me.sees("What your agents know", "default")
        loaded = await me.page.evaluate(
            "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
            ".map(one => one.transferSize)"
        )
        assert len(loaded) <= 10 and 0 < sum(loaded) < 100_000
        await check_page(me, "home")

        await me.as_seen(1440, "light")
        await me.page.locator(".side").get_by_role("button", name="Dark").click()
        assert await me.page.locator("html").get_attribute("data-theme") == "dark"
        await me.page.reload()
        assert await me.page.locator("html").get_attribute("data-theme") == "dark"
        await expect(me.page.locator(".side").get_by_role("button", name="Dark")).to_have_attribute(
            "aria-pressed", "true"
        )


async def test_once_there_are_people_one_signs_in_and_comes_back(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as ada:
        await add_person(server, "ada", "owner")
        await ada.enter("/console/more?x=1")
        await ada.sees("ada, owner")
        await check_page(ada, "more")

        await ada.as_seen(PHONE, "light")
        await ada.go("/console/settings/tools")
        chosen = await ada.page.locator(".tabs [aria-current]").bounding_box()
        assert chosen is not None and chosen["x"] >= 0 and chosen["x"] + chosen["width"] <= PHONE
        await ada.as_seen(DESKTOP, "light")
        await ada.go("/console/more")

        await ada.page.locator("main").get_by_role("button", name="Sign out").click()
        await ada.page.wait_for_url("**/console/signin")
        await check_page(ada, "signin")
        await ada.go("/console")
        assert "/console/signin?next=%2Fconsole" in ada.page.url
