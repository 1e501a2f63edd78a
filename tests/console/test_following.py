"""Operations, usage and the audit log in the console."""

from pathlib import Path

from playwright.async_api import Browser, expect

from keepsake.core.principal import LOCAL_ORG, local_owner
from keepsake.ops import budget
from keepsake.store import jobs
from keepsake.store import usage as spending
from keepsake.store.engine import Tx
from keepsake.store.usage import Usage
from tests.auth.conftest import Served, as_, served
from tests.console.looking import add_person, check_page, looking


async def failed_job(server: Served) -> int:
    """An operation that was tried often enough."""
    store = server.app.store
    retained = await as_(server.app, local_owner(), "memory.retain", content="Tea is at four.")
    assert retained

    async def body(tx: Tx) -> int:
        row = await tx.one("SELECT bank FROM banks")
        assert row is not None
        id = await jobs.add(tx, store, LOCAL_ORG, row["bank"], "sync", server.app.now(), {})
        await tx.run(
            "UPDATE jobs SET state = 'failed', attempt = 5, error = 'unavailable: No answer.' WHERE id = :id", id=id
        )
        return id

    return await store.write(LOCAL_ORG, body)


async def test_a_failed_operation_is_seen_with_its_reason_and_begun_anew(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        await failed_job(server)
        await me.go("/console/b/default/operations?state=failed")
        await me.sees("Sync the repository", "It failed 5 times, last of: No answer.")
        await check_page(me, "operations")

        await me.press("Retry Sync the repository " + await me.page.locator("input[name=id]").first.input_value())
        await me.sees("No operation is in this state.")
        held = (await as_(server.app, local_owner(), "job.list")).model_dump()["jobs"]
        assert next(job for job in held if job["kind"] == "sync")["state"] != "failed"


async def test_who_only_reads_is_offered_no_change_of_operations(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as bob:
        await failed_job(server)
        await add_person(server, "bob", "reader")
        await bob.enter("/console/b/default/operations", "bob")

        await bob.sees("Sync the repository")
        await expect(bob.page.get_by_role("button", name="Retry")).to_have_count(0)
        assert await bob.go("/console/audit") == 403
        await bob.sees("You may not do this")


async def test_the_audit_log_is_filtered_verified_and_tampering_is_told(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        for n in range(60):
            await as_(server.app, local_owner(), "memory.retain", content=f"Fact number {n} is kept.")
        await me.go("/console/audit")
        await expect(me.page.locator("tbody tr")).to_have_count(50)
        await check_page(me, "audit")
        await me.page.get_by_role("link", name="Earlier").click()
        await me.sees("memory.retain")

        await me.go("/console/audit?operation=key.create")
        await me.sees("Nothing in the log fits this.")
        await me.go("/console/audit")
        await me.press("Verify the log")
        await me.sees("Nothing was changed, removed or reordered.")

        await server.app.store.write(
            LOCAL_ORG, lambda tx: tx.run("UPDATE audit SET principal = 'nobody' WHERE bank > 0 AND n = 3")
        )
        await me.press("Verify the log")
        await me.sees("The log does not hold.")


async def test_usage_tells_the_budget_and_what_was_spent_for(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        await me.go("/console/usage")
        await me.sees("Nothing was spent in this time.")
        now = server.app.now()
        week = 7 * 24 * 3_600 * 1_000_000

        async def spent(tx: Tx) -> None:
            for n, (operation, tokens) in enumerate(
                [("memory.ask", 9_000), ("memory.extract", 4_000), ("memory.ask", 21_000), ("model.refresh", 3_000)]
            ):
                who = "local" if operation == "memory.ask" else budget.BACKGROUND
                at = now - (n % 3) * week
                await spending.record(tx, Usage(LOCAL_ORG, 1, 100 + n, at, who, operation, "tiny", tokens, 500, "mcp"))

        await server.app.store.write(LOCAL_ORG, spent)
        await me.go("/console/usage")
        await me.sees("By whom, this week", "background", "21,500")
        await check_page(me, "usage")

        answer = await me.page.request.get(f"{me.base}/console/usage/weeks.csv?weeks=12")
        lines = (await answer.text()).splitlines()
        assert lines[0] == "week of,ask,extraction,reflection,models,other,calls"
        assert lines[-1].endswith(",9500,0,0,3500,0,2")
