"""What is told twice merges; what is newer takes the place of what it contradicts; on both stores."""

from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.errors import NotFound
from keepsake.core.principal import local_owner

pytestmark = pytest.mark.anyio


async def operation(app: App, name: str, /, **arguments: Any) -> dict[str, Any]:
    result = await dispatch.call(app.ctx(local_owner()), name, arguments)
    return result.model_dump(mode="json")


async def test_what_is_told_twice_is_one_memory_with_more_proof(call: Any, app: App, sharpened: Any) -> None:
    first = await call("retain", content="The office is in Lisbon.")
    await sharpened()
    await call("retain", content="the office is in Lisbon")
    await sharpened()

    listed = await call("list_memories")
    held = await operation(app, "memory.get", id=first["memory_id"])

    assert [fact["id"] for fact in listed["memories"]] == [first["memory_id"]]
    assert held["proof"] == 2


async def test_a_newer_statement_supersedes_what_it_contradicts_and_the_old_one_is_found_as_of_its_time(
    call: Any, sharpened: Any
) -> None:
    await call("retain", content="The office is in Berlin.")
    await sharpened()
    before = clock.iso(clock.now())
    await call("retain", content="The office is in Lisbon.")
    await sharpened()

    now = await call("recall", query="Where is the office?")
    then = await call("recall", query="Where is the office?", query_timestamp=before)

    assert [fact["text"] for fact in now["results"]] == ["The office is in Lisbon."]
    assert [fact["text"] for fact in then["results"]] == ["The office is in Berlin."]


async def test_old_talk_that_is_brought_in_later_does_not_take_the_place_of_what_is_newer(
    call: Any, sharpened: Any
) -> None:
    await call("retain", content="Mara's manager is Petra.", timestamp="2026-03-01T09:00:00Z")
    await sharpened()
    await call("retain", content="Mara's manager is Ruben.", timestamp="2020-03-01T09:00:00Z")
    await sharpened()

    listed = await call("list_memories")

    assert [fact["text"] for fact in listed["memories"]] == ["Mara's manager is Petra."]


async def test_facts_that_can_both_hold_both_stay(call: Any, sharpened: Any) -> None:
    await call("retain", content="Alice likes tea.")
    await call("retain", content="Alice likes chess.")
    await sharpened()

    assert (await call("list_memories"))["total"] == 2


async def test_a_correction_replaces_a_memory_once_and_for_all(call: Any, app: App, sharpened: Any) -> None:
    wrong = await call("retain", content="The release is on Tuesday.", tags=["release"])
    await sharpened()

    corrected = await operation(app, "memory.correct", id=wrong["memory_id"], content="The release is on Thursday.")
    found = await call("recall", query="When is the release?")
    old = await operation(app, "memory.get", id=wrong["memory_id"])

    assert [fact["text"] for fact in found["results"]] == ["The release is on Thursday."]
    assert (corrected["tags"], old["superseded_by"]) == (["release"], corrected["id"])


@pytest.mark.parametrize(("half", "holds"), [("older", "newer"), ("newer", "older"), ("older", "else")])
async def test_a_correction_settles_a_conflict_and_leaves_one_truth(
    call: Any, app: App, sharpened: Any, half: str, holds: str
) -> None:
    told = {"older": "Alice prefers tea.", "newer": "Alice prefers coffee.", "else": "Alice prefers water."}
    ids = {}
    for name in ("older", "newer"):
        ids[name] = (await call("retain", content=told[name]))["memory_id"]
        await sharpened()
    [doubt] = (await operation(app, "memory.conflicts"))["conflicts"]

    await operation(app, "memory.correct", id=ids[half], content=told[holds])
    await sharpened()

    assert (doubt["older"]["id"], doubt["newer"]["id"]) == (ids["older"], ids["newer"])
    assert [fact["text"] for fact in (await call("list_memories"))["memories"]] == [told[holds]]
    assert await operation(app, "memory.conflicts") == {"conflicts": []}


async def test_correcting_an_unknown_memory_is_refused(app: App, call: Any) -> None:
    await call("retain", content="Something.")

    with pytest.raises(NotFound):
        await operation(app, "memory.correct", id="12345", content="Else.")


async def test_the_inbox_of_conflicts_is_empty_where_nothing_is_in_doubt(app: App, call: Any, sharpened: Any) -> None:
    await call("retain", content="The office is in Lisbon.")
    await sharpened()

    assert await operation(app, "memory.conflicts") == {"conflicts": []}
