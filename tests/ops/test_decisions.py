"""Decisions and milestones: kept whole, found by every search, superseded by name; on both stores."""

from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.errors import BadInput, Conflict, KeepsakeError, NotFound
from keepsake.core.principal import local_owner
from keepsake.tools import catalog
from tests.ops.working_space import Do, decided, doing

pytestmark = pytest.mark.anyio

WHY = "Orders and payments must be written together, or not at all. Backups are one command."


@pytest.fixture
def do(app: App) -> Do:
    return doing(app)


async def test_a_decision_is_kept_whole_and_found_by_every_dialect(do: Do, app: App, sharpened: Any) -> None:
    recorded = await do(
        "decision.record",
        title="Keep orders in PostgreSQL",
        decision="All orders live in one PostgreSQL database.",
        rationale=WHY,
        alternatives=["Files on disk", {"option": "MongoDB", "why_not": "no transactions across collections"}],
        tags=["storage"],
        happened_at="2026-03-01T12:00:00Z",
    )
    await sharpened()
    made = recorded["decision"]
    memories = await do("memory.list")
    recalled = await do("memory.recall", query="Why are orders kept in PostgreSQL?")
    door = dispatch.Door(catalog.DIALECTS["keystone"])
    asked = {"projectSlugs": ["shop"], "query": "why PostgreSQL and not MongoDB for orders"}
    searched = (await dispatch.call_tool(app.ctx(local_owner()), door, "search_memory", asked)).model_dump(mode="json")

    assert recorded["outcome"] == "stored" and recorded["superseded"] == []
    assert {name: made[name] for name in ("kind", "status", "title", "rationale", "happened_at", "tags")} == {
        "kind": "decision",
        "status": "accepted",
        "title": "Keep orders in PostgreSQL",
        "rationale": WHY,
        "happened_at": "2026-03-01T12:00:00Z",
        "tags": ["storage"],
    }
    assert made["alternatives"] == [
        {"option": "Files on disk", "why_not": ""},
        {"option": "MongoDB", "why_not": "no transactions across collections"},
    ]
    [held] = memories["memories"]
    assert held["text"] == (
        "Keep orders in PostgreSQL.\nAll orders live in one PostgreSQL database.\n"
        f"Why: {WHY}\nConsidered: Files on disk\nConsidered: MongoDB (no transactions across collections)"
    )
    assert (held["kind"], held["type"], held["id"]) == ("decision", "opinion", made["id"])
    assert [hit["memory"]["id"] for hit in recalled["hits"]] == [made["id"]]
    assert [found["content"] for found in searched["result"]] == [held["text"]]


async def test_a_superseding_decision_takes_the_place_and_leaves_the_old_one_to_its_time(do: Do) -> None:
    old = await decided(do, "Deploy on Fridays", rationale="The week is done by then.")
    before = clock.iso(clock.now())

    recorded = await do("decision.record", title="Deploy on Tuesdays", supersedes=old, rationale="Someone is there.")
    now = await do("memory.recall", query="On which day do we deploy?")
    then = await do("memory.recall", query="On which day do we deploy?", as_of=before)
    listed = await do("decision.list")
    history = await do("decision.list", include_superseded=True)
    asked = await do("decision.list", query="day of deployment", include_superseded=True)
    over = await do("decision.list", status=["superseded"])

    new = recorded["decision"]["id"]
    assert recorded["superseded"] == [old]
    assert [hit["memory"]["id"] for hit in now["hits"]] == [new]
    assert [hit["memory"]["id"] for hit in then["hits"]] == [old]
    assert ([one["id"] for one in listed["decisions"]], listed["total"]) == ([new], 1)
    assert [(one["id"], one["status"]) for one in history["decisions"]] == [(new, "accepted"), (old, "superseded")]
    assert [one["id"] for one in asked["decisions"]] == [new, old]
    assert [(one["id"], one["superseded_by"]) for one in over["decisions"]] == [(old, new)]


