"""Timeline, graph, decisions, models, directives, documents and artifacts in the console."""

from pathlib import Path

import httpx
from playwright.async_api import Browser, expect

from tests.auth.conftest import Served, served
from tests.auth.flowing import Person, hidden
from tests.auth.flowing import browser as program
from tests.console.knowing import do, knowing
from tests.console.looking import add_person, check_page, looking

AT = "/console/b/default"
XSS = '<img src=x onerror=alert(1)><script>alert(2)</script>"><svg onload=alert(3)>'


async def test_what_agents_did_is_seen_by_day_session_and_kind(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        await me.go(f"{AT}/timeline")
        known = await knowing(server.app)
        await me.go(f"{AT}/timeline")
        await me.sees("Session in rotate-tokens", "Redis keeps the families of tokens.", "2 in 26 weeks")
        await me.sees("Milestone:", "Public beta of atlas-api")
        await check_page(me, "timeline")

        await me.page.get_by_role("link", name="Sessions", exact=True).click()
        await me.page.get_by_role("link", name="Session in dark-mode").click()
        await me.sees("The theme is a cookie.", "What was observed and kept")
        await me.go(f"{AT}/timeline/{known['session']}")
        await me.sees("2 observations", "1 memory kept", "rotate-tokens")
        await check_page(me, "session")
        await me.go(f"{AT}/timeline?show=decisions")
        await me.sees("Move webhooks to a queue")
        await expect(me.page.get_by_text("Redis keeps the families")).to_have_count(0)
        await me.go(f"{AT}/timeline?date=2001-01-01")
        await me.sees("Nothing until then")


async def test_the_graph_is_read_as_a_list_and_moved_without_a_mouse(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        known = await knowing(server.app)
        await me.go(f"{AT}/graph")
        await me.sees("As a list", "All together", "Public beta of atlas-api implements this")
        await expect(me.page.locator("svg.graph [data-id]")).to_have_count(
            await me.page.locator("a[data-node]").count()
        )
        places = await _places(me.page.locator("svg.graph"))
        await check_page(me, "graph")

        await me.page.locator(f'svg.graph [data-id="{known["new"]}"] text').click()
        await me.sees("Around “Access tokens live 15 minutes")
        await me.page.get_by_role("link", name="Zoom in").press("Enter")
        await me.page.get_by_role("link", name="Zoom in").press("Enter")
        assert "zoom=100" in me.page.url and f"around={known['new']}" in me.page.url
        picture = me.page.get_by_role("region", name="Graph picture")
        await picture.focus()
        await check_page(me, "graph-around")
        await me.page.get_by_role("link", name="Entities").click()
        await me.sees("hidden")
        await me.page.go_back()

        await do(server.app, "milestone.record", title="Webhooks moved", related_decisions=[known["queue"]])
        await me.go(f"{AT}/graph")
        after = await _places(me.page.locator("svg.graph"))
        kept = [abs(after[id][0] - x) for id, (x, _) in places.items()]
        assert len(after) == len(places) + 1 and max(kept) < 200

        await me.page.get_by_label("Find in the graph").fill("webhooks")
        await me.page.keyboard.press("Enter")
        await me.sees("Webhooks moved", "found in all of it")
        answer = await me.page.request.get(f"{me.base}{AT}/graph/relations.csv")
        assert "Public beta of atlas-api,milestone,implements," in await answer.text()


async def _places(graph: object) -> dict[str, tuple[float, float]]:
    """Where the label of each node stands."""
    found = await graph.evaluate(  # type: ignore[attr-defined]  # a locator
        "svg => [...svg.querySelectorAll('[data-id]')].map(g => { const t = g.querySelector('text');"
        " return [g.dataset.id, +t.getAttribute('x'), +t.getAttribute('y')]; })"
    )
    return {id: (x, y) for id, x, y in found}


async def test_decisions_stand_on_a_board_and_take_the_place_of_others(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        await me.go(f"{AT}/decisions")
        known = await knowing(server.app)
        await me.go(f"{AT}/decisions")
        await me.sees("Accepted", "Blocked", "Move webhooks to a queue", "took the place of 1 decision")
        await check_page(me, "decisions")

        await me.go(f"{AT}/decisions/{known['new']}")
        await me.sees("A stolen token was replayed", "Alerts came after the damage.", "Access tokens live 60 minutes")
        await check_page(me, "decision")
        await me.page.get_by_role("link", name="Supersede it").click()
        await me.page.get_by_label("What was decided, in one line").fill("Access tokens live 10 minutes")
        await me.page.get_by_label("Instead of").fill("15 minutes: still too long\nNo expiry")
        await check_page(me, "decision-new")
        second = await me.page.context.new_page()
        await second.goto(me.page.url)
        await me.press("Record it, supersede the earlier one")
        await me.sees("Access tokens live 10 minutes", "still too long", "No reason given.")

        # Someone else had the form open all the while.
        await second.get_by_label("What was decided, in one line").fill("Access tokens live 5 minutes")
        await second.get_by_role("button", name="Record it, supersede the earlier one").click()
        await expect(second.get_by_text("Someone superseded it first.")).to_be_visible()
        await expect(second.get_by_label("What was decided, in one line")).to_have_value("Access tokens live 5 minutes")
        await second.get_by_role("button", name="Supersede that one with what you wrote").click()
        await expect(second.get_by_role("heading", level=1)).to_have_text("Access tokens live 5 minutes")
        await second.close()

        await me.go(f"{AT}/decisions/{known['queue']}")
        await me.press("Accept it")
        await me.sees("accepted")
        await me.go(f"{AT}/decisions?q=tokens")
        await me.sees("Access tokens live 5 minutes", "found for “tokens”")


async def test_models_documents_and_directives_are_read_changed_and_deleted(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        known = await knowing(server.app)
        await me.go(f"{AT}/models")
        await me.page.get_by_role("link", name="Who owns what").click()
        await me.sees("Jonas Weber owns the Auth Service.", "Version 2", "Access tokens live 15 minutes")
        await check_page(me, "model")
        await me.page.get_by_role("link", name="What changed last").click()
        await me.sees("Version 1 to 2")
        await me.go(f"{AT}/models/{known['model']}?version=1")
        await me.sees("Jonas Weber owns auth.", "This is version 1")
        await me.go(f"{AT}/models/{known['model']}")
        await me.press("Make it anew")
        await me.sees("It is being made from the latest memories.")

        await me.go(f"{AT}/documents")
        await me.page.get_by_role("link", name="notes/team.md").click()
        await me.sees("The Auth Service is owned by Jonas Weber.")
        await check_page(me, "document")
        await me.page.get_by_role("link", name="Delete …").click()
        await me.sees("What goes", "This cannot be undone.")
        await check_page(me, "document-delete")
        await me.page.get_by_role("button", name="for good").click()
        await me.sees("No document yet")

        await me.page.get_by_role("link", name="Directives").click()
        await me.page.get_by_label("Name").fill("Short")
        await me.page.get_by_label("The instruction").fill("Answer in one sentence.")
        await me.page.get_by_label("Priority").fill("soon")
        await me.press("Make the directive")
        await me.sees("Give the priority as a whole number")
        await me.page.get_by_label("Priority").fill("20")
        await me.press("Make the directive")
        await me.sees("Answer in one sentence.", "priority 20")
        await check_page(me, "directives")


async def test_an_artifact_is_compared_and_nobodys_version_is_lost(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        known = await knowing(server.app)
        await me.go(f"{AT}/artifacts")
        await me.page.get_by_role("link", name="Rollout plan").click()
        await me.sees("Then everyone, on a Tuesday.", "version 2 of 2", "Slower")
        await check_page(me, "artifact")
        await me.page.get_by_role("link", name="What changed last").click()
        await me.sees("2 lines added, 1 line removed.")
        await check_page(me, "artifact-changes")

        await me.go(f"{AT}/artifacts/{known['plan']}/edit")
        await me.page.get_by_label("What it says").fill("# Rollout\n\nAll at once.\n")
        await do(server.app, "artifact.update", id="rollout-plan", content="# Rollout\n\nNot at all.\n")
        await me.press("Save as version 3")
        await me.sees("Someone changed this first", "Not at all.", "Your version is not saved yet.")
        await check_page(me, "artifact-stale")
        await me.press("Save as version 4")
        await me.sees("version 4 of 4", "All at once.")


async def _csrf(http: httpx.AsyncClient) -> str:
    return hidden((await http.get("/console/account")).text, "csrf")


async def test_stored_text_stays_text_and_readers_are_offered_and_allowed_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as server, program(server) as http:
        ids = await _poisoned(server)
        await add_person(server, "ada", "reader")
        ada = Person(server, http)
        await ada.sign_in()
        paths = [
            "timeline",
            "timeline?show=sessions",
            "graph",
            f"graph?around={ids['decision']}&zoom=140&q=img",
            "decisions",
            "decisions?q=img",
            f"decisions/{ids['decision']}",
            "models",
            "models/model",
            "documents",
            "documents?q=img",
            "artifacts",
            f"artifacts/{ids['artifact']}",
            f"artifacts/{ids['artifact']}/changes",
            "directives",
        ]
        for path in paths:
            page = (await http.get(f"{AT}/{path}")).text
            assert "<img" not in page and "<script>" not in page and "<svg onload" not in page, path
            assert "&lt;img" in page or path in ("models", "timeline?show=sessions"), path
            assert "Delete …" not in page and "btn primary" not in page, path
        told = (await http.get(f"{AT}/artifacts/{ids['artifact']}/file")).headers
        assert told["content-type"].startswith("text/plain") and told["content-disposition"].startswith("attachment")
        for path in ("decisions/new", f"artifacts/{ids['artifact']}/edit", "models/new"):
            assert "You may read" in (await http.get(f"{AT}/{path}")).text

        token = await _csrf(http)
        for path in (
            "decisions/new",
            f"decisions/{ids['decision']}/status",
            "models/new",
            "models/model/refresh",
            "models/model/delete",
            "documents/delete",
            "directives",
            f"artifacts/{ids['artifact']}/edit",
            f"artifacts/{ids['artifact']}/delete",
        ):
            form = {"csrf": token, "title": "x", "name": "x", "query": "x", "content": "x", "id": "d", "version": "1"}
            answer = await ada.post(f"{AT}/{path}", {**form, "status": "reversed"})
            assert answer.status_code == 403, (path, answer.text)
            assert (await ada.post(f"{AT}/{path}", {**form, "csrf": "no"})).status_code == 403, path


async def _poisoned(server: Served) -> dict[str, str]:
    """A bank in which every text tries to run."""
    app = server.app
    decision = await do(app, "decision.record", title=XSS, decision=XSS, rationale=XSS, tags=[XSS[:40]])
    artifact = await do(app, "artifact.create", title=XSS, content=XSS, note=XSS, identifier="poison")
    await do(app, "artifact.update", id="poison", content=f"{XSS}\nmore", note=XSS)
    await do(app, "memory.retain", content=XSS, document=f"d {XSS}")
    await do(app, "directive.create", name=XSS, content=XSS)
    await do(app, "model.create", name="Model", source_query=XSS)
    return {"decision": decision["decision"]["id"], "artifact": artifact["artifact_id"]}


async def test_what_is_not_there_or_nonsense_is_a_page_that_says_so(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        await do(server.app, "memory.retain", content="Tea is at four.")
        for path, status in (
            ("timeline?before=99", 404),
            ("timeline?date=nonsense&show=nonsense&client=nobody", 200),
            ("timeline?date=9999-12-31", 200),
            ("timeline/12345", 404),
            ("graph?around=nobody", 404),
            ("graph?hide=entity,nonsense&zoom=99999999999999999999&depth=-1", 200),
            ("decisions?status=nonsense&offset=-5", 200),
            ("decisions/12345", 404),
            ("decisions/new?supersedes=nothing", 404),
            ("models/nothing", 404),
            ("models/nothing/changes", 404),
            ("documents/one", 400),
            ("documents/one?id=nothing", 404),
            ("directives/5/delete", 404),
            ("artifacts/nothing", 404),
            ("artifacts/5/changes?from=1&to=9", 404),
        ):
            answer = await server.http.get(f"{AT}/{path}")
            assert answer.status_code == status and "<h1>" in answer.text, (path, answer.status_code, answer.text)
