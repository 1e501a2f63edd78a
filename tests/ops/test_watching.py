"""The watch: each due time once, whoever works, dies, ends or has a clock that jumps; on both stores."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keepsake import settings
from keepsake.context import App
from keepsake.core.clock import DAY, HOUR, MINUTE, SECOND
from keepsake.ops import watching
from keepsake.services import probes
from keepsake.store import check_results, checks
from keepsake.store.engine import Tx
from tests import watched
from tests.conftest import Database
from tests.ops.watch import ORG, Run, after, app, rounds, run, running, time
from tests.ops.working import Clock

__all__ = ["app", "run", "time"]
pytestmark = pytest.mark.anyio


async def samples(app: App) -> list[tuple[int, int]]:
    """Every sample: the check's id and the time it was due."""

    async def body(tx: Tx) -> list[tuple[int, int]]:
        rows = await tx.all("SELECT check_id, at FROM check_results ORDER BY at, check_id")
        return [(row["check_id"], row["at"]) for row in rows]

    return await app.store.read(ORG, body)


async def due(app: App) -> list[int]:
    async def body(tx: Tx) -> list[int]:
        return [row["due_at"] for row in await tx.all("SELECT due_at FROM checks ORDER BY id")]

    return await app.store.read(ORG, body)


@asynccontextmanager
async def workers(database: Database, tmp_path: Path, time: Clock, count: int) -> AsyncIterator[list[App]]:
    """So many processes' worth of applications on one database."""
    stores = [await database.open() for _ in range(count)]
    yield [App(settings.load({}, data_dir=tmp_path), store, now=time) for store in stores]
    for store in stores:
        await store.close()


async def test_many_workers_at_once_run_each_due_time_once(database: Database, tmp_path: Path, time: Clock) -> None:
    async with workers(database, tmp_path, time, 3) as apps, watched.web() as page:
        run = running(apps[0])
        for n in range(20):
            await run("check.add", name=f"page {n}", kind="http", target=page.url(path=f"/{n}"))
        for _ in range(3):
            await asyncio.gather(*(watching.step(app) for app in apps for _ in range(2)))
            time.at += 70 * SECOND
        found = Counter(await samples(apps[0]))
        asked = Counter(head.split()[1] for head in page.heard)

    assert set(found.values()) == {1}
    assert asked == {f"/{n}": 3 for n in range(20)}


async def test_what_a_dead_worker_held_is_taken_over_and_its_late_word_counts_for_nothing(
    database: Database, tmp_path: Path, time: Clock
) -> None:
    async with workers(database, tmp_path, time, 2) as (dead, alive), watched.web() as page:
        await running(dead)("check.add", name="web", kind="http", target=page.url(), timeout_s=1, retries=0)
        began = time.at
        held = watching.Watch(dead)
        await held.tick()
        await asyncio.wait(held.running)

        assert await watching.step(alive) == 0
        time.at += checks.LEASE + 10 * SECOND
        assert await watching.step(alive) == 1
        await held.settle()

        assert await samples(alive) == [((await samples(alive))[0][0], began)]
        assert (await due(alive))[0] > time.at
        assert len(page.heard) == 2


async def test_whoever_is_told_to_end_gives_back_what_it_held(app: App, run: Run, time: Clock) -> None:
    async with watched.silent() as mute:
        await run("check.add", name="mute", kind="redis", target=f"127.0.0.1:{mute.port}", timeout_s=60)
        working = asyncio.create_task(watching.run(app))
        while not await claimed(app):
            await asyncio.sleep(0.01)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

    assert await claimed(app) == []
    assert await app.store.engine.look(checks.next_wake) == (await due(app))[0] == time.at


async def claimed(app: App) -> list[str]:
    async def body(tx: Tx) -> list[str]:
        return [row["holder"] for row in await tx.all("SELECT holder FROM checks WHERE holder <> ''")]

    return await app.store.read(ORG, body)