async def test_the_same_decision_again_is_known_and_with_another_status_it_moves_on(do: Do) -> None:
    first = await decided(do, "Use feature flags", status="proposed")

    again = await do("decision.record", title="Use feature flags", status="proposed")
    accepted = await do("decision.record", title="Use feature flags", status="accepted")
    listed = await do("decision.list")

    assert (again["outcome"], again["decision"]["id"]) == ("known", first)
    assert (accepted["outcome"], accepted["superseded"]) == ("stored", [first])
    assert [(one["id"], one["status"]) for one in listed["decisions"]] == [(accepted["decision"]["id"], "accepted")]


async def test_decisions_are_listed_newest_first_and_narrowed(do: Do) -> None:
    given: dict[str, dict[str, Any]] = {
        "Only the API writes to the database": {"kind": "constraint", "tags": ["storage"]},
        "GraphQL for partners": {"kind": "rejected"},
        "Prefer small pull requests": {"kind": "heuristic"},
        "Move the queue to Redis": {"status": "blocked", "tags": ["storage"]},
        "Offer a public API": {"status": "proposed"},
    }
    for n, (title, more) in enumerate(given.items(), 1):
        await decided(do, title, happened_at=f"2026-04-0{n}T09:00:00Z", **more)
    await do("memory.retain", content="The database has 12 tables.", tags=["storage"])

    async def titles(**given: Any) -> list[str]:
        return [one["title"].split()[0] for one in (await do("decision.list", **given))["decisions"]]

    assert await titles() == ["Offer", "Move", "Prefer", "GraphQL", "Only"]
    assert await titles(limit=2, offset=1) == ["Move", "Prefer"]
    assert (await do("decision.list", limit=2, offset=1))["total"] == 5
    assert await titles(kinds=["constraint", "heuristic"]) == ["Prefer", "Only"]
    assert await titles(status=["rejected"]) == ["GraphQL"]
    assert await titles(status=["accepted"]) == ["Prefer", "Only"]
    assert await titles(status=["blocked", "proposed"]) == ["Offer", "Move"]
    assert await titles(tags=["storage"]) == ["Move", "Only"]
    assert await titles(since="2026-04-02", until="2026-04-04") == ["Prefer", "GraphQL"]
    assert (await titles(query="What may write to the database?"))[0] == "Only"
    assert await titles(query="the database and the queue", status=["blocked"]) == ["Move"]


async def test_a_decision_that_was_stated_or_retained_otherwise_is_one_too(do: Do, app: App) -> None:
    await do("decision.record", title="Use tabs", kind="heuristic")

    async def strip(tx: Any) -> int:
        return int(await tx.run("UPDATE memories SET parts = '{}'"))

    await app.store.write(1, strip)
    listed = await do("decision.list", status=["accepted"])
    others = await do("decision.list", status=["proposed", "rejected"])

    assert [(one["title"], one["decision"], one["status"]) for one in listed["decisions"]] == [
        ("Use tabs", "Use tabs", "accepted")
    ]
    assert others == {"decisions": [], "total": 0}


