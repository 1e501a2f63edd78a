"""A page is really taken down and brought back, while the workers that watch it are killed; on both stores."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keepsake import dispatch, settings
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.principal import local_owner
from keepsake.store.store import Store
from tests import watched
from tests.conftest import Database
from tests.stories.counting_worker import hurried
from tests.stories.processes import Worker

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
PATIENCE_S = 60


async def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not await holds():
        assert time.monotonic() < deadline, "It did not happen in time."
        await asyncio.sleep(0.1)


async def samples(store: Store) -> list[int]:
    rows = await store.read(1, lambda tx: tx.all("SELECT at FROM check_results WHERE ok = 1"))
    return [row["at"] for row in rows]


async def test_an_outage_is_one_incident_though_workers_are_killed(tmp_path: Path, database: Database) -> None:
    url = database.place if database.engine == "postgres" else ""
    since = clock.now()
    store = await database.open()
    app = App(settings.load({}, data_dir=tmp_path), store, now=lambda: hurried(since))

    async def asked(operation: str, **given: Any) -> dict[str, Any]:
        result = await dispatch.call(app.ctx(local_owner(), "shop"), operation, given)
        return result.model_dump(mode="json", exclude_none=True)

    async def stands(state: str) -> bool:
        return bool((await asked("check.status"))[state])

    workers = [Worker("tests.stories.watching_worker", tmp_path, url, since) for _ in range(2)]
    try:
        await asyncio.gather(*(one.ready() for one in workers))
        async with watched.web() as page:
            await asked("check.add", name="web", kind="http", target=page.url(), every_s=30, retries=0, timeout_s=5)
            await until(lambda: stands("up"))
            await page.down()
            workers[0].kill()
            await until(lambda: stands("down"))
            workers[0] = Worker("tests.stories.watching_worker", tmp_path, url, since)
            await workers[0].ready()
            workers[1].kill()
            await page.up()
            await until(lambda: stands("up"))
        [incident] = (await asked("incident.list"))["incidents"]
        hits = (await asked("memory.recall", query="When was the web page down last time?"))["hits"]
        found = await samples(store)
    finally:
        for one in workers:
            one.kill()
        await store.close()

    assert (incident["state"], incident["check"]) == ("resolved", "web")
    assert hits[0]["memory"]["id"] == incident["memory"]
    # Each due time leaves one sample, though a killed worker may have asked in vain.
    assert len(page.heard) <= len(found) + 2
