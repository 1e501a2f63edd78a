"""The worker: heartbeats, tries, ceilings, dead letters and the end, on both stores."""

import asyncio
import contextlib
from typing import Any

import pytest

from keepsake import worker
from keepsake.context import App
from keepsake.core.clock import DAY, HOUR, SECOND
from keepsake.core.errors import Conflict, Unavailable
from keepsake.ops import jobs as queue
from keepsake.ops.embedding import Alive
from keepsake.store import banks, handed_out, jobs
from keepsake.store.engine import Tx
from tests.ops.working import ORG, Clock, add, app, does, nothing, time

__all__ = ["app", "does", "time"]
pytestmark = pytest.mark.anyio


async def test_after_its_last_try_it_is_a_dead_letter_that_says_why(
    call: Any, app: App, time: Clock, does: Any
) -> None:
    async def unlucky(app: App, job: jobs.Job, alive: Alive) -> None:
        raise Unavailable("The endpoint does not answer. Check that it runs.")

    does(unlucky)
    id = await add(app)
    tries = 0
    while await worker.step(app):
        tries += 1
        time.at += HOUR

    [dead] = (await call("list_operations", status="failed"))["operations"]

    assert (tries, dead["operation_id"], dead["attempts"]) == (jobs.MOST_ATTEMPTS, id, jobs.MOST_ATTEMPTS)
    assert dead["error"] == "unavailable: The endpoint does not answer. Check that it runs."


async def test_a_job_that_only_has_to_wait_counts_no_try(call: Any, app: App, time: Clock, does: Any) -> None:
    async def in_the_way(app: App, job: jobs.Job, alive: Alive) -> None:
        raise Conflict("Another process is making this index. Try again when it is done.")

    does(in_the_way)
    id = await add(app)
    for _ in range(10):
        assert await worker.step(app)
        assert await worker.step(app) is False
        time.at += worker.REST

    told = await call("get_operation", operation_id=id)
    assert (told["status"], told["attempts"]) == ("pending", 0)


async def test_an_operation_that_kills_its_workers_is_given_up(call: Any, app: App, time: Clock, does: Any) -> None:
    does(nothing)
    id = await add(app)
    for _ in range(jobs.MOST_ATTEMPTS):
        assert await queue.claim(app, ["work"])
        time.at += jobs.LEASE + 1

    assert await worker.step(app)

    told = await call("get_operation", operation_id=id)
    assert (told["status"], told["error"]) == ("failed", "lost: whoever did it died, 5 times.")


