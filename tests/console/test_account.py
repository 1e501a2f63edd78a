"""People get their accounts and keep them: the first one, by invitation, passwords, browsers, programs."""

from pathlib import Path

from playwright.async_api import Browser

from keepsake.core.principal import local_owner
from tests.auth.conftest import as_, served
from tests.auth.flowing import PASSWORD, Person
from tests.auth.flowing import browser as program
from tests.console.looking import Looker, add_person, check_page, looking

NEW = "another long password"


async def _choose(someone: Looker, password: str, again: str, name: str = "") -> None:
    if name:
        await someone.page.get_by_label("Name or email").fill(name)
    await someone.page.get_by_label("Password", exact=True).fill(password)
    await someone.page.get_by_label("The same again").fill(again)
    await someone.press("Create account")


async def test_the_local_owner_makes_the_first_account_and_the_door_closes(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as ada, looking(browser, server) as other:
        await ada.go("/console")
        await ada.page.locator("main").get_by_role("link", name="Create an account").click()
        await check_page(ada, "setup")
        await _choose(ada, PASSWORD, "not the same at all", "ada")
        await ada.sees("The two passwords are not the same")
        await _choose(ada, PASSWORD, PASSWORD, "a blank")
        await ada.sees("without blanks")
        await _choose(ada, PASSWORD, PASSWORD, "ada")
        await ada.page.wait_for_url(f"{ada.base}/console")
        await ada.sees("ada", "owner")
        assert await ada.go("/console/setup") == 403
        await check_page(ada, "forbidden")

        await other.go("/console/setup")
        assert "/console/signin" in other.page.url
        assert (await server.operation("bank.list")).status_code == 401


async def test_an_invitation_is_opened_once(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as bob, looking(browser, server) as late:
        await add_person(server, "ada", "owner")
        told = await as_(server.app, local_owner(), "user.invite", name="bob", role="reader")
        path = "/console/join/" + told.model_dump()["link"].rpartition("/")[2]
        await late.go(path)
        await bob.go(path)
        await bob.sees("Welcome, bob", "You will be reader: reading.")
        await check_page(bob, "join")
        await _choose(bob, PASSWORD, PASSWORD)
        await bob.page.wait_for_url(f"{bob.base}/console")
        await bob.sees("bob", "reader")

        await _choose(late, PASSWORD, PASSWORD)
        await late.sees("This link leads no further", "not good any more")
        await check_page(late, "join-gone")
        # A form of another site cannot use a link either.
        again = await as_(server.app, local_owner(), "user.invite", name="eve", role="owner")
        foreign = "/console/join/" + again.model_dump()["link"].rpartition("/")[2]
        form = {"password": PASSWORD, "again": PASSWORD}
        answer = await server.http.post(foreign, data=form, headers={"Origin": "https://evil.example"})
        assert answer.status_code == 403
        assert (await server.http.post(foreign, data=form)).status_code == 403


async def test_an_account_shows_and_ends_what_is_ones_own(browser: Browser, tmp_path: Path) -> None:
    name = '<img src=x onerror=alert(1)>"'
    async with served(tmp_path) as server, looking(browser, server) as ada, program(server) as http:
        await add_person(server, "ada", "editor")
        await as_(server.app, local_owner(), "bank.create", name="default")
        person = Person(server, http)
        await person.sign_in()
        client = await person.register(client_name=name)
        tokens = await person.tokens(client["client_id"])
        await ada.enter("/console/account")
        await ada.sees(name, "Where you are signed in", "this one", "Chrome on Linux")
        await check_page(ada, "account")

        await ada.press(f"Revoke {name}")
        await ada.sees("No program acts for you")
        asked = await server.mcp("tools/list", tokens["access_token"])
        assert asked.status_code == 401

        await ada.page.get_by_role("row", name="A browser").get_by_role("button").click()
        await ada.page.wait_for_load_state()
        assert "signed in as ada" not in (await http.get("/console/signin")).text

        for old, again, told in (
            ("wrong password", NEW, "not the password that you have"),
            (PASSWORD, "x" * 12, "same"),
        ):
            await ada.page.get_by_label("Password now").fill(old)
            await ada.page.get_by_label("New password", exact=True).fill(NEW)
            await ada.page.get_by_label("New password again").fill(again)
            await ada.press("Change password")
            await ada.sees(told)
        await ada.page.get_by_label("Password now").fill(PASSWORD)
        await ada.page.get_by_label("New password", exact=True).fill(NEW)
        await ada.page.get_by_label("New password again").fill(NEW)
        await ada.press("Change password")
        await ada.sees("Your password is changed")
        await ada.page.locator(".side").get_by_role("button", name="Sign out").click()
        await ada.page.wait_for_url("**/console/signin")
        await ada.enter("/console", "ada", NEW)