async def test_milestones_carry_out_decisions_and_are_listed_by_sort_time_and_decision(do: Do) -> None:
    flags = await decided(do, "Use feature flags")
    queue = await decided(do, "Move the queue to Redis")

    given = {"type": "Release", "related_decisions": [flags], "description": "With flags for every new page."}
    first = await do("milestone.record", title="Shipped 2.0", happened_at="2026-05-01T10:00:00Z", **given)
    await do("milestone.record", title="Queue moved", happened_at="2026-06-01T10:00:00Z", related_decisions=[queue])
    again = await do("milestone.record", title="Shipped 2.0", happened_at="2026-05-01T10:00:00Z", **given)

    async def titles(**given: Any) -> list[str]:
        return [one["title"] for one in (await do("milestone.list", **given))["milestones"]]

    made = first["milestone"]
    assert (made["type"], made["related_decisions"], made["happened_at"]) == (
        "release",
        [flags],
        "2026-05-01T10:00:00Z",
    )
    assert (again["outcome"], again["milestone"]["id"]) == ("known", made["id"])
    assert await titles() == ["Queue moved", "Shipped 2.0"]
    assert await titles(type="release") == ["Shipped 2.0"]
    assert await titles(until="2026-05-15") == ["Shipped 2.0"]
    assert await titles(related_decision=queue) == ["Queue moved"]
    assert await do("milestone.list", limit=1, offset=1) == {"milestones": [made], "total": 2}
    [hit] = (await do("memory.recall", query="What was shipped with flags?", types=["experience"]))["hits"][:1]
    assert (hit["memory"]["id"], hit["memory"]["kind"]) == (made["id"], "milestone")


BAD: list[tuple[str, dict[str, Any], type[KeepsakeError]]] = [
    ("decision.record", {"title": "  "}, BadInput),
    ("decision.record", {"title": "x" * 301}, BadInput),
    ("decision.record", {"title": "a", "alternatives": ["b"] * 31}, BadInput),
    ("decision.record", {"title": "a", "alternatives": ["b" * 501]}, BadInput),
    ("decision.record", {"title": "a", "alternatives": [{"option": " "}]}, BadInput),
    ("decision.record", {"title": "a", "alternatives": [{"option": "b", "why_not": "c" * 2_001}]}, BadInput),
    ("decision.record", {"title": "a", "status": "superseded"}, BadInput),
    ("decision.record", {"title": "a", "kind": "note"}, BadInput),
    ("decision.record", {"title": "a", "supersedes": "123456"}, NotFound),
    ("decision.record", {"title": "a", "supersedes": "no-such-slug"}, NotFound),
    ("milestone.record", {"title": ""}, BadInput),
    ("milestone.record", {"title": "a", "related_decisions": ["123456"]}, NotFound),
    ("milestone.list", {"related_decision": "123456"}, NotFound),
    ("decision.list", {"since": "yesterday"}, BadInput),
]


async def test_bad_input_is_refused_and_nothing_is_stored(do: Do) -> None:
    note = await do("memory.retain", content="The shop sells tea.")

    for operation, given, error in BAD:
        with pytest.raises(error):
            await do(operation, **given)
    with pytest.raises(BadInput):
        await do("milestone.record", title="a", related_decisions=[note["id"]])

    assert (await do("memory.list"))["total"] == 1


async def test_a_decision_of_another_bank_or_one_that_is_over_cannot_be_superseded(do: Do, app: App) -> None:
    theirs = await decided(doing(app, "other"), "Use Rust")
    old = await decided(do, "Use Go")
    await decided(do, "Use Python", supersedes=old)
    reached = await do("milestone.record", title="First release")

    with pytest.raises(NotFound):
        await do("decision.record", title="Use C", supersedes=theirs)
    with pytest.raises(Conflict):
        await do("decision.record", title="Use C", supersedes=old)
    with pytest.raises(BadInput):
        await do("decision.record", title="Use C", supersedes=reached["milestone"]["id"])

    assert [one["title"] for one in (await do("decision.list"))["decisions"]] == ["Use Python"]


