"""People who look at pages: their browsers, what went wrong in them, and whether everyone can read what they show."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, ConsoleMessage, Page, expect

from keepsake.core.principal import local_owner
from tests.auth.conftest import Served, as_
from tests.auth.flowing import PASSWORD

PHONE, DESKTOP, WALL = 390, 1440, 3840
WIDTHS, THEMES = (PHONE, DESKTOP), ("light", "dark")
#: Milliseconds after which something has not happened.
PATIENCE = 10_000
#: Where pictures go to be looked at; none are taken where it is not said.
SHOTS = os.environ.get("SHOTS") or os.environ.get("KEEPSAKE_SHOTS", "")


@dataclass
class Looker:
    """Someone with a browser window; whatever it complains of fails the test."""

    server: Served
    page: Page
    problems: list[str] = field(default_factory=list)

    @property
    def base(self) -> str:
        return str(self.server.http.base_url).rstrip("/")

    async def go(self, path: str) -> int:
        """Open a page, and tell its status."""
        answer = await self.page.goto(self.base + path)
        return answer.status if answer else 0

    async def sign_in(self, name: str = "ada", password: str = PASSWORD) -> None:
        """Fill in the form that is open."""
        await self.page.get_by_label("Name or email").fill(name)
        await self.page.get_by_label("Password", exact=True).fill(password)
        await self.page.get_by_role("button", name="Sign in").click()

    async def enter(self, path: str = "/console", name: str = "ada", password: str = PASSWORD) -> None:
        """Open a page that asks to sign in first, and do so."""
        await self.go(path)
        await self.sign_in(name, password)
        await self.page.wait_for_url(self.base + path)

    async def press(self, name: str) -> None:
        """Press a button, and wait for what it leads to."""
        await self.page.get_by_role("button", name=name, exact=True).click()
        await self.page.wait_for_load_state()

    async def sees(self, *texts: str) -> None:
        """Everyone who looks at the page sees these words."""
        for text in texts:
            await expect(self.page.get_by_text(text).filter(visible=True).first).to_be_visible()

    async def shot(self, name: str) -> None:
        """A picture to look at, of each width and theme."""
        folder = Path(SHOTS)
        folder.mkdir(parents=True, exist_ok=True)
        for width in WIDTHS:
            for theme in THEMES:
                await self.as_seen(width, theme)
                await self.page.screenshot(path=folder / f"{name}-{width}-{theme}.png", full_page=width == PHONE)

    async def as_seen(self, width: int, theme: str) -> None:
        """The same page, for another screen."""
        await self.page.set_viewport_size({"width": width, "height": 900 if width > 1000 else 844})
        await self.page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")


@asynccontextmanager
async def looking(browser: Browser, server: Served, width: int = DESKTOP) -> AsyncIterator[Looker]:
    """A window with cookies of its own."""
    context = await browser.new_context(viewport={"width": width, "height": 900}, timezone_id="Asia/Tokyo")
    context.set_default_timeout(PATIENCE)
    someone = Looker(server, await context.new_page())

    def complained(message: ConsoleMessage) -> None:
        # That a page was refused is what some tests are about; the browser says so too.
        if message.type in ("error", "warning") and not message.text.startswith("Failed to load resource"):
            someone.problems.append(message.text)

    someone.page.on("console", complained)
    someone.page.on("pageerror", lambda error: someone.problems.append(str(error)))
    someone.page.on("dialog", lambda dialog: someone.problems.append(f"dialog: {dialog.message}"))
    try:
        yield someone
    finally:
        await context.close()
    assert someone.problems == []


async def check_page(someone: Looker, shot: str = "") -> None:
    """Axe finds nothing at either width in either theme, and nothing is wider than the screen."""
    for width in WIDTHS:
        for theme in THEMES:
            await someone.as_seen(width, theme)
            # A theme changes colours alone.
            found = await Axe().run(someone.page, options={"runOnly": ["color-contrast"]} if theme == "dark" else None)
            told = [
                f"{one['id']} at {width} {theme}: {[node['html'][:200] for node in one['nodes'][:3]]}"
                for one in found.response["violations"]
            ]
            assert told == [], f"{someone.page.url}: {told}"
        await _check_width(someone, width)
    await someone.as_seen(WALL, "light")
    await _check_width(someone, WALL)
    if shot and SHOTS:
        await someone.shot(shot)


async def _check_width(someone: Looker, width: int) -> None:
    wide = await someone.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{someone.page.url} is {wide} px wider than a screen of {width}"


async def add_person(server: Served, name: str, role: str | None = None, bank: str | None = None) -> None:
    """Someone with a password."""
    await as_(server.app, local_owner(), "user.add", name=name, role=role, bank=bank)
    await as_(server.app, local_owner(), "user.password", name=name, password=PASSWORD)
