"""Workers are killed at random, and every operation still ends exactly once."""

import asyncio
import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from keepsake.core import clock
from keepsake.ops import jobs as queue
from keepsake.store import jobs
from keepsake.store.store import Store
from tests.conftest import Database
from tests.stories import counting_worker
from tests.stories.processes import Stdio, Worker

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
OPERATIONS, KILLS = (1_000, 60) if os.environ.get("KEEPSAKE_SOAK") else (100, 8)
WORKERS, PATIENCE_S = 4, 300
ORG, BANK = 1, 7


async def open_jobs(store: Store) -> int:
    rows = await store.read(ORG, lambda tx: jobs.listed(tx, ORG, BANK, ["pending", "running"], 10_000))
    return len(rows)


async def test_every_operation_ends_exactly_once_though_workers_are_killed(
    tmp_path: Path, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    url = database.place if database.engine == "postgres" else ""
    chosen, since = random.Random(OPERATIONS), clock.now()
    store = await database.open()
    workers = [Worker("tests.stories.counting_worker", tmp_path, url, since) for _ in range(WORKERS)]
    killed = 0
    try:
        await asyncio.gather(*(one.ready() for one in workers))
        added = await counting_worker.add(store, ORG, BANK, OPERATIONS, since)
        deadline = time.monotonic() + PATIENCE_S
        while await open_jobs(store) and time.monotonic() < deadline:
            await asyncio.sleep(chosen.uniform(0.05, 0.5))
            if killed < KILLS:
                victim = chosen.randrange(WORKERS)
                workers[victim].kill()
                workers[victim] = Worker("tests.stories.counting_worker", tmp_path, url, since)
                killed += 1
                # A worker that has not begun yet cannot be torn out of its work.
                await workers[victim].ready()
        records = await store.read(ORG, lambda tx: jobs.listed(tx, ORG, BANK, queue.STATES, 10_000))
        effects = await store.read(ORG, lambda tx: tx.all("SELECT operation FROM usage"))
    finally:
        for one in workers:
            one.kill()
        await store.close()

    again = sum(record.attempts > 1 for record in records)
    with capsys.disabled():
        print(f"\n{database.engine}: {OPERATIONS} operations, {killed} kills, {again} operations taken over")
    assert again > 0
    assert {record.id: record.state for record in records} == dict.fromkeys(added, "completed")
    assert Counter(row["operation"] for row in effects) == Counter(map(str, added))


def test_a_lone_stdio_server_does_its_own_background_work(tmp_path: Path) -> None:
    client = Stdio(tmp_path, "--bank", "story")
    client.call("retain", {"content": "Dana meets the team on Mondays."})

    deadline = time.monotonic() + 60
    while (told := client.call("list_operations", {})["operations"]) and time.monotonic() < deadline:
        if all(one["status"] == "completed" for one in told):
            break
        time.sleep(0.1)
    client.end()

    assert told and {one["status"] for one in told} == {"completed"}
