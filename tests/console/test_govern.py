"""Governing in the console: executions are decided on; incidents, checks, anomalies and the server are seen."""

from dataclasses import replace
from pathlib import Path

import httpx
from playwright.async_api import Browser, expect

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.clock import DAY, HOUR, MINUTE
from keepsake.core.principal import LOCAL_ORG, local_owner
from keepsake.ops import readings, running, watching
from keepsake.store.engine import Tx, Value
from keepsake.surfaces.console import approvals_run
from tests import watched
from tests.auth.conftest import Served, as_, made, served
from tests.auth.flowing import Person, hidden
from tests.auth.flowing import browser as program
from tests.console.looking import add_person, check_page, looking
from tests.watched import Watched

HEALTH = "/console/b/default/health"
XSS = '"><img src=x onerror=alert(1)>'


async def run_now(app: App) -> None:
    """Run every check at once."""

    async def due(tx: Tx) -> None:
        await tx.run("UPDATE checks SET wake_at = :now, due_at = :now, run = run + 1", now=app.now())

    await app.store.write(LOCAL_ORG, due)
    await watching.step(app)


async def past(app: App, name: str, until: int, latency: int, slow: int = 0) -> None:
    """Three days of runs of a check, the last hour of them slow."""

    async def body(tx: Tx) -> None:
        row = await tx.one("SELECT bank, id FROM checks WHERE name = :name", name=name)
        assert row is not None
        since = until - 3 * DAY
        rows: list[dict[str, Value]] = [
            {
                "org": LOCAL_ORG,
                "bank": row["bank"],
                "id": row["id"],
                "at": at,
                "ok": 1,
                "latency": (slow if slow and at > until - HOUR else latency) + n % 7 * 1_900 + at // HOUR % 24 * 700,
            }
            for n, at in enumerate(range(since, until, 5 * MINUTE))
        ]
        await tx.many(
            "INSERT INTO check_results (org, bank, check_id, at, ok, latency)"
            " VALUES (:org, :bank, :id, :at, :ok, :latency)",
            rows,
        )
        await tx.run("UPDATE checks SET rolled_to = :to, since = :to, state = 'up' WHERE id = :id",
                     to=since // HOUR * HOUR, id=row["id"])  # fmt: skip

    await app.store.write(LOCAL_ORG, body)
    await watching.roll_up(app)


async def watch(server: Served, page: Watched) -> None:
    """A page that was down two days ago and is down now, one that is slow, and a heartbeat."""
    app, me = server.app, local_owner()
    page_is = {"kind": "http", "target": page.url(), "retries": 0, "open_after": 1, "resolve_after": 1}
    await as_(app, me, "check.add", name="checkout", **page_is)
    await past(app, "checkout", app.now() - MINUTE, 40_000)
    await page.down()
    await run_now(app)
    await as_(app, me, "incident.note", id=await newest(app), text="The pool was full. A restart of the worker helped.")
    await page.up()
    await run_now(app)
    ago = 2 * DAY
    await app.store.write(
        LOCAL_ORG,
        lambda tx: tx.run(
            "UPDATE incidents SET opened_at = opened_at - :ago, resolved_at = resolved_at - :less",
            ago=ago,
            less=ago - 40 * MINUTE,
        ),
    )
    await page.down()
    await run_now(app)
    await as_(app, me, "check.add", name="search", kind="dns", target="localhost", every_s=300)
    await past(app, "search", app.now() - 2 * MINUTE, 60_000, slow=400_000)
    await run_now(app)
    await as_(app, me, "check.add", name="nightly backup", kind="heartbeat")


async def newest(app: App) -> str:
    found = (await as_(app, local_owner(), "incident.list", limit=1)).model_dump()
    return str(found["incidents"][0]["id"])


async def test_an_incident_is_seen_taken_on_noted_and_compared_with_earlier_ones(
    browser: Browser, tmp_path: Path
) -> None:
    async with served(tmp_path) as server, watched.web() as page, looking(browser, server) as me:
        await as_(server.app, local_owner(), "bank.create", name="default")
        await me.go(HEALTH)
        await me.sees("No check of default was ever down.", "Nothing is watched in default.")
        await watch(server, page)

        await me.go(HEALTH)
        await me.sees("checkout cannot be reached: Connection refused", "Remembered from before", "open, down")
        await check_page(me, "health")
        await me.press("Acknowledge incident")
        await me.sees("local took it on")
        await me.page.get_by_label("A note").fill("Restarted the worker.\nIt came back.")
        await me.press("Add the note")
        await me.sees("local noted")
        await expect(me.page.locator(".thread .said").first).to_contain_text("It came back.")
        await expect(me.page.get_by_role("button", name="Acknowledge incident")).to_have_count(0)

        await me.page.get_by_role("link", name="Its story").click()
        await me.sees("Resolved after 40 minutes", "The pool was full. A restart of the worker helped.")
        await check_page(me, "incident")


async def test_checks_anomalies_and_the_server_are_seen_with_their_numbers(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, watched.web() as page, looking(browser, server) as me:
        await watch(server, page)
        await me.go(f"{HEALTH}/checks")
        await me.sees("1 passes, 1 down, 1 without a result yet", "unusual")
        await check_page(me, "checks")

        await me.page.get_by_role("link", name="search").click()
        await me.sees("Its anomalies", "24 hours", "The pale band is what is normal")
        await expect(me.page.locator("svg.plot circle.dot")).to_have_count(1)
        await check_page(me, "check")
        await me.page.get_by_role("link", name="30 days").click()
        await expect(me.page.locator("svg.plot desc")).to_contain_text("The median was between")

        await me.page.get_by_role("link", name="Anomalies", exact=True).click()
        await me.sees("was expected", "goes on")
        await check_page(me, "anomalies")
        await me.page.get_by_role("link", name="This server").click()
        await me.sees("Database", "Room on the disk")
        await check_page(me, "server")


async def test_health_refuses_what_it_must_and_never_runs_what_is_stored(tmp_path: Path) -> None:
    async with served(tmp_path) as server, program(server) as http, program(server) as other:
        app = server.app
        await as_(app, local_owner(), "check.add", name=XSS, kind="tcp", target="127.0.0.1:9", open_after=1, retries=0)
        await run_now(app)
        incident = await newest(app)
        await add_person(server, "ada", "owner")
        await add_person(server, "rita", "reader")
        ada, rita = Person(server, http), Person(server, other)
        await ada.sign_in()
        await rita.sign_in("rita")
        one = f"{HEALTH}/incidents/{incident}"

        assert "Acknowledge incident" not in (await other.get(one)).text
        assert (await send(rita, f"{one}/acknowledge")).status_code == 403
        empty = await send(ada, f"{one}/note", text="  ")
        assert empty.status_code == 400 and "Write what was found, done or decided." in empty.text
        assert (await send(ada, f"{one}/note", text=f"{XSS} tried")).status_code == 303
        pages = [one, HEALTH, f"{HEALTH}/checks", f"{HEALTH}/anomalies?state=open", f"{HEALTH}/server?x=1"]
        answers = [await http.get(path) for path in pages]
        answers.append(await http.get(f"{HEALTH}/check", params={"name": XSS, "hours": "5"}))
        assert [answer.status_code for answer in answers] == [200] * 6
        assert "&lt;img src=x" in answers[0].text
        assert all("<img" not in answer.text for answer in answers)
        assert await statuses(http, f"{HEALTH}/check?name=none", f"{HEALTH}/incidents/7") == [404, 404]
        assert await statuses(http, "/console/b/none/health") == [404]


async def enrolled(server: Served, name: str, **more: object) -> None:
    """A tool that an operator lets agents ask for."""
    given = {
        "name": name,
        "description": "Puts a branch where everyone can look at it.",
        "argv": ["echo", "deploying", "{branch}"],
        "parameters": {"type": "object", "properties": {"branch": {"type": "string"}}, "required": ["branch"]},
        "effect": "mutate",
        "approval": "person",
        "sandbox": {"kind": "none"},
        **more,
    }
    await dispatch.call(server.app.ctx(local_owner(), "default", surface="cli"), "exec.enrol", given)


async def asked(server: Served, key: str, tool: str, branch: str) -> str:
    """An agent wants it run, after it has read a page."""
    told = await server.operation("exec.invoke", key, tool=tool, arguments={"branch": "first"}, reason="To be sure.")
    who = replace(local_owner(), name=told.json()["requested_by"])
    readings.page(server.app.ctx(who), f"https://evil.example/{XSS}")
    arguments = {"tool": tool, "arguments": {"branch": branch}, "reason": f"The page says so. {XSS}"}
    answer = await server.operation("exec.invoke", key, **arguments)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def test_an_execution_is_decided_on_knowing_exactly_what_it_does(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as ada:
        await add_person(server, "ada", "approver")
        await add_person(server, "bob", "editor")
        key = (await made(server.app, "cursor", user="bob"))["secret"]
        await enrolled(server, "deploy-preview")
        await enrolled(server, "wipe", approval="two-persons", argv=["echo", "gone", "{branch}"])
        one = await asked(server, key, "deploy-preview", "settings-dark; rm -rf /")
        await ada.enter("/console/approvals")
        await ada.sees("Run deploy-preview with branch first", "cursor for bob", "execution")

        await ada.go(f"/console/approve/{one}")
        await ada.sees("echo deploying 'settings-dark; rm -rf /'", "no shell reads them", "One approver has to agree.")
        await ada.sees("was handed 1 thing that nobody here vouches for", "https://evil.example/", "The page says so.")
        await check_page(ada, "approve-run")
        await ada.press("Run deploy-preview")
        await ada.sees("Approved. It waits for its turn.", "ada agreed")
        await running.step(server.app)
        # It tells by itself what came of it.
        await ada.sees("It ran, and succeeded.", "deploying settings-dark; rm -rf /")
        await check_page(ada, "approve-ran")

        await ada.go("/console/approvals")
        await ada.page.get_by_label("Note").fill("Not today.")
        await ada.press("Deny")
        await ada.sees("Denied. Nothing was run.", "Not today.")
        await ada.go("/console/approvals?state=denied")
        await ada.sees("Run deploy-preview with branch first")
        await ada.go("/console/approvals?state=approved")
        await ada.sees("Run deploy-preview with branch settings-dark; rm -rf /")

        two = await asked(server, key, "wipe", "main")
        await ada.go(f"/console/approve/{two}")
        await ada.sees("Two approvers have to agree.", "Two people have to agree.")
        await ada.press("Run wipe")
        await ada.sees("You have agreed. One more person has to agree.")
        await enrolled(server, "wipe", approval="two-persons", argv=["echo", "{branch}", "gone"])
        await ada.go(f"/console/approve/{two}")
        await ada.sees("The tool is not the one that was asked for any more")


def test_what_shall_be_run_cannot_look_like_something_else() -> None:
    turned = "safe\u202etxt.exe\x1b[2J\u200b"

    assert approvals_run.visible(f"echo '{turned}'\nnext") == "echo 'safe\\u202etxt.exe\\u001b[2J\\u200b'\nnext"


async def send(person: Person, path: str, **fields: str) -> httpx.Response:
    """Send a form with the token of a page of theirs."""
    page = await person.http.get("/console/account")
    return await person.post(path, {"csrf": hidden(page.text, "csrf"), **fields})


async def statuses(http: httpx.AsyncClient, *paths: str) -> list[int]:
    return [(await http.get(path)).status_code for path in paths]
