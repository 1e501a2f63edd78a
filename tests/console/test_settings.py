"""Settings: keys, clients, people, programs, tools and checks are made, shown once and ended, each on its page."""

import io
import json
import re
import zipfile
from html import unescape
from pathlib import Path

import httpx
from playwright.async_api import Browser, expect

from keepsake.core.principal import local_owner
from keepsake.ops import watching
from keepsake.surfaces.connect.clients import CLIENTS
from tests.auth.conftest import Served, as_, served
from tests.auth.flowing import Person, hidden
from tests.auth.flowing import browser as program
from tests.console.looking import add_person, check_page, looking

EVIL = '"><img src=x onerror=alert(1)>'
KEY = re.compile(r"ks_live_[0-9a-f]{64}")


async def _signed_in(server: Served, http: httpx.AsyncClient, name: str = "ada") -> Person:
    someone = Person(server, http)
    await someone.sign_in(name)
    return someone


async def _send(someone: Person, page: str, path: str, **form: object) -> httpx.Response:
    """Fill in a form of a page."""
    shown = await someone.http.get(page)
    assert shown.status_code == 200, shown.text
    return await someone.post(path, {"csrf": hidden(shown.text, "csrf"), **form})


async def _owner(server: Served, http: httpx.AsyncClient) -> Person:
    await add_person(server, "ada", "owner")
    await as_(server.app, local_owner(), "bank.create", name="atlas")
    return await _signed_in(server, http)


async def test_a_bundle_brings_a_key_of_its_own_in_its_file_or_shows_it_once(tmp_path: Path) -> None:
    async with served(tmp_path) as server, program(server) as http:
        ada = await _owner(server, http)
        page = "/console/settings/clients/cursor?only=atlas&dialect=xerotier&tier=core"
        shown = unescape((await http.get(page)).text)
        assert "10 of 29 tools" in shown and "ws_" in shown and "proj_" in shown and not KEY.search(shown)
        assert "keepsake connect cursor --bank atlas --dialect xerotier --tier core --write --hooks" in shown

        form = {"only": "atlas", "dialect": "xerotier", "tier": "core"}
        loaded = await _send(ada, page, "/console/settings/clients/cursor/bundle", **form, key="file")
        assert loaded.headers["content-disposition"] == 'attachment; filename="keepsake-cursor-atlas.zip"'
        held = zipfile.ZipFile(io.BytesIO(loaded.content))
        assert held.namelist() == ["README.txt", ".cursor/mcp.json", ".cursor/rules/xerotier.mdc"]
        assert "For .gitignore:\n.cursor/mcp.json" in held.read("README.txt").decode()
        entry = json.loads(held.read(".cursor/mcp.json"))["mcpServers"]["xerotier"]
        first = KEY.search(entry["headers"]["Authorization"])
        assert first and entry["headers"]["X-Xerotier-Workspace"].startswith("ws_")
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {**entry["headers"], "Accept": "application/json"}
        assert (
            len((await server.http.post(entry["url"], json=listing, headers=headers)).json()["result"]["tools"]) == 10
        )

        # The variant without a key in a file shows it once, and the one before is revoked.
        told = await _send(ada, page, "/console/settings/clients/cursor/bundle", **form, key="variable")
        second = KEY.search(told.text)
        assert second and told.text.count(second[0]) == 1 and told.headers["cache-control"] == "no-store"
        assert (await server.mcp("tools/list", first[0])).status_code == 401
        again = await http.get(page)
        files = await http.get(page.replace("cursor?", "cursor/files.zip?"))
        kept = zipfile.ZipFile(io.BytesIO(files.content)).read(".cursor/mcp.json").decode()
        assert "${env:KEEPSAKE_API_KEY}" in kept and not KEY.search(kept) and not KEY.search(again.text)
        listed = (await as_(server.app, local_owner(), "key.list")).model_dump()["keys"]
        assert [(key["name"], key["tier"], key["banks"]) for key in listed] == [("cursor@atlas", "core", ["atlas"])]
        assert (await _send(ada, page, "/console/settings/clients/cursor/revoke", **form)).status_code == 303
        assert (await server.mcp("tools/list", second[0])).status_code == 401