async def test_an_error_of_ours_is_seen_and_does_not_stop_the_watch(
    app: App, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(check: Any, target: Any) -> None:
        raise LookupError("a fault in the probe")

    monkeypatch.setitem(probes.PROBES, "dns", broken)
    await run("check.add", name="odd", kind="dns", target="localhost")

    await rounds(app, 1)

    [told] = (await run("check.status"))["checks"]
    assert told["reason"] == "could not be looked at: an error in Keepsake"


async def test_a_clock_that_is_set_back_stops_nothing(app: App, run: Run, time: Clock) -> None:
    await run("check.add", name="mind", kind="self")
    watch = watching.Watch(app)
    await watch.tick()
    await asyncio.wait(watch.running)
    await watch.tick()

    time.at -= 3 * HOUR
    await watch.tick()
    assert len(watch.running) == 1
    await asyncio.wait(watch.running)
    await watch.tick()

    [at] = await due(app)
    assert time.at < at <= time.at + 2 * MINUTE
    assert (await run("check.status"))["up"] == 1


async def test_what_was_missed_is_not_made_up_for(app: App, run: Run, time: Clock) -> None:
    await run("check.add", name="mind", kind="self")
    await rounds(app, 2)

    time.at += 3 * DAY
    assert await watching.step(app) == 1
    assert await watching.step(app) == 0

    assert time.at < (await due(app))[0] <= time.at + MINUTE


def test_runs_keep_their_pace_and_their_distance() -> None:
    check = checks.Check(
        org=1, bank=1, id=1, name="", kind="self", target="", every=MINUTE, timeout=SECOND, created_at=0, due_at=0,
        wake_at=0, author="",
    )  # fmt: skip
    later = replace(check, last_at=1, due_at=10 * MINUTE)

    assert watching.next_due(check, 5, 0.0) == 5 + MINUTE // 2
    assert watching.next_due(check, 5, 1.0) == 5 + MINUTE
    assert watching.next_due(later, 10 * MINUTE + SECOND, 0.5) == 11 * MINUTE
    assert watching.next_due(later, 10 * MINUTE + SECOND, 0.0) == 11 * MINUTE - 3 * SECOND
    assert watching.next_due(later, 20 * MINUTE, 0.0) == 20 * MINUTE + MINUTE // 2
    assert watching.next_due(later, MINUTE, 1.0) == 2 * MINUTE


async def test_due_checks_are_found_by_an_index(app: App) -> None:
    async def body(tx: Tx) -> str:
        due = "SELECT id FROM checks WHERE wake_at <= 5 ORDER BY wake_at LIMIT 9"
        if app.store.engine.name == "sqlite":
            return str(await tx.all(f"EXPLAIN QUERY PLAN {due}"))
        # So few rows would be read whole; what matters is that the index can answer.
        await tx.run("SET LOCAL enable_seqscan = off")
        await tx.run("SET LOCAL enable_sort = off")
        return str(await tx.all(f"EXPLAIN {due}"))

    assert "checks_due" in await app.store.read(ORG, body)


async def put_samples(app: App, latency: int, since: int, until: int, every: int = MINUTE, failing: int = 0) -> None:
    """Give the one check a past."""

    async def body(tx: Tx) -> None:
        [row] = await tx.all("SELECT bank, id FROM checks")
        await tx.many(
            "INSERT INTO check_results (org, bank, check_id, at, ok, latency)"
            " VALUES (:org, :bank, :id, :at, :ok, :latency)",
            [
                {"org": ORG, "bank": row["bank"], "id": row["id"], "at": at, "ok": int(n % 100 >= failing),
                 "latency": latency + n % 7 * 100}
                for n, at in enumerate(range(since, until, every))
            ],
        )  # fmt: skip
        await tx.run("UPDATE checks SET rolled_to = :to", to=since // HOUR * HOUR)

    await app.store.write(ORG, body)


async def hours(app: App) -> list[Any]:
    async def body(tx: Tx) -> list[Any]:
        return list(await tx.all("SELECT hour, runs, failures, latency FROM check_hours ORDER BY hour"))

    return await app.store.read(ORG, body)


async def test_samples_become_hours_and_old_ones_go(app: App, run: Run, time: Clock) -> None:
    await run("check.add", name="web", kind="dns", target="localhost")
    time.at = time.at // HOUR * HOUR + 10 * MINUTE
    hour = time.at // HOUR * HOUR
    await put_samples(app, 50_000, hour - 4 * DAY, time.at, failing=10)

    assert await watching.roll_up(app) == 1
    assert await watching.roll_up(app) == 0

    found = await hours(app)
    assert len(found) == 4 * 24
    assert (found[0]["hour"], found[0]["runs"], found[0]["failures"]) == (hour - 4 * DAY, 60, 10)
    assert found[0]["latency"] == 50_300
    assert min(at for _, at in await samples(app)) == hour - check_results.SAMPLES_FOR
    [status] = (await run("check.status"))["checks"]
    assert status["uptime_24h"] == pytest.approx(0.9, abs=0.01)

    time.at += 181 * DAY
    assert await watching.roll_up(app) == 1
    assert (await hours(app), await samples(app)) == ([], [])


async def test_a_removed_check_is_forgotten_in_the_end(app: App, run: Run, time: Clock) -> None:
    await run("check.add", name="web", kind="dns", target="localhost")
    await put_samples(app, 50_000, time.at - HOUR, time.at)
    await run("check.remove", name="web")
    time.at += 2 * HOUR
    await watching.roll_up(app)
    assert await hours(app) != []

    time.at += 181 * DAY
    await watching.roll_up(app)

    assert await due(app) == []


async def test_slowness_is_one_anomaly_from_its_beginning_to_its_end(app: App, run: Run, time: Clock) -> None:
    await run("check.add", name="web", kind="dns", target="localhost", every_s=300)
    time.at = time.at // HOUR * HOUR + 30 * MINUTE
    await put_samples(app, 50_000, time.at - 2 * DAY, time.at - 40 * MINUTE)
    await watching.roll_up(app)
    assert await anomalies(app, run) == []

    await put_samples(app, 900_000, time.at - 40 * MINUTE, time.at)
    [slow] = await anomalies(app, run)
    [again] = await anomalies(app, run)
    assert (slow["check"], slow["metric"], slow["unit"], slow["state"]) == ("web", "latency", "ms", "open")
    assert (slow["value"], slow["expected"], slow["spread"]) == (900.3, 50.3, 2.5)
    assert (slow["history"], slow["season"], again["id"]) == (48, "all hours", slow["id"])
    assert slow["deviations"] == pytest.approx((900.3 - 50.3) / 2.515, rel=0.01)
    [status] = (await run("check.status"))["checks"]
    assert status["anomalies"] == ["latency"]

    time.at += 2 * HOUR
    await put_samples(app, 50_000, time.at - 40 * MINUTE, time.at)
    [over] = await anomalies(app, run)
    assert (over["id"], over["state"], over["value"]) == (slow["id"], "ended", 900.3)


async def anomalies(app: App, run: Run) -> list[dict[str, Any]]:
    """What the next look finds."""

    async def judged(tx: Tx) -> None:
        await tx.run("UPDATE checks SET wake_at = :now, due_at = :now", now=app.now())

    await app.store.write(ORG, judged)
    assert await after(app, 0) == 1
    found: list[dict[str, Any]] = (await run("anomaly.list"))["anomalies"]
    return found


async def test_failures_are_an_anomaly_and_a_young_check_has_none(app: App, run: Run, time: Clock) -> None:
    await run("check.add", name="web", kind="dns", target="localhost", every_s=300)
    await put_samples(app, 50_000, time.at - 5 * HOUR, time.at - HOUR)
    await watching.roll_up(app)
    await put_samples(app, 50_000, time.at - 40 * MINUTE, time.at, failing=30)
    assert await anomalies(app, run) == []

    time.at += 2 * DAY
    await put_samples(app, 50_000, time.at - 2 * DAY + HOUR, time.at - HOUR)
    await watching.roll_up(app)
    await put_samples(app, 50_000, time.at - 40 * MINUTE, time.at, failing=30)
    [found] = await anomalies(app, run)

    assert (found["metric"], found["expected"], found["state"]) == ("errors", 0.0, "open")
    assert found["value"] > 0.7
    assert (await run("anomaly.list", open=False))["total"] == 0
    assert (await run("anomaly.list", open=True, check="web"))["total"] == 1
