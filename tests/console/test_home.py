"""Home and projects in the console: what is known at a glance, and a repository from its address to its profile."""

from pathlib import Path

from playwright.async_api import Browser, expect

from keepsake import worker
from keepsake.core.clock import DAY, SECOND
from keepsake.core.principal import LOCAL_ORG, local_owner
from keepsake.store import incidents, jobs, usage
from keepsake.store.engine import Tx
from keepsake.store.incidents import Incident
from keepsake.store.usage import Usage
from tests.auth.conftest import Served, as_, served
from tests.auth.flowing import Person, hidden
from tests.auth.flowing import browser as program
from tests.console.looking import add_person, check_page, looking
from tests.ops.asking import repository

#: A week in the upper bits of an id.
WEEK = (7 * DAY // SECOND) << 22
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


async def grown(server: Served) -> None:
    """Two banks, one of which grew for some weeks, and a model that was asked."""
    for name in ("atlas-api", "ines"):
        await as_(server.app, local_owner(), "bank.create", name=name)
    for n in range(24):
        said = f"Gate {n} of the harbour opens at {n % 12} and closes {EVIL if n == 20 else 'late'}."
        await as_(server.app, local_owner(), "memory.retain", bank="atlas-api", content=said)
    decided = {"title": "Tokens rotate", "decision": "Refresh tokens rotate on every use.", "tags": ["auth"]}
    await as_(server.app, local_owner(), "decision.record", bank="atlas-api", **decided)
    now = server.app.now()

    async def aged(tx: Tx) -> None:
        rows = await tx.all("SELECT id FROM memories ORDER BY id")
        for n, row in enumerate(rows[:12]):
            earlier = (11 - n) * WEEK + WEEK // 2
            await tx.run("UPDATE memories SET id = id - :back WHERE id = :id", back=earlier, id=row["id"])
        for day, tokens in enumerate((9_000, 0, 31_000, 12_000)):
            one = Usage(LOCAL_ORG, 1, 900 + day, now - day * DAY, "local", "memory.ask", "tiny", tokens, 400, "web")
            await usage.record(tx, one)

    await server.app.store.write(LOCAL_ORG, aged)


async def test_home_tells_what_is_known_and_what_it_cost(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        await grown(server)
        await me.go("/console")
        await me.sees("What your agents know", "53,600 spent", "Learned last, in atlas-api", "Tokens rotate")
        await expect(me.page.get_by_role("img", name="atlas-api: 1 twelve weeks ago, 25 now")).to_be_visible()
        await expect(me.page.locator("main script, main img")).to_have_count(0)
        await check_page(me, "home")

        await me.as_seen(1440, "light")
        await me.page.get_by_role("link", name="atlas-api", exact=True).click()
        await me.sees("Memories by kind", "Learned last", "learned this week")
        await check_page(me, "bank")
        await me.page.locator("#bank").select_option("ines")
        await me.page.wait_for_url("**/console/b/ines")
        await me.sees("This bank knows nothing yet")


async def test_a_repository_is_added_followed_while_it_is_read_and_scored(browser: Browser, tmp_path: Path) -> None:
    folder = repository(tmp_path / "engine")
    async with served(tmp_path / "data") as server, looking(browser, server) as me:
        await me.go("/console/projects")
        await me.sees("No bank learns from a repository yet")
        await me.page.get_by_role("textbox", name="Repository").fill("ssh://example.com/x")
        await me.press("Add and sync")
        await me.sees("Repositories are not read over ssh.")
        await expect(me.page.get_by_role("textbox", name="Repository")).to_have_value("ssh://example.com/x")
        await me.page.get_by_role("textbox", name="Repository").fill(str(folder))
        await me.press("Add and sync")
        await me.page.wait_for_url("**/console/b/engine/project")
        await me.sees("It waits for its turn", "Memory score: 0 of 100", "No chapter is written yet")
        await check_page(me, "project-waiting")

        await worker.step(server.app, ["sync"])
        await me.sees("in sync", "Sync again", "Read to its end")
        while await worker.step(server.app, ["synthesise", "model"]):
            pass
        await me.page.reload()
        await me.sees("Purpose", "Put together by rules, no model involved")
        await check_page(me, "project")
        await me.go("/console/projects")
        await me.sees("engine", "in sync")
        await check_page(me, "projects")

        await me.page.get_by_role("textbox", name="Repository").fill(str(folder))
        await me.press("Add and sync")
        await me.sees("The bank engine learns from acme/engine already.")
        await me.go("/console/b/engine/project")
        await me.page.get_by_text("Learn from another repository").click()
        await me.page.get_by_role("textbox", name="Repository").fill("/nowhere/at/all")
        await me.press("Take its place and sync")
        await expect(me.page.locator("#repo-err")).to_be_visible()
        await me.press("Sync again")
        await me.page.get_by_role("link", name="Pause updates").click()
        await me.sees("Go on updating")
        await me.press("Cancel the sync")
        await me.sees("Sync again")


async def test_who_may_only_read_is_offered_no_sync_and_refused_one(tmp_path: Path) -> None:
    async with served(tmp_path) as server, program(server) as http:
        await add_person(server, "bob", "reader")
        await as_(server.app, local_owner(), "bank.create", name="api")
        bob = Person(server, http)
        await bob.sign_in("bob")
        page = await http.get("/console/projects")
        assert "Add a repository" not in page.text and "An owner or editor can add one." in page.text
        assert "An owner or editor can add one." in (await http.get("/console/b/api/project")).text

        csrf = hidden((await http.get("/console/b/api/ask")).text, "csrf")
        for path in ("/console/projects", "/console/b/api/project/sync"):
            refused = await bob.post(path, {"csrf": csrf, "repo": "https://github.com/acme/engine", "bank": "x"})
            assert refused.status_code == 403 and "You may not do this" in refused.text, path
            assert "You are signed in as bob, reader. That does not include making, changing and syncing banks." in (
                refused.text
            )
            assert "An owner can make you editor or owner, under Settings, People." in refused.text
            assert "credential" not in refused.text
        assert (await http.get("/console/b/x")).status_code == 404


async def test_what_is_open_stands_beside_its_bank_and_leads_there(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        await as_(server.app, local_owner(), "bank.create", name="api")
        await as_(server.app, local_owner(), "memory.retain", bank="api", content="Tea is at four.")
        now, store = server.app.now(), server.app.store

        async def down(tx: Tx) -> None:
            row = await tx.one("SELECT bank FROM banks")
            assert row is not None
            await incidents.put(
                tx, Incident(LOCAL_ORG, row["bank"], 7, 1, "auth <b>", "https://a", "No answer.", now, now)
            )
            job = await jobs.add(tx, store, LOCAL_ORG, row["bank"], "sync", now, {})
            await tx.run("UPDATE jobs SET state = 'failed', error = 'unavailable: x' WHERE id = :id", id=job)

        await store.write(LOCAL_ORG, down)

        for path in ("/console", "/console/b/api"):
            page = (await server.http.get(path)).text
            assert '<a href="/console/b/api/health">1 incident</a>' in page, path
            assert '<a href="/console/b/api/operations?state=failed">1 failed operation</a>' in page, path
            assert 'Health<span class="count">1<span class="sr"> open</span></span></a>' in page, path
        home = (await server.http.get("/console")).text
        assert "<strong>auth &lt;b&gt; is down</strong> in api: No answer." in home
        part = await server.http.get("/console/switch?bank=api", headers={"referer": "http://x/console/b/api/ask"})
        assert part.headers["location"] == "/console/b/api/ask"