async def test_every_client_is_there_and_nothing_else_is(tmp_path: Path) -> None:
    async with served(tmp_path) as server, program(server) as http:
        await _owner(server, http)
        for name, client in CLIENTS.items():
            shown = await http.get(f"/console/settings/clients/{name}", params={"only": "atlas"})
            assert shown.status_code == 200 and client.title in unescape(shown.text), name
            assert (client.project or "~") in shown.text, name
        assert "Claude Code" in (await http.get("/console/settings/clients")).text
        by_hand = unescape((await http.get("/console/settings/clients/any?only=atlas&dialect=hindsight")).text)
        assert "/mcp/atlas/" in by_hand
        for path in ("nosuch", "cursor?only=nowhere", "cursor?dialect=latin", "cursor?tier=most", "any/files.zip"):
            assert (await http.get(f"/console/settings/clients/{path}")).status_code == 404, path
        part = await http.get("/console/settings/clients/zed?tier=core", headers={"HX-Request": "true"})
        assert part.text.lstrip().startswith('<div class="stack" id="bundle">') and "3 of 10 tools" in part.text


async def test_a_mistake_stands_beside_its_field_with_what_was_typed(tmp_path: Path) -> None:
    async with served(tmp_path) as server, program(server) as http:
        ada = await _owner(server, http)
        keys, tools = "/console/settings/keys", "/console/settings/tools"
        key: dict[str, object] = {"name": "ci", "tier": "core", "banks": "atlas", "scopes": "memory:read"}
        made = await _send(ada, keys, keys, **key, expires="90d")
        assert made.status_code == 200 and made.text.count(KEY.findall(made.text)[0]) == 1
        checks = "/console/b/atlas/settings/checks"
        tool = {"name": "say", "runs": "command", "argv": "/bin/echo\n{word}", "effect": "mutate", "approval": "person"}
        call = {**tool, "name": "x", "runs": "http"}
        wrong: list[tuple[str, dict[str, object], int, str]] = [
            (keys, key, 409, "An active key is called"),
            (keys, {**key, "name": f" {EVIL}"}, 400, "must be printable"),
            (keys, {**key, "name": "b", "banks": ""}, 400, "Tick the banks"),
            (keys, {**key, "name": "b", "scopes": ""}, 400, "Tick what the key is to do"),
            (keys, {**key, "name": "b", "expires": "soon"}, 400, "ISO 8601"),
            (tools, {**tool, "name": "Say It"}, 400, "small letters"),
            (tools, {**tool, "approval": "none"}, 400, "only what reads may run"),
            (tools, {**tool, "argv": "/bin/echo\n{word"}, 400, "{word"),
            (tools, {**call, "url": "ftp://x"}, 400, "host itself"),
            (checks, {"name": "a", "kind": "http"}, 400, "is needed by a check of kind http"),
            (checks, {"name": "a", "kind": "self", "every_s": "often"}, 400, "whole number"),
            (checks, {"name": "a", "kind": "http", "address": "http://127.0.0.1/"}, 400, "private address"),
            ("/console/settings/people", {"name": "a b"}, 400, "without blanks"),
            ("/console/settings/people", {"name": "ada", "role": "reader"}, 409, "Someone has this name"),
        ]
        for page, form, status, text in wrong:
            path = f"{page}/invite" if page.endswith("people") else page
            answer = await _send(ada, page, path, **form)
            assert answer.status_code == status, (form, answer.text)
            shown = unescape(answer.text)
            assert text.lower() in shown.lower() and "<img src=x" not in answer.text, (form, shown)
            assert f'value="{form["name"]}"' in shown, form

        # Forms that are too large or not from us change nothing.
        assert (await _send(ada, keys, keys, **{**key, "name": "x" * 5_000_000})).status_code == 413
        assert (await ada.post(keys, {**key, "name": "foreign", "csrf": "x"})).status_code == 403
        listed = (await as_(server.app, local_owner(), "key.list")).model_dump()["keys"]
        assert [one["name"] for one in listed] == ["ci"]
        assert (await as_(server.app, local_owner(), "exec.tools")).model_dump()["tools"] == []


