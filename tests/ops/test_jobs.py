"""Background operations as callers see and cancel them, on both stores."""

import asyncio
from typing import Any

import pytest

from keepsake import worker
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.clock import SECOND
from keepsake.core.errors import BadInput, NotFound
from keepsake.ops import jobs as queue
from keepsake.ops.embedding import Alive
from keepsake.store import jobs
from tests.ops.working import ORG, Clock, add, app, does, nothing, time

__all__ = ["app", "does", "time"]
pytestmark = pytest.mark.anyio


async def test_an_operation_is_listed_and_told_in_full(call: Any, app: App, time: Clock) -> None:
    id = await add(app)

    told = await call("get_operation", operation_id=id)

    assert told == {
        "operation_id": id,
        "type": "work",
        "status": "pending",
        "progress": 0,
        "created_at": clock.iso(time.at),
        "updated_at": clock.iso(time.at),
        "attempts": 0,
    }
    assert await call("list_operations") == {"operations": [told]}


async def test_what_retain_leaves_for_the_background_can_be_followed(call: Any, app: App) -> None:
    await call("retain", content="Dana meets the team on Mondays.")

    waiting = await call("list_operations", status="pending")
    while await worker.step(app):
        pass
    done = await call("list_operations", status="completed")

    assert waiting["operations"] and {one["progress"] for one in waiting["operations"]} == {0}
    assert {one["operation_id"] for one in waiting["operations"]} <= {one["operation_id"] for one in done["operations"]}
    assert {(one["progress"], one["attempts"]) for one in done["operations"]} == {(1, 1)}
    assert (await call("list_operations", status="pending"))["operations"] == []


async def test_operations_are_listed_newest_first_by_status_and_limit(
    call: Any, app: App, time: Clock, does: Any
) -> None:
    does(nothing)
    first = await add(app)
    await worker.step(app)
    time.at += SECOND
    second = await add(app)
    third = await add(app)

    async def ids(**arguments: Any) -> list[str]:
        return [one["operation_id"] for one in (await call("list_operations", **arguments))["operations"]]

    assert await ids() == [third, second, first]
    assert await ids(limit=2) == [third, second]
    assert await ids(status="completed") == [first]
    assert await ids(status="failed") == []


@pytest.mark.parametrize("arguments", [{"status": "done"}, {"status": ""}, {"limit": 0}, {"limit": 1_001}])
async def test_a_status_or_limit_that_is_none_is_refused(call: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        await call("list_operations", **arguments)


@pytest.mark.parametrize("tool", ["get_operation", "cancel_operation"])
async def test_unknown_ids_and_those_of_other_banks_are_refused_alike(call: Any, app: App, tool: str) -> None:
    await call("create_bank", bank_id="b")
    id = await add(app, "a")

    for unknown in (id, "1", "nope", "9" * 20):
        with pytest.raises(NotFound) as refused:
            await call(tool, bank_id="b", operation_id=unknown)
        assert str(refused.value) == f"No operation {unknown!r} in this bank. Use list_operations to see the ids."

    assert (await call("get_operation", bank_id="a", operation_id=id))["status"] == "pending"


async def test_a_waiting_operation_is_cancelled_at_once_and_once(call: Any, app: App, does: Any) -> None:
    does(nothing)
    id = await add(app)

    first = await call("cancel_operation", operation_id=id)
    second = await call("cancel_operation", operation_id=id)

    assert (first["status"], first["note"]) == ("cancelled", "Cancelled.")
    assert second == {**first, "note": "It had ended before (cancelled); nothing was changed."}
    assert await worker.step(app) is False


async def test_cancelling_a_finished_operation_says_so_and_changes_nothing(call: Any, app: App, does: Any) -> None:
    does(nothing)
    id = await add(app)
    await worker.step(app)
    before = await call("get_operation", operation_id=id)
    audited = await app.store.read(ORG, lambda tx: tx.all("SELECT * FROM audit"))

    told = await call("cancel_operation", operation_id=id)

    assert told == {**before, "note": "It had ended before (completed); nothing was changed."}
    assert await call("get_operation", operation_id=id) == before
    assert await app.store.read(ORG, lambda tx: tx.all("SELECT * FROM audit")) == audited


async def test_a_running_operation_is_stopped_when_it_is_cancelled(call: Any, app: App, does: Any) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()
    holds: list[bool] = []

    async def endless(app: App, job: jobs.Job, alive: Alive) -> None:
        holds.append(await alive())
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            holds.append(await alive())
            stopped.set()

    does(endless)
    id = await add(app)
    step = asyncio.create_task(worker.step(app))
    await begun.wait()

    cancelled = await call("cancel_operation", operation_id=id)
    assert await asyncio.wait_for(step, 10) is True

    assert stopped.is_set() and holds == [True, False]
    assert cancelled["status"] == "cancelled"
    assert (await call("get_operation", operation_id=id))["status"] == "cancelled"


async def test_progress_can_be_watched(call: Any, app: App, does: Any) -> None:
    seen = []

    async def halves(app: App, job: jobs.Job, alive: Alive) -> None:
        assert await queue.progress(app, job, 0.5)
        seen.append(await call("get_operation", operation_id=str(job.id)))

    does(halves)
    id = await add(app)
    await worker.step(app)

    assert [(one["status"], one["progress"]) for one in seen] == [("running", 0.5)]
    assert (await call("get_operation", operation_id=id))["progress"] == 1


async def test_a_failing_operation_is_tried_again_later_and_tells_no_content(
    call: Any, app: App, time: Clock, does: Any
) -> None:
    async def careless(app: App, job: jobs.Job, alive: Alive) -> None:
        raise ValueError("Dana's password is hunter2")

    does(careless)
    id = await add(app)

    await worker.step(app)
    told = await call("get_operation", operation_id=id)
    at_once = await worker.step(app)
    time.at += 10 * SECOND
    later = await worker.step(app)

    assert (told["status"], told["attempts"], told["error"]) == ("pending", 1, "ValueError")
    assert (at_once, later) == (False, True)
    assert (await call("get_operation", operation_id=id))["attempts"] == 2
