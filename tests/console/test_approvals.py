"""People decide on what agents propose, on pages: another's, or their own agent's after giving their password anew."""

from pathlib import Path

from playwright.async_api import Browser

from keepsake import dispatch
from keepsake.core.clock import MINUTE
from keepsake.core.principal import local_owner
from tests.auth.conftest import Json, Served, made, served
from tests.console.looking import add_person, check_page, looking

XSS = '<img src=x onerror=alert(1)><script>alert(2)</script>"><svg onload=alert(3)>'


async def _proposed(server: Served, key: str, text: str, reason: str = "It is wrong.") -> Json:
    """An agent wants a memory forgotten."""
    told = await dispatch.call(server.app.ctx(local_owner(), "default"), "memory.retain", {"content": text})
    id = told.model_dump()["id"]
    answer = await server.operation(
        "proposal.create", key, operation="memory.forget", arguments={"id": id}, reason=reason
    )
    assert answer.status_code == 200, answer.text
    asked: Json = answer.json()
    return asked


async def test_another_person_approves_one_and_denies_another(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as ada:
        await add_person(server, "ada", "approver")
        await add_person(server, "bob", "editor")
        key = (await made(server.app, "cursor", user="bob"))["secret"]
        first, second = [await _proposed(server, key, f"{what} {XSS}", XSS) for what in ("Tea is at four.", "No tea.")]

        await ada.enter("/console/approvals")
        await ada.sees("cursor for bob", "Forget “Tea is at four.")
        await check_page(ada, "approvals")
        assert first["page"].endswith(f"/console/approve/{first['id']}")
        await ada.go(f"/console/approve/{first['id']}")
        await ada.sees("1 more waiting", "signed in as ada", "What goes")
        await check_page(ada, "approve")
        # What cannot be undone is never one press.
        await ada.press("Forget it for good")
        await ada.sees("Tick that you understand")
        await ada.page.get_by_label("I understand").check()
        await ada.press("Forget it for good")
        await ada.sees("Approved. Whoever asked has 15 minutes", "Decided by ada")
        await check_page(ada, "approved")

        await ada.go(f"/console/approve/{second['id']}")
        await ada.page.get_by_label("Note").fill("We need it.")
        await ada.press("Deny")
        await ada.sees("Denied. Nothing was changed.", "We need it.")
        await ada.go("/console/approvals")
        await ada.sees("Nothing waits for you")
        await check_page(ada, "approvals-none")
        await ada.go("/console/approvals?state=denied")
        await ada.sees("cursor for bob")

        applied = await server.operation("proposal.apply", key, token=first["token"])
        refused = await server.operation("proposal.apply", key, token=second["token"])
        assert (applied.status_code, refused.status_code) == (200, 409)


async def test_the_only_person_decides_for_their_agent_after_a_fresh_login(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as ada:
        await add_person(server, "ada", "owner")
        key = (await made(server.app, "cursor", user="ada"))["secret"]
        asked = await _proposed(server, key, "Tea is at four.")
        path = f"/console/approve/{asked['id']}"
        await ada.enter(path)
        await ada.sees("Forget “Tea is at four.”")
        await server.app.store.write(
            1,
            lambda tx: tx.run("UPDATE web_sessions SET recent_login_at = recent_login_at - :by", by=6 * MINUTE),
        )

        await ada.page.get_by_label("I understand").check()
        await ada.press("Forget it for good")
        assert "/console/signin" in ada.page.url
        await ada.go(path)
        await ada.sees("You are the only person here")
        await check_page(ada, "approve-self")
        await ada.page.get_by_role("link", name="Sign in again").click()
        await ada.sign_in()
        await ada.page.wait_for_url(ada.base + path)
        await ada.page.get_by_label("I understand").check()
        await ada.press("Forget it for good")
        await ada.sees("Decided by the one person here")
        told = await dispatch.call(server.app.ctx(local_owner(), surface="cli"), "proposal.get", {"id": asked["id"]})
        assert told.model_dump()["decided_by"] == "self"


async def test_no_page_decides_for_who_may_not(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as bob:
        asked = await dispatch.call(server.app.ctx(local_owner(), "default"), "memory.retain", {"content": "Tea."})
        own = await server.operation(
            "proposal.create", operation="memory.forget", arguments={"id": asked.model_dump()["id"]}
        )
        await bob.go(f"/console/approve/{own.json()['id']}")
        await bob.sees("Deciding takes a person who has signed in")
        await check_page(bob, "approve-local")

        await add_person(server, "ada", "approver")
        await add_person(server, "bob", "editor")
        key = (await made(server.app, "cursor", user="bob"))["secret"]
        mine = await _proposed(server, key, "Bob's tea.")
        await bob.enter(f"/console/approve/{mine['id']}", "bob")
        await bob.sees("Another approver has to decide")
        assert await bob.go(f"/console/approve/{own.json()['id']}") == 404