async def test_a_tool_that_someone_else_changed_shows_both(tmp_path: Path) -> None:
    async with served(tmp_path) as server, program(server) as http:
        ada = await _owner(server, http)
        form = {"name": "say", "runs": "command", "argv": "/bin/echo\r\n{word}", "effect": "read", "approval": "none"}
        page = "/console/settings/tools/say"
        made = await _send(ada, "/console/settings/tools", "/console/settings/tools", **form)
        assert made.headers["location"] == page
        shown = (await http.get(page)).text
        version, csrf = hidden(shown, "version"), hidden(shown, "csrf")
        (tool,) = (await as_(server.app, local_owner(), "exec.tools")).model_dump()["tools"]
        assert tool["definition"]["parameters"]["required"] == ["word"]
        await as_(server.app, local_owner(), "exec.enrol", **{**tool["definition"], "description": "Of bob"})

        mine = json.dumps({**tool["definition"], "description": "Of ada"})
        change = {"csrf": csrf, "version": version, "definition": mine}
        stale = await ada.post(f"{page}/change", change)
        assert stale.status_code == 409 and "Of bob" in stale.text and "Of ada" in stale.text
        for broken in ("{", "[]", '{"name": "other"}', "[" * 100_000):
            assert (await ada.post(f"{page}/change", {**change, "definition": broken})).status_code == 400
        fresh = {**change, "version": hidden(stale.text, "version")}
        assert (await ada.post(f"{page}/change", fresh)).status_code == 303
        assert "Of ada" in (await http.get(page)).text
        assert (await ada.post(f"{page}/remove", {"csrf": csrf})).status_code == 303
        assert (await http.get(page)).status_code == 404


ALL = ["API keys", "Clients", "OAuth grants", "People", "Enrolled tools", "Checks", "Account"]
TABS: list[tuple[str, str | None, list[str]]] = [
    ("reader", None, ALL[5:]),
    ("editor", None, ALL[5:]),
    ("owner", "atlas", [*ALL[:4], *ALL[5:]]),
    ("auditor", None, ALL[6:]),
]


async def _tabs(someone: Person) -> tuple[list[str], str]:
    """The tabs that are offered, and what a form of that page carries."""
    place = (await someone.http.get("/console/settings")).headers["location"]
    shown = (await someone.http.get(place)).text
    found = re.findall(r'<nav class="tabs" aria-label="Settings">(.*?)</nav>', shown, re.DOTALL)
    return re.findall(r">([^<>]+)</a>", found[0] if found else ">Account</a>"), hidden(shown, "csrf")


