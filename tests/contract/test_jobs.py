"""Jobs on both stores: claimed once, fenced, tried again, ended once, and cleared away."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keepsake import settings
from keepsake.context import App
from keepsake.core.clock import DAY, SECOND
from keepsake.ops import jobs as queue
from keepsake.store import jobs
from keepsake.store.engine import Tx
from keepsake.store.jobs import KEPT, LEASE, MOST_ATTEMPTS, Job, Record
from keepsake.store.store import Store
from tests.conftest import Database

pytestmark = pytest.mark.anyio
ORG, BANK, NOW = 1, 7, 1_800_000_000_000_000


async def add(store: Store, kind: str = "work", now: int = NOW, org: int = ORG, **input: Any) -> int:
    return await store.write(org, lambda tx: jobs.add(tx, store, org, BANK, kind, now, input))


async def want(store: Store, now: int = NOW) -> None:
    await store.write(ORG, lambda tx: jobs.wanted(tx, store, ORG, BANK, "work", now))


async def claim(store: Store, now: int = NOW) -> Job | None:
    return await store.engine.claim(lambda tx: jobs.claim(tx, ["work"], now))


async def claimed(store: Store, now: int = NOW) -> Job:
    job = await claim(store, now)
    assert job is not None
    return job


async def finish(store: Store, job: Job, now: int = NOW) -> bool:
    return await store.write(job.org, lambda tx: jobs.finish(tx, job, now))


async def fail(store: Store, job: Job, now: int = NOW, jitter: float = 0.5) -> bool:
    return await store.write(job.org, lambda tx: jobs.fail(tx, job, now, "unavailable", jitter))


async def everything(store: Store) -> list[Record]:
    return await store.read(ORG, lambda tx: jobs.listed(tx, ORG, BANK, queue.STATES, 10_000))


async def only(store: Store) -> Record:
    [record] = await everything(store)
    return record


async def test_many_workers_at_once_claim_each_job_once(database: Database, tmp_path: Path) -> None:
    stores = [await database.open() for _ in range(4)]
    added = [await add(stores[0]) for _ in range(60)]
    apps = [App(settings.load({}, data_dir=tmp_path), store, now=lambda: NOW) for store in stores for _ in range(3)]

    async def greedy(app: App) -> list[int]:
        taken = []
        while job := await queue.claim(app, ["work"]):
            taken.append(job.id)
        return taken

    taken = [id for each in await asyncio.gather(*map(greedy, apps)) for id in each]
    for store in stores:
        await store.close()

    assert Counter(taken) == Counter(added)


async def test_the_job_that_has_waited_longest_comes_first(store: Store) -> None:
    later = await add(store, now=NOW)
    first = await add(store, now=NOW - SECOND)

    assert [(await claimed(store)).id, (await claimed(store)).id, await claim(store)] == [first, later, None]


async def test_a_job_of_an_unknown_kind_waits_for_who_knows_it(store: Store) -> None:
    await add(store, kind="from a later version")

    assert await claim(store) is None
    assert (await only(store)).state == "pending"


async def test_a_job_brings_the_ids_it_is_about(store: Store) -> None:
    id = await add(store, memory=12, model="team-directory", memories=[1, 2])

    job = await claimed(store)

    assert (job.id, job.attempt) == (id, 1)
    assert job.input == {"memory": 12, "model": "team-directory", "memories": [1, 2]}


async def test_content_cannot_be_left_in_a_job(store: Store) -> None:
    with pytest.raises(ValueError, match="ids, never content"):
        await add(store, text="Dana meets the team on Mondays.")

    assert await everything(store) == []


async def test_workers_serve_every_org(store: Store) -> None:
    other = await add(store, org=2)

    job = await claimed(store)

    assert (job.org, job.id) == (2, other)
    assert await finish(store, job) is True


async def test_asking_twice_is_one_job(store: Store) -> None:
    await want(store)
    await want(store, NOW + SECOND)

    job = await claimed(store, NOW + SECOND)
    await finish(store, job)

    assert (await only(store)).state == "completed"


async def test_asking_while_it_runs_makes_it_look_once_more(store: Store) -> None:
    await want(store)
    job = await claimed(store)
    await want(store)

    await finish(store, job)
    again = await claimed(store)
    await finish(store, again)

    assert (again.id, again.attempt) == (job.id, 1)
    assert (await only(store)).state == "completed"
    assert await claim(store) is None


async def test_asking_after_the_end_begins_anew(store: Store) -> None:
    await want(store)
    await finish(store, await claimed(store))

    await want(store, NOW + DAY)

    record = await only(store)
    assert (record.state, record.progress, record.attempts, record.created_at) == ("pending", 0, 0, NOW + DAY)


async def test_asking_does_not_shorten_the_pause_of_a_failing_job(store: Store) -> None:
    await want(store)
    await fail(store, await claimed(store))

    await want(store, NOW + SECOND)

    assert await claim(store, NOW + SECOND) is None
    assert (await claimed(store, NOW + 5 * SECOND)).attempt == 2


async def test_a_dead_workers_job_is_taken_over_after_its_lease(store: Store) -> None:
    id = await add(store)
    dead = await claimed(store)

    assert await claim(store, NOW + LEASE) is None
    taken = await claimed(store, NOW + LEASE + 1)

    assert (taken.id, taken.attempt) == (id, 2)
    assert taken.holder != dead.holder


async def test_a_heartbeat_puts_the_takeover_off(store: Store) -> None:
    await add(store)
    job = await claimed(store)

    assert await store.write(ORG, lambda tx: jobs.keep(tx, job, NOW + LEASE)) is True

    assert await claim(store, NOW + 2 * LEASE) is None
    assert (await claimed(store, NOW + 2 * LEASE + 1)).attempt == 2


async def unable(store: Store, job: Job) -> list[bool]:
    """What a former holder achieves by everything a holder can do."""

    async def body(tx: Tx) -> list[bool]:
        return [
            await jobs.holds(tx, job),
            await jobs.keep(tx, job, NOW),
            await jobs.progress(tx, job, NOW, 0.9),
            await jobs.finish(tx, job, NOW),
            await jobs.fail(tx, job, NOW, "late", 0.5),
            await jobs.bury(tx, job, NOW, "late"),
            await jobs.release(tx, job, NOW),
        ]

    return await store.write(ORG, body)


async def test_a_former_holder_changes_nothing(store: Store) -> None:
    await add(store)
    former = await claimed(store)
    holder = await claimed(store, NOW + LEASE + 1)
    before = await only(store)

    assert await unable(store, former) == [False] * 7

    assert await only(store) == before
    assert await finish(store, holder) is True


async def test_a_former_holder_is_kept_out_even_when_attempts_began_anew(store: Store) -> None:
    await want(store)
    former = await claimed(store)
    second = await claimed(store, NOW + LEASE + 1)
    await want(store)
    await finish(store, second)
    third = await claimed(store, NOW + LEASE + 1)

    assert (former.attempt, third.attempt) == (1, 1)
    assert await unable(store, former) == [False] * 7
    assert await finish(store, third) is True


# SQLite has one writer, so the two can never meet there.
@pytest.mark.parametrize("database", ["postgres"], indirect=True)
async def test_a_job_that_ends_while_another_waits_to_take_it_over_stays_ended(store: Store) -> None:
    await add(store)
    slow = await claimed(store)

    async def finishing(tx: Tx) -> bool:
        done = await jobs.finish(tx, slow, NOW)
        await tx.one("SELECT pg_sleep(0.3)::text AS slept")
        return done

    done, taken = await asyncio.gather(store.write(ORG, finishing), claim(store, NOW + LEASE + 1))

    assert (done, taken) == (True, None)
    assert (await only(store)).state == "completed"


async def test_progress_is_kept_between_nothing_and_all(store: Store) -> None:
    await add(store)
    job = await claimed(store)

    seen = []
    for share in (0.25, -1, 7):
        await store.write(ORG, lambda tx, share=share: jobs.progress(tx, job, NOW, share))  # type: ignore[misc]
        seen.append((await only(store)).progress)

    assert seen == [0.25, 0, 1]


def test_the_pause_grows_to_a_limit_and_is_spread() -> None:
    assert [jobs.pause(attempt, 0.5) // SECOND for attempt in (1, 2, 3, 4, 5)] == [4, 16, 64, 256, 300]
    assert (jobs.pause(1, 0), jobs.pause(1, 1)) == (2 * SECOND, 6 * SECOND)


async def test_a_job_that_keeps_failing_becomes_a_dead_letter(store: Store) -> None:
    await add(store)
    now, states = NOW, []
    for _ in range(MOST_ATTEMPTS):
        await fail(store, await claimed(store, now), now)
        states.append((await only(store)).state)
        now += DAY

    assert states == ["pending"] * (MOST_ATTEMPTS - 1) + ["failed"]
    assert await claim(store, now) is None
    record = await only(store)
    assert (record.attempts, record.error) == (MOST_ATTEMPTS, "unavailable")


async def test_a_dead_letter_that_is_asked_for_again_gets_all_its_tries(store: Store) -> None:
    await want(store)
    job = await claimed(store)
    await store.write(ORG, lambda tx: jobs.bury(tx, job, NOW, "too_long"))
    dead = await only(store)

    await want(store, NOW + SECOND)

    assert (dead.state, dead.error) == ("failed", "too_long")
    assert (await only(store)).error == ""
    assert (await claimed(store, NOW + SECOND)).attempt == 1


async def test_a_job_given_back_counts_no_attempt(store: Store) -> None:
    await add(store)
    job = await claimed(store)

    await store.write(ORG, lambda tx: jobs.release(tx, job, NOW, after=SECOND))

    assert await claim(store, NOW) is None
    assert (await claimed(store, NOW + SECOND)).attempt == 1


@pytest.mark.parametrize("is_running", [False, True])
async def test_a_cancelled_job_is_not_done(store: Store, is_running: bool) -> None:
    id = await add(store)
    job = await claimed(store) if is_running else None

    cancelled = [await store.write(ORG, lambda tx: jobs.cancel(tx, ORG, BANK, id, NOW)) for _ in range(2)]

    assert cancelled == [True, False]
    assert (await only(store)).state == "cancelled"
    assert await claim(store, NOW + 2 * LEASE) is None
    assert job is None or await unable(store, job) == [False] * 7


async def test_a_finished_job_cannot_be_cancelled(store: Store) -> None:
    id = await add(store)
    await finish(store, await claimed(store))
    before = await only(store)

    assert await store.write(ORG, lambda tx: jobs.cancel(tx, ORG, BANK, id, NOW + SECOND)) is False

    assert await only(store) == before


async def test_old_jobs_are_cleared_away_dead_letters_later_and_open_ones_never(store: Store) -> None:
    done, dead, running, pending = [await add(store) for _ in range(4)]
    await finish(store, await claimed(store))
    job = await claimed(store)
    await store.write(ORG, lambda tx: jobs.bury(tx, job, NOW, "lost"))
    await claimed(store)

    async def after(days: int) -> set[int]:
        await store.engine.claim(lambda tx: jobs.prune(tx, NOW + days * DAY))
        return {record.id for record in await everything(store)}

    assert await after(7) == {done, dead, running, pending}
    assert await after(8) == {dead, running, pending}
    assert await after(31) == {running, pending}


async def test_of_a_banks_ended_jobs_only_the_newest_are_kept(store: Store) -> None:
    async def many(tx: Tx) -> list[int]:
        return [await jobs.add(tx, store, ORG, BANK, "work", NOW, {}) for _ in range(KEPT + 3)]

    ids = await store.write(ORG, many)
    elsewhere = await store.write(ORG, lambda tx: jobs.add(tx, store, ORG, BANK + 1, "work", NOW, {}))
    await store.engine.claim(lambda tx: tx.run("UPDATE jobs SET state = 'completed', updated_at = id"))

    dropped = await store.engine.claim(lambda tx: jobs.prune(tx, 0))

    assert dropped == 3
    assert {record.id for record in await everything(store)} == set(ids[3:])
    assert await store.read(ORG, lambda tx: jobs.get(tx, ORG, BANK + 1, elsewhere)) is not None