async def test_a_corrected_decision_keeps_what_the_correction_does_not_speak_of(do: Do) -> None:
    options = [{"option": "Deploy daily", "why_not": "too few hands"}]
    old = await decided(do, "Deploy on Fridays", rationale="Traffic is low.", alternatives=options, status="proposed")
    given = {"title": "Shipped 2.0", "description": "With the new parser.", "type": "release"}
    first = (await do("milestone.record", **given, related_decisions=[old]))["milestone"]["id"]

    new = await do("memory.correct", id=old, content="Deploy on Tuesdays, in the morning.\nNever after noon.")
    await do("memory.correct", id=first, content="Shipped 2.1")
    [decision] = (await do("decision.list", status=["proposed"]))["decisions"]
    [milestone] = (await do("milestone.list", type="release"))["milestones"]

    assert (decision["title"], decision["decision"]) == ("Deploy on Tuesdays, in the morning.", "Never after noon.")
    assert (decision["rationale"], decision["alternatives"]) == ("Traffic is low.", options)
    assert new["text"] == (
        "Deploy on Tuesdays, in the morning.\nNever after noon.\nWhy: Traffic is low.\n"
        "Considered: Deploy daily (too few hands)"
    )
    assert (milestone["title"], milestone["description"]) == ("Shipped 2.1", "With the new parser.")


async def test_a_correction_may_give_other_reasons_too(do: Do) -> None:
    old = await decided(do, "Deploy on Fridays", rationale="Traffic is low.", alternatives=["Deploy daily"])
    told = "Deploy on Mondays.\nWhy: All are in.\nConsidered: Deploy on Sundays (nobody is in)"

    await do("memory.correct", id=old, content=told)
    [decision] = (await do("decision.list"))["decisions"]

    assert (decision["title"], decision["rationale"]) == ("Deploy on Mondays.", "All are in.")
    assert decision["alternatives"] == [{"option": "Deploy on Sundays", "why_not": "nobody is in"}]


async def test_relations_stay_with_what_is_said_in_other_words(do: Do) -> None:
    old, other = await decided(do, "Deploy on Fridays"), await decided(do, "Sell only in Europe")
    done = (await do("milestone.record", title="Shipped 2.0", related_decisions=[old]))["milestone"]["id"]
    await do("graph.relate", origin=other, target=old, type="depends_on")
    await decided(do, "Sell only in Europe", status="proposed")
    other = await decided(do, "Sell only in Europe", status="accepted")
    blocker = await decided(do, "The pager is broken", blocker=True)
    await do("graph.relate", origin=other, target=blocker, type="resolves")

    new = (await do("memory.correct", id=old, content="Deploy on Mondays"))["id"]
    new = (await do("memory.correct", id=new, content="Deploy on Tuesdays"))["id"]
    shipped = (await do("memory.correct", id=done, content="Shipped 2.1"))["id"]
    open_still = (await do("memory.correct", id=blocker, content="The pager is silent"))["id"]

    graph = await do("graph.get")
    near = await do("graph.get", center=new, depth=1, types=["depends_on", "implements"])
    brief = await do("brief.get")
    wanted = {(other, new, "depends_on"), (shipped, new, "implements"), (other, open_still, "resolves")}
    assert {(one["origin"], one["target"], one["type"]) for one in graph["edges"]} == wanted
    assert {node["id"] for node in near["nodes"]} == {new, other, shipped}
    assert {(one["origin"], one["target"], one["type"]) for one in brief["connections"]} == wanted
    assert brief["blockers"] == []
    for asked in (old, new):
        [milestone] = (await do("milestone.list", related_decision=asked))["milestones"]
        assert (milestone["id"], milestone["related_decisions"]) == (shipped, [new])


async def test_secrets_in_any_part_of_a_decision_are_not_stored(do: Do) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    alternatives = [{"option": "CI token", "why_not": f"it is {key}"}]

    recorded = await do("decision.record", title="Use OIDC", rationale=f"Not {key}", alternatives=alternatives)

    assert recorded["redacted"] and key not in str(recorded) and key not in str(await do("memory.list"))


async def test_a_forgotten_decision_does_not_come_back(do: Do) -> None:
    id = await decided(do, "Use carrier pigeons")
    await do("memory.forget", id=id)

    again = await do("decision.record", title="Use carrier pigeons")

    assert again["outcome"] == "skipped" and again["note"]
    assert await do("decision.list") == {"decisions": [], "total": 0}
