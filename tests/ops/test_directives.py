"""Directives, on both stores."""

from dataclasses import replace
from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.errors import BadInput, Conflict, Forbidden, NotFound
from keepsake.core.principal import DEFAULT_SCOPES, Principal, local_owner
from keepsake.ops import directives as ops
from keepsake.store import banks, directives
from keepsake.store.engine import Tx
from keepsake.tools import catalog

pytestmark = pytest.mark.anyio


def names(listed: dict[str, Any]) -> list[str]:
    return [directive["name"] for directive in listed["directives"]]


async def test_a_directive_is_given_back_as_it_was_made(call: Any) -> None:
    made = await call(
        "create_directive", name="Tone", content="Answer in Catalan.", priority=5, tags=["user:x", "user:x"]
    )

    listed = await call("list_directives")

    assert listed["directives"] == [made]
    assert made["directive_id"].isdecimal() and made["created_at"].endswith("Z")
    assert {key: made[key] for key in made if key not in ("directive_id", "created_at")} == {
        "name": "Tone",
        "content": "Answer in Catalan.",
        "priority": 5,
        "is_active": True,
        "tags": ["user:x"],
        "trust": "owner",
    }


async def test_the_highest_priority_comes_first_and_the_older_of_two_equals(call: Any) -> None:
    for name, arguments in (("none", {}), ("low", {"priority": -3}), ("high", {"priority": 10}), ("late", {})):
        await call("create_directive", name=name, content="x", **arguments)

    assert names(await call("list_directives")) == ["high", "none", "late", "low"]


async def test_only_active_directives_are_listed_unless_all_are_wanted(call: Any) -> None:
    await call("create_directive", name="on", content="x")
    await call("create_directive", name="off", content="x", is_active=False)

    assert names(await call("list_directives")) == ["on"]
    assert names(await call("list_directives", active_only=False)) == ["on", "off"]


async def test_directives_are_filtered_by_any_of_the_tags(call: Any) -> None:
    await call("create_directive", name="a", content="x", tags=["a", "c"])
    await call("create_directive", name="b", content="x", tags=["b"])
    await call("create_directive", name="bare", content="x")

    assert names(await call("list_directives", tags=["a"])) == ["a"]
    assert names(await call("list_directives", tags=["b", "c"])) == ["a", "b"]
    assert names(await call("list_directives", tags=["d"])) == []


async def test_a_deleted_directive_is_gone_and_leaves_a_receipt(call: Any, app: App) -> None:
    made = await call("create_directive", name="Tone", content="Answer in Catalan.")

    deleted = await call("delete_directive", directive_id=made["directive_id"])

    assert deleted["status"] == "deleted" and deleted["receipt_id"] and deleted["digest"]
    assert names(await call("list_directives", active_only=False)) == []
    rows = await app.store.read(1, lambda tx: tx.all("SELECT operation, memories, counts FROM receipts"))
    assert [dict(row) for row in rows] == [
        {"operation": "directive.delete", "memories": "[]", "counts": '{"directives": 1}'}
    ]
    with pytest.raises(NotFound, match="No directive"):
        await call("delete_directive", directive_id=made["directive_id"])


@pytest.mark.parametrize("id", ["1", "nope", "9" * 20, "-1", "٣"])
async def test_an_unknown_id_is_refused(call: Any, id: str) -> None:
    with pytest.raises(NotFound, match="No directive .* in this bank"):
        await call("delete_directive", directive_id=id)


async def test_another_banks_directive_is_as_unknown_as_none(call: Any) -> None:
    await call("create_bank", bank_id="a")
    await call("create_bank", bank_id="b")
    made = await call("create_directive", bank_id="a", name="Tone", content="x")

    with pytest.raises(NotFound, match="No directive .* in this bank"):
        await call("delete_directive", bank_id="b", directive_id=made["directive_id"])

    assert names(await call("list_directives", bank_id="a")) == ["Tone"]
    assert names(await call("list_directives", bank_id="b")) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"name": "x"},
        {"content": "x"},
        {"name": "", "content": "x"},
        {"name": "x", "content": "  "},
        {"name": "x", "content": "x" * 10_001},
        {"name": "x", "content": "x", "priority": 1.5},
        {"name": "x", "content": "x", "priority": 10**9},
        {"name": "x", "content": "x", "is_active": "yes"},
        {"name": "x", "content": "x", "tags": "a"},
    ],
)
async def test_a_directive_that_is_none_is_refused_and_nothing_is_stored(call: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        await call("create_directive", **arguments)

    assert (await call("list_banks"))["banks"] == []


async def as_key(app: App, tool: str, **arguments: Any) -> dict[str, Any]:
    """The same with a key that has what a key has by default."""
    agent = Principal(org=1, name="key:agent", scopes=DEFAULT_SCOPES, key=5)
    door = dispatch.Door(catalog.DIALECTS["hindsight"])
    return (await dispatch.call_tool(app.ctx(agent), door, tool, arguments)).model_dump(mode="json")


async def test_a_directive_carries_its_authors_trust(app: App) -> None:
    made = await as_key(app, "create_directive", name="Tone", content="x")

    assert made["trust"] == "agent"


async def test_a_key_that_may_not_destroy_deletes_no_directive(app: App) -> None:
    made = await as_key(app, "create_directive", name="Tone", content="x")

    with pytest.raises(Forbidden, match="403"):
        await as_key(app, "delete_directive", directive_id=made["directive_id"])


async def test_a_bank_holds_only_so_many(call: Any, app: App) -> None:
    made = await call("create_directive", name="first", content="x")

    async def fill(tx: Tx) -> None:
        bank = await banks.named(tx, 1, "default")
        assert bank is not None
        [first] = await directives.listed(tx, 1, bank.id)
        for _ in range(ops.MOST - 1):
            await directives.insert(tx, replace(first, id=app.store.new_id()))

    await app.store.write(1, fill)
    with pytest.raises(Conflict, match="1,000 directives"):
        await call("create_directive", name="one more", content="x")

    await call("delete_directive", directive_id=made["directive_id"])
    await call("create_directive", name="one more", content="x")


async def test_a_question_is_answered_under_the_directives_that_hold_for_it(call: Any, app: App) -> None:
    await call("create_directive", name="always", content="x")
    await call("create_directive", name="first", content="x", priority=9, tags=["work", "home"])
    await call("create_directive", name="off", content="x", is_active=False)

    async def active(*tags: str) -> list[str]:
        async def body(tx: Tx) -> list[directives.Directive]:
            bank = await banks.named(tx, 1, "default")
            assert bank is not None
            return await directives.active(tx, 1, bank.id, tags)

        return [one.name for one in await app.store.read(1, body)]

    assert await active() == ["always"]
    assert await active("work") == ["first", "always"]
    assert await active("play") == ["always"]


async def test_the_single_bank_dialect_has_them_without_a_bank_argument(app: App) -> None:
    door = dispatch.Door(catalog.BOUND["hindsight"])
    ctx = app.ctx(local_owner(), bank="alice")

    await dispatch.call_tool(ctx, door, "create_directive", {"name": "Tone", "content": "x"})
    listed = await dispatch.call_tool(ctx, door, "list_directives", {})

    assert names(listed.model_dump()) == ["Tone"]
    with pytest.raises(BadInput, match="`bank_id` is not an argument"):
        await dispatch.call_tool(ctx, door, "list_directives", {"bank_id": "alice"})