async def test_a_tab_is_offered_to_who_may_open_it(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        for name in ("atlas", "other"):
            await as_(server.app, local_owner(), "bank.create", name=name)
        await add_person(server, "boss", "owner")
        for role, bank, tabs in TABS:
            await add_person(server, role, role, bank)
            async with program(server) as http:
                someone = await _signed_in(server, http, role)
                offered, csrf = await _tabs(someone)
                assert offered == tabs, role
                await (_owns_one_bank if role == "owner" else _sets_nothing)(someone, csrf, role)


async def _sets_nothing(someone: Person, csrf: str, role: str) -> None:
    for path in ("keys", "clients/cursor", "people", "tools", "oauth"):
        denied = await someone.http.get(f"/console/settings/{path}")
        assert denied.status_code == 403 and "An owner can make you owner" in denied.text, path
    key = {"csrf": csrf, "name": "k", "reach": "all", "scopes": "memory:read"}
    assert (await someone.post("/console/settings/keys", key)).status_code == 403
    is_offered = "Watch something" in (await someone.http.get("/console/b/atlas/settings/checks")).text
    assert is_offered == (role == "editor")


async def _owns_one_bank(someone: Person, csrf: str, _: str) -> None:
    """They hand on that one alone, and give roles there."""
    shown = (await someone.http.get("/console/settings/keys")).text
    assert "atlas" in shown and "other" not in shown
    key = {"csrf": csrf, "name": "k", "banks": "other", "scopes": "memory:read"}
    assert (await someone.post("/console/settings/keys", key)).status_code == 403
    tool = {"csrf": csrf, "name": "say", "runs": "command", "argv": "/bin/echo", "effect": "read", "approval": "none"}
    assert (await someone.http.get("/console/settings/tools")).status_code == 403
    assert (await someone.post("/console/settings/tools", tool)).status_code == 403
    assert (await someone.post("/console/settings/tools/say/remove", tool)).status_code == 403
    given = {"csrf": csrf, "name": "boss", "role": "approver"}
    assert (await someone.post("/console/settings/people/role", given)).status_code == 403
    assert (await someone.post("/console/settings/people/role", {**given, "bank": "atlas"})).status_code == 303
    assert (await someone.http.get("/console/settings/clients/cursor?only=other")).status_code == 404


async def test_the_owner_of_an_open_machine_is_not_locked_out(tmp_path: Path) -> None:
    async with served(tmp_path) as server, program(server) as http:
        for page, path, form in (
            ("keys", "keys", {"name": "k", "reach": "all", "scopes": "memory:read"}),
            ("clients/cursor", "clients/cursor/bundle", {"key": "file"}),
            ("people", "people/invite", {"name": "bob", "role": "owner"}),
        ):
            shown = await http.get(f"/console/settings/{page}")
            assert "Create your own account first" in shown.text, page
            someone = Person(server, http)
            csrf = hidden((await http.get("/console/settings/tools")).text, "csrf")
            answer = await someone.post(f"/console/settings/{path}", {"csrf": csrf, **form})
            assert answer.status_code == 409 and "Create your own account first" in answer.text, page
        assert (await http.get("/console/settings/keys")).status_code == 200


async def test_keys_and_clients_are_set_up_in_the_browser(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as ada:
        await add_person(server, "ada", "owner")
        for name in ("atlas-api", "atlas-web", "ops-runbooks"):
            await as_(server.app, local_owner(), "bank.create", name=name)
        await as_(server.app, local_owner(), "key.create", name="old-laptop", tier="core")
        await as_(server.app, local_owner(), "key.revoke", name="old-laptop")
        await as_(server.app, local_owner(), "key.create", name=EVIL, allow_destructive=True, expires="6d")
        await ada.enter("/console/settings/keys")
        page = ada.page
        await page.get_by_label("Name", exact=True).fill("ci-sync")
        await page.get_by_label("Tier", exact=True).select_option("core")
        await page.get_by_label("atlas-api").check()
        await ada.press("Create key")
        await ada.sees("Key “ci-sync” is ready.", "ks_live_", EVIL, "may destroy", "2 in use, 1 revoked")
        await check_page(ada, "keys")
        secret = await page.locator("#made").inner_text()
        assert (await server.mcp("tools/list", secret)).status_code == 200
        await page.goto(page.url)
        assert secret not in await page.content()
        await ada.press("Revoke ci-sync")
        assert (await server.mcp("tools/list", secret)).status_code == 401

        await page.get_by_role("link", name="Clients", exact=True).click()
        await page.get_by_label("Bank", exact=True).last.select_option("atlas-api")
        await ada.sees("claude-code@atlas-api")
        await page.get_by_role("radio", name="intel 25 tools").check()
        await ada.sees("--tier intel")
        assert page.url.endswith("tier=intel&only=atlas-api&dialect=keepsake")
        await page.reload()
        await check_page(ada, "clients")
        await page.get_by_label("The key in .mcp.json").check()
        async with page.expect_download() as coming:
            await page.get_by_role("button", name="Download bundle").click()
        assert (await coming.value).suggested_filename == "keepsake-claude-code-atlas-api.zip"
        await page.get_by_role("link", name="VS Code (Copilot)").click()
        await ada.press("Download bundle")
        await ada.sees("Key “vscode@atlas-api” is ready.", "VS Code asks for the key when it starts the server.")
        await check_page(ada, "clients-made")


async def test_people_and_programs_are_let_in_and_shut_out_in_the_browser(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as ada, program(server) as http:
        await as_(server.app, local_owner(), "bank.create", name="default")
        await add_person(server, "ada", "owner")
        await add_person(server, "bob", "reader", "default")
        bob = await _signed_in(server, http, "bob")
        client = await bob.register(client_name=EVIL)
        tokens = await bob.tokens(client["client_id"], scope="memory:read")
        await ada.enter("/console/settings/people")
        page = ada.page
        await page.get_by_label("Name or email").fill("ines@harbour.example")
        await page.get_by_label("Where").select_option("default")
        await ada.press("Make an invitation")
        await ada.sees("/console/join/", "editor at default", "not used yet")
        await check_page(ada, "people")
        await ada.press("Take back the invitation for ines@harbour.example")
        await page.get_by_role("link", name="bob", exact=True).click()
        await page.get_by_label("approver").check()
        await ada.press("Give role")
        await ada.sees("reader at default", "approver")
        await check_page(ada, "person")
        await ada.press("Take away reader at default")
        await ada.press("Shut bob out")
        await ada.sees("shut out")
        assert (await server.mcp("tools/list", tokens["access_token"])).status_code == 401
        await ada.press("Let bob in again")

        await page.get_by_role("link", name="OAuth grants").click()
        await ada.sees(EVIL, "bob", "memory:read")
        await check_page(ada, "oauth")
        await ada.press(f"Revoke {EVIL} for bob")
        await ada.sees("No program acts for anyone")
        await page.get_by_role("button", name="Shut out").click()
        await ada.sees("shut out")


async def test_tools_and_checks_are_added_in_the_browser(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as ada:
        await as_(server.app, local_owner(), "bank.create", name="default")
        await add_person(server, "ada", "owner")
        await ada.enter("/console/settings/tools")
        page = ada.page
        await ada.sees("Agents can run nothing yet")
        await page.get_by_label("Name", exact=True).fill("deploy.staging")
        await page.get_by_label("What it does").fill("Deploys a service to staging.")
        await page.get_by_label("The program and its arguments").fill("/opt/deploy/run\n--service={service}")
        await ada.press("Enrol tool")
        await ada.sees("/opt/deploy/run --service={service}", "bubblewrap, without network")
        await check_page(ada, "tool")
        await page.get_by_role("link", name="Enrolled tools").click()
        await check_page(ada, "tools")

        await page.get_by_role("link", name="Checks").click()
        await page.get_by_label("Name", exact=True).fill("nightly-backup")
        await page.get_by_label("What", exact=True).select_option("heartbeat")
        await ada.press("Add check")
        await ada.sees("/v1/heartbeats/", "first beat awaited")
        beat = await page.locator("#made").inner_text()
        assert (await server.http.post(beat)).is_success
        await page.get_by_label("Name", exact=True).fill("Keepsake")
        await page.get_by_label("What", exact=True).select_option("self")
        await ada.press("Add check")
        await ada.sees("first run waits")
        await check_page(ada, "checks")
        # The page finds the first result by itself.
        await watching.step(server.app)
        await expect(page.get_by_role("row", name="Keepsake").get_by_text("well", exact=False)).to_be_visible()
        await ada.press("Remove Keepsake")
        await expect(page.get_by_role("row", name="Keepsake")).to_have_count(0)
