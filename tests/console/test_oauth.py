"""The whole of OAuth in a real browser, with the official MCP client on the other side, and what must not work."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from playwright.async_api import Browser, expect

from keepsake.core.principal import local_owner
from tests.auth.conftest import as_, served
from tests.auth.flowing import Person
from tests.auth.flowing import browser as program
from tests.auth.test_oauth_sdk import Agent
from tests.console.looking import Looker, add_person, check_page, looking

NAME = 'Tea <script>alert(1)</script> "timer'


@dataclass
class Callback:
    """Where the client is answered: a real port of this machine."""

    port: int = 0
    answer: asyncio.Queue[dict[str, str]] = field(default_factory=asyncio.Queue)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode()
        if line.startswith("GET /callback?"):
            self.answer.put_nowait(dict(parse_qsl(urlsplit(line.split()[1]).query)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def answered() -> AsyncIterator[Callback]:
    callback = Callback()
    listening = await asyncio.start_server(callback, "127.0.0.1", 0)
    callback.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield callback


@dataclass
class InBrowser(Agent):
    """The same client, whose page is opened by a person in Chromium."""

    looker: Looker = field(kw_only=True)
    callback: Callback = field(kw_only=True)
    untick: tuple[str, ...] = ()

    async def open(self, url: str) -> None:
        page = self.looker.page
        await page.goto(url)
        if "/console/signin" in page.url:
            await self.looker.sign_in()
        await expect(page.get_by_role("heading", name=f"Allow {NAME} to use your memory?")).to_be_visible()
        await check_page(self.looker, "consent")
        for label in self.untick:
            await page.get_by_role("checkbox", name=label).uncheck()
        await page.get_by_role("button", name="Allow for 30 days").click()
        await page.wait_for_url("http://127.0.0.1:*/callback?*")

    async def back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(await self.callback.answer.get())

    def asking(self, path: str) -> OAuthClientProvider:
        metadata = OAuthClientMetadata.model_validate(
            {
                "redirect_uris": [f"http://127.0.0.1:{self.callback.port}/callback"],
                "client_name": NAME,
                "token_endpoint_auth_method": "none",
            }
        )
        return OAuthClientProvider(self.ada.base + path, metadata, self.storage, self.open, self.back)


async def test_a_person_allows_the_official_client_in_the_browser(browser: Browser, tmp_path: Path) -> None:
    async with (
        served(tmp_path) as server,
        looking(browser, server) as ada,
        program(server) as http,
        answered() as callback,
    ):
        await add_person(server, "ada", "owner")
        for bank in ("default", "private"):
            await as_(server.app, local_owner(), "bank.create", name=bank)
        unticked = ("memory:write", "private", "Banks that you get later")
        agent = InBrowser(Person(server, http), looker=ada, callback=callback, untick=unticked)
        auth = agent.asking("/mcp")

        assert await agent.call("/mcp", "list_memories", auth)
        grants = (await as_(server.app, local_owner(), "grant.list")).model_dump()["grants"]
        assert grants[0]["banks"] == ["default"]
        assert "memory:write" not in grants[0]["scopes"] and "memory:read" in grants[0]["scopes"]
        assert grants[0]["client"] == NAME
        assert agent.storage.tokens is not None
        refused = await server.mcp(
            "tools/call", agent.storage.tokens.access_token, name="list_memories", arguments={"bank_id": "private"}
        )
        assert refused.status_code == 403


async def test_cancelling_and_tricks_lead_nowhere(browser: Browser, tmp_path: Path) -> None:
    async with (
        served(tmp_path) as server,
        looking(browser, server) as ada,
        program(server) as http,
        answered() as callback,
    ):
        await add_person(server, "ada", "owner")
        person, place = Person(server, http), f"http://127.0.0.1:{callback.port}/callback"
        client = (await person.register(place, client_name=NAME))["client_id"]
        path = f"/api/auth/mcp/authorize?{urlencode(person.asking(client, redirect_uri=place))}"
        await ada.enter(path)
        await ada.page.get_by_role("button", name="Cancel").click()
        assert (await callback.answer.get())["error"] == "access_denied"

        # A page of another site may not show ours, nor send its forms.
        answer = await http.get("/console/signin")
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-frame-options"] == "DENY"
        # After signing in one stays here, whatever an address says.
        for next in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
            await ada.go(f"/console/signin?{urlencode({'next': next})}")
            await ada.sign_in()
            await ada.page.wait_for_url(f"{ada.base}/console")
        await ada.go(
            path.replace(urlencode({"redirect_uri": place}), urlencode({"redirect_uri": "https://evil.example"}))
        )
        await ada.sees("Nothing was allowed")
        await check_page(ada, "refused")