async def test_an_operation_over_its_ceiling_is_stopped_and_failed(
    call: Any, app: App, time: Clock, does: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = asyncio.Event()

    async def slow(app: App, job: jobs.Job, alive: Alive) -> None:
        time.at += 11 * SECOND
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    does(slow)
    monkeypatch.setitem(worker.CEILINGS, "work", 10 * SECOND)
    id = await add(app)

    await asyncio.wait_for(worker.step(app), 10)

    told = await call("get_operation", operation_id=id)
    assert stopped.is_set()
    assert (told["status"], told["error"]) == ("failed", "too_long: it ran over its ceiling of 10 s.")


async def test_a_heartbeat_keeps_the_lease_while_a_handler_asks_nothing(app: App, time: Clock, does: Any) -> None:
    taken: list[jobs.Job | None] = []

    async def busy(app: App, job: jobs.Job, alive: Alive) -> None:
        for _ in range(4):
            time.at += jobs.LEASE // 2
            await until_kept(app, job)
        taken.append(await queue.claim(app, ["work"]))

    async def until_kept(app: App, job: jobs.Job) -> None:
        async def lease(tx: Tx) -> int:
            row = await tx.one("SELECT lease_until FROM jobs WHERE id = :id", id=job.id)
            assert row is not None
            return int(row["lease_until"])

        while await app.store.read(ORG, lease) < time.at + jobs.LEASE:
            await asyncio.sleep(0.01)

    does(busy)
    await add(app)
    await asyncio.wait_for(worker.step(app), 20)

    assert taken == [None]


async def test_a_worker_that_slept_over_its_lease_learns_that_the_job_is_anothers(
    call: Any, app: App, time: Clock, does: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "WATCH_S", 60)
    alive_after: list[bool] = []
    other: list[jobs.Job | None] = []

    async def asleep(app: App, job: jobs.Job, alive: Alive) -> None:
        time.at += jobs.LEASE + 1
        other.append(await app.store.engine.claim(lambda tx: jobs.claim(tx, ["work"], time.at)))
        alive_after.append(await alive())

    does(asleep)
    id = await add(app)
    await worker.step(app)

    assert alive_after == [False]
    told = await call("get_operation", operation_id=id)
    assert (told["status"], told["attempts"]) == ("running", 2)
    assert other[0] is not None and await queue.finish(app, other[0])


async def test_asking_while_it_runs_is_answered_by_one_more_look(call: Any, app: App, does: Any) -> None:
    runs = []

    async def looks(app: App, job: jobs.Job, alive: Alive) -> None:
        runs.append(job.id)
        if len(runs) == 1:
            await app.store.write(ORG, lambda tx: jobs.wanted(tx, app.store, ORG, job.bank, "work", app.now()))

    does(looks)
    await call("create_bank", bank_id="default")

    async def ask(tx: Tx) -> None:
        bank = await banks.named(tx, ORG, "default")
        assert bank is not None
        await jobs.wanted(tx, app.store, ORG, bank.id, "work", app.now())

    await app.store.write(ORG, ask)
    while await worker.step(app):
        pass

    [told] = (await call("list_operations"))["operations"]
    assert len(runs) == 2
    assert (told["status"], told["progress"], told["attempts"]) == ("completed", 1, 1)


async def test_a_worker_that_is_told_to_end_gives_its_job_back(call: Any, app: App, does: Any) -> None:
    begun = asyncio.Event()

    async def endless(app: App, job: jobs.Job, alive: Alive) -> None:
        begun.set()
        await asyncio.Event().wait()

    does(endless)
    id = await add(app)
    async with worker.beside(app):
        await asyncio.wait_for(begun.wait(), 10)

    told = await call("get_operation", operation_id=id)
    assert (told["status"], told["attempts"]) == ("pending", 0)


async def test_a_long_job_does_not_hold_up_another(app: App, does: Any) -> None:
    first_may_end, second_done = asyncio.Event(), asyncio.Event()
    begun = 0

    async def one_waits_for_the_other(app: App, job: jobs.Job, alive: Alive) -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            await first_may_end.wait()
        else:
            second_done.set()

    does(one_waits_for_the_other)
    await add(app)
    await add(app)
    task = asyncio.create_task(worker.run(app))
    await asyncio.wait_for(second_done.wait(), 10)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

    assert begun == 2


async def test_an_effect_in_the_transaction_that_finishes_happens_once(
    app: App, time: Clock, does: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "WATCH_S", 60)

    async def counts(app: App, job: jobs.Job, alive: Alive) -> None:
        async def body(tx: Tx) -> None:
            if await jobs.finish(tx, job, app.now()):
                await tx.run(
                    "INSERT INTO suppressions (org, bank, digest, created_at) VALUES (1, :bank, :digest, 0)",
                    bank=job.bank,
                    digest=job.holder,
                )

        await app.store.write(ORG, body)
        # Whoever still believes in the job finds it ended.
        time.at += jobs.LEASE + 1
        assert await app.store.engine.claim(lambda tx: jobs.claim(tx, ["work"], time.at)) is None
        await app.store.write(ORG, body)

    does(counts)
    await add(app)
    await worker.step(app)

    assert len(await app.store.read(ORG, lambda tx: tx.all("SELECT digest FROM suppressions"))) == 1


async def test_the_sweep_clears_old_jobs_and_what_was_handed_out_long_ago(
    call: Any, app: App, time: Clock, does: Any
) -> None:
    does(nothing)
    await add(app)
    await worker.step(app)
    time.at += 8 * DAY
    young = await add(app)

    for digest, expires in (("old", time.at), ("new", time.at + 1)):
        await app.store.engine.volatile(lambda tx: handed_out.put(tx, {digest: 0}, expires))  # noqa: B023

    assert await queue.clear_away(app) == 2

    assert [one["operation_id"] for one in (await call("list_operations"))["operations"]] == [young]
    left, _ = await app.store.engine.volatile(lambda tx: handed_out.known(tx, ["old", "new"], 0))
    assert left == {"new": 0}
