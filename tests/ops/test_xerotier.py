"""Xerotier's words over the common engine, on both stores, without a transport."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from starlette.routing import Route

from keepsake import dispatch
from keepsake.context import App, Ctx
from keepsake.core.errors import BadInput, Conflict, KeepsakeError, NotBound, NotFound
from keepsake.core.principal import DEFAULT_SCOPES, Principal, local_owner
from keepsake.ops import binding, mcp_sessions, memory, priming
from keepsake.surfaces import mcp, reading
from keepsake.surfaces.http import Site
from keepsake.surfaces.workspaces import Local
from keepsake.tools import catalog
from tests.ops.conftest import Call

pytestmark = pytest.mark.anyio
DOOR = dispatch.Door(catalog.DIALECTS["xerotier"])
ONE_STORE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
COUNTS = {"core": 10, "exec": 14, "intel": 25, "all": 29}


def asking(tier: str = "all", banks: frozenset[str] | None = None) -> Principal:
    return Principal(org=1, name=f"key:{tier}", scopes=DEFAULT_SCOPES, tier=tier, banks=banks, key=7)


async def run(ctx: Ctx, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await dispatch.call_tool(ctx, DOOR, f"xerotier.{tool}", arguments)
    return result.model_dump(mode="json", exclude_none=True)


async def test_what_one_dialect_stores_the_others_find(
    app: App, call: Call, sharpened: Callable[[], Awaitable[None]]
) -> None:
    here = app.ctx(local_owner(), "alpha")
    await call("create_bank", bank_id="alpha")
    await call("retain", bank_id="alpha", content="The staging cluster runs in Frankfurt.")
    await call("retain", bank_id="alpha", content="Invoices are sent on the first of May.", document_id="billing.md")
    saved = await run(here, "memory.save", content="Grace owns the payment gateway. She is out in June.")
    await run(here, "intelligence.track_decision", title="Use Kafka for events", rationale="Replay is needed.")
    await run(here, "intelligence.track_milestone", title="Payment gateway went live")
    await run(here, "artifact.create", title="Runbook", content="Restart the gateway with `make gateway`.")
    await sharpened()

    async def found(query: str) -> dict[str, str]:
        results = (await run(here, "memory.search", query=query))["results"]
        return {one["content"]: one["type"] for one in results}

    assert (await found("staging cluster"))["The staging cluster runs in Frankfurt."] == "memory"
    assert (await found("invoices"))["Invoices are sent on the first of May."] == "document"
    assert "decision" in (await found("Kafka events")).values()
    assert "milestone" in (await found("went live")).values()
    assert "artifact" in (await found("restart make gateway")).values()
    recalled = (await run(here, "memory.recall", query="payment gateway"))["results"]
    assert "artifact" not in {one["type"] for one in recalled}
    # Kept whole: one memory, in other dialects too, and under its own id and name.
    told = await call("recall", bank_id="alpha", query="who owns the payment gateway")
    assert "Grace owns the payment gateway. She is out in June." in json.dumps(told)
    one = await memory.get(here, memory.OneMemory(id=saved["slug"]))
    assert (one.id, one.slug) == (saved["memory_id"], "grace-owns-the-payment-gateway-she-is-out")
    kiro = dispatch.Door(catalog.DIALECTS["kiro"])
    seen = await dispatch.call_tool(here, kiro, "search", {"query": "Kafka", "project": "alpha"})
    assert "Kafka" in seen.model_dump_json()


async def test_recall_without_words_is_the_newest_first(app: App) -> None:
    here = app.ctx(local_owner(), "alpha")
    for content, category in (("One.", "general"), ("Two.", "decision"), ("Three.", "milestone")):
        await run(here, "memory.save", content=content, category=category, tags=["t"] if content != "One." else [])

    for asked in ({}, {"query": "???"}, {"query": "  "}):
        assert [one["content"] for one in (await run(here, "memory.recall", **asked))["results"]] == [
            "Three.",
            "Two.",
            "One.",
        ]
    tagged = await run(here, "memory.recall", tags=["t"], limit=1)
    assert [one["content"] for one in tagged["results"]] == ["Three."]
    assert [one["title"] for one in (await run(here, "intelligence.decisions"))["decisions"]] == ["Two."]
    assert [one["title"] for one in (await run(here, "intelligence.timeline"))["milestones"]] == ["Three."]


async def test_slugs_are_readable_and_unique_in_their_bank(app: App, sharpened: Callable[[], Awaitable[None]]) -> None:
    here, there = app.ctx(local_owner(), "alpha"), app.ctx(local_owner(), "beta")

    async def slug(ctx: Ctx, **given: Any) -> str:
        return str((await run(ctx, "memory.save", **given))["slug"])

    assert await slug(here, content="Tea at four, every day!") == "tea-at-four-every-day"
    assert await slug(here, content="Tea at four: every day?") == "tea-at-four-every-day-2"
    assert await slug(here, content="tea at FOUR every day", category="decision") == "tea-at-four-every-day-3"
    assert await slug(there, content="Tea at four every day.") == "tea-at-four-every-day"
    assert await slug(here, content="x", title="Größe: Café №1 日本語") == "grosse-cafe-no1-日本語"
    assert await slug(here, content="!!!") == "memory"
    assert len(await slug(here, content="word " * 200)) <= 60
    await sharpened()
    assert (await memory.get(here, memory.OneMemory(id="tea-at-four-every-day"))).text == "Tea at four, every day!"
    with pytest.raises(NotFound):
        await memory.get(there, memory.OneMemory(id="tea-at-four-every-day-2"))


@ONE_STORE
async def test_each_tier_lists_its_tools_within_the_budget(app: App) -> None:
    sizes = {}
    for tier, count in COUNTS.items():
        tools = DOOR.tools(app.ctx(asking(tier), "alpha"))
        listed = [mcp.listed(tool).model_dump_json(by_alias=True, exclude_none=True) for tool in tools]
        sizes[tier] = sum(map(len, listed)) // 4

        assert len(tools) == count
    # Tokens as characters / 4; raising one needs a reason.
    assert sizes["core"] < 1_900 and sizes["exec"] < 3_200 and sizes["intel"] < 5_800 and sizes["all"] < 7_500, sizes


@ONE_STORE
async def test_a_milestone_says_its_sort_in_the_word_that_it_was_given_by(app: App) -> None:
    here = app.ctx(local_owner(), "alpha")

    made = await run(here, "intelligence.track_milestone", title="Went live", milestone_type="launch")
    listed = await run(here, "intelligence.timeline", milestone_type="launch")

    assert made["milestone"]["milestone_type"] == "launch" and "type" not in made["milestone"]
    assert (listed["milestones"], listed["total"]) == ([made["milestone"]], 1)


@ONE_STORE
async def test_every_tool_says_what_it_is_for_and_none_takes_a_bank(app: App) -> None:
    for tool in catalog.DIALECTS["xerotier"].tools.values():
        properties = mcp.listed(tool).input_schema["properties"]

        assert "bank" not in properties and "banks" not in properties, tool.name
        assert len(tool.description) < 260, tool.name
        assert all(told.get("description") for told in properties.values()), tool.name


async def test_binding_asks_for_both_rights_each_time(app: App, call: Call) -> None:
    for name in ("alpha", "beta"):
        await call("create_bank", bank_id=name)
    narrow, local = asking(banks=frozenset({"beta"})), Local()
    ctx = replace(app.ctx(narrow), connection=local)

    with pytest.raises(NotBound):
        await run(ctx, "workspace.get")
    with pytest.raises(NotFound) as foreign:
        await run(ctx, "session.init", workspace="alpha")
    with pytest.raises(NotFound) as unknown:
        await run(ctx, "session.init", workspace="nowhere")
    bound = await run(ctx, "session.init", workspace="beta")
    alpha = (await run(app.ctx(local_owner(), "alpha"), "workspace.get"))["workspace"]
    pinned = replace(app.ctx(narrow, "beta"), is_pinned=True)
    with pytest.raises(BadInput):
        await binding.pinned(ctx, alpha["id"])
    with pytest.raises(BadInput):
        await binding.pinned(ctx, alpha["uuid"])
    with pytest.raises(Conflict):
        await run(replace(pinned, principal=asking()), "session.init", workspace="alpha")

    assert str(foreign.value) == str(unknown.value)
    assert local.bank and bound["workspace"]["name"] == "beta"
    assert bound["project"] == (await run(pinned, "session.init"))["project"]
    assert await binding.remembered(replace(ctx, principal=asking(banks=frozenset({"alpha"}))), int(local.bank)) is None


@ONE_STORE
async def test_onboarding_tells_what_came_last_though_nobody_is_named(app: App) -> None:
    here = app.ctx(local_owner(), "alpha")
    saved = [
        await run(here, "memory.save", content=f"the {colour} otters swim in the {place}")
        for colour in ("brown", "grey", "young", "old")
        for place in ("river", "lake", "harbour")
    ]

    told = await dispatch.call(here, "session.onboard", {"topic": "otters"})

    assert isinstance(told, priming.Onboarded) and len(told.memories) == priming.MEMORIES
    shown = {one.id for one in told.memories}
    assert [one.id for one in told.recent] == [one["memory_id"] for one in saved[::-1] if one["memory_id"] not in shown]


@ONE_STORE
async def test_what_was_handed_out_can_be_saved_as_something_else(app: App) -> None:
    here, said = app.ctx(local_owner(), "alpha"), "The ferry to the island sails on Sundays only."
    await run(here, "memory.save", content=said)
    assert (await run(here, "memory.search", query="ferry"))["results"]

    again = await run(here, "memory.save", content=said)
    decided = await run(here, "memory.save", content=said, category="decision")
    blocked = await run(here, "memory.save", content=said, category="blocker")

    assert (again["status"], decided["status"], blocked["status"]) == ("skipped", "stored", "stored")
    assert [one["title"] for one in (await run(here, "intelligence.decisions"))["decisions"]] == [said]


@ONE_STORE
async def test_the_version_that_was_read_is_the_one_to_pass_on_and_an_older_one_is_refused(app: App) -> None:
    here = app.ctx(local_owner(), "alpha")
    await run(here, "artifact.create", title="Plan", content="Ship in May.")
    await run(here, "artifact.update", artifact_id="plan", content="Ship in June.")

    before = await run(here, "artifact.read", artifact_id="plan", version=1)
    now = await run(here, "artifact.read", artifact_id="plan")

    told = [(one["content"], one["version"], one["current_version"]) for one in (before, now)]
    assert told == [("Ship in May.", 1, 2), ("Ship in June.", 2, 2)]
    with pytest.raises(Conflict):
        await run(here, "artifact.update", artifact_id="plan", content="No.", expected_version=before["version"])


@ONE_STORE
async def test_a_refusal_says_what_to_do_next(app: App) -> None:
    here = app.ctx(local_owner(), "alpha")

    with pytest.raises(BadInput, match="There is none yet; `keepsake bank create` makes one"):
        await run(replace(app.ctx(local_owner()), connection=Local()), "session.init")
    with pytest.raises(BadInput, match="`chat_id`: String should have at least 1 character"):
        await run(here, "artifact.list", chat_id="")
    with pytest.raises(BadInput, match="`chat_id`: String should have at most 100 characters"):
        await run(here, "artifact.list", chat_id="c" * 101)


async def test_a_session_keeps_its_bank_where_other_servers_see_it(app: App) -> None:
    known = mcp_sessions.Known("digest", "Keepsake (xerotier)", "1/local", "2025-11-25")
    await mcp_sessions.note(app, known, 60_000_000)

    await mcp_sessions.bind(app, "digest", 42)
    await mcp_sessions.note(app, known, 60_000_000)
    bound = await mcp_sessions.standing(app, "digest")
    await mcp_sessions.end(app, "digest", 60_000_000)

    assert bound == mcp_sessions.Standing(False, "42")
    assert await mcp_sessions.standing(app, "digest") == mcp_sessions.Standing(True, "42")
    assert await mcp_sessions.standing(app, "another") is None


async def test_an_org_gets_one_project_id_however_many_ask(app: App) -> None:
    first = await binding.project(app, 1)

    assert first.startswith("proj_") and first == await binding.project(app, 1)


@ONE_STORE
async def test_resources_refuse_more_than_they_know(app: App) -> None:
    ctx = app.ctx(local_owner(), "alpha")

    for uri in ("xerotier://memory/x?since=1d", "xerotier://workspace/current/brief?x=1"):
        kind, arguments = DOOR.resource(ctx, uri)
        with pytest.raises(KeepsakeError):
            await dispatch.run_tool(ctx, DOOR, kind.tool, arguments)


@ONE_STORE
async def test_the_endpoint_can_be_switched_off(app: App) -> None:
    def paths(**settings: object) -> set[str]:
        made = replace(app, settings=replace(app.settings, **settings))  # type: ignore[arg-type]  # as a test names them
        return {route.path for route in Site(made).routes() if isinstance(route, Route)}

    ours = {"/v1/mcp", "/{project}/v1/mcp"}
    assert ours <= paths()
    assert not ours & paths(xerotier_enabled=False) and not ours & paths(mcp_enabled=False)


@ONE_STORE
async def test_resources_are_listed_page_by_page(app: App) -> None:
    ctx = app.ctx(local_owner(), "alpha")
    for n in range(60):
        await run(ctx, "memory.save", content=f"Fact number {n}.")
    for n in range(3):
        await run(ctx, "artifact.create", title=f"Plan {n}", content="Text.")

    async def ctx_of(incoming: object) -> Ctx:
        return ctx

    reads = reading.Reading(DOOR, ctx_of)
    first = await reads.list_resources(None, None)
    second = await reads.list_resources(None, types.PaginatedRequestParams(cursor=first.next_cursor))
    uris = [one.uri for one in first.resources + second.resources]

    assert len(first.resources) == 50 and second.next_cursor is None
    assert uris[2] == "xerotier://memory/fact-number-59" and len(set(uris)) == 65
    assert sum(uri.startswith("xerotier://artifact/") for uri in uris) == 3
    for wrong in ("nonsense", "OTk6MA==", "MDotMQ==", "eDp5"):
        with pytest.raises(MCPError):
            await reads.list_resources(None, types.PaginatedRequestParams(cursor=wrong))
    unbound = reading.Reading(DOOR, lambda incoming: _given(app.ctx(local_owner())))
    assert [one.uri for one in (await unbound.list_resources(None, None)).resources] == uris[:2]


async def _given(ctx: Ctx) -> Ctx:
    return ctx


@ONE_STORE
async def test_what_is_not_asked_for_does_not_crowd_out_what_is(app: App) -> None:
    ctx = app.ctx(local_owner(), "alpha")
    await run(ctx, "memory.save", content="Someone has to restart the gateway on Mondays, says Grace.")
    for n in range(12):
        await run(ctx, "artifact.create", title=f"Restart gateway {n}", content=f"Restart the gateway, way {n}.")

    found = await run(ctx, "memory.recall", query="restart gateway", limit=2)
    everything = await run(ctx, "memory.search", query="restart gateway", limit=2)

    assert [one["type"] for one in found["results"]] == ["memory"]
    assert {one["type"] for one in everything["results"]} == {"artifact"}
