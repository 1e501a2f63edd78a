"""A sync that dies like in a power cut goes on where it was, on both stores, and nothing is lost or doubled."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keepsake import settings, worker
from keepsake.context import App
from keepsake.store.engine import Tx
from tests.conftest import Database
from tests.gitting import Made
from tests.ops.syncing import BANK, ORG, rows, synced, told
from tests.stories.processes import environment

pytestmark = pytest.mark.anyio
COMMITS = 3_000


def started(database: Database, tmp_path: Path, repo: Path) -> subprocess.Popen[bytes]:
    url = database.place if database.engine == "postgres" else ""
    command = [sys.executable, "-m", "keepsake", "sync", BANK, "--repo", str(repo)]
    return subprocess.Popen(
        command, env=environment(tmp_path, url), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


async def stored(app: App) -> int:
    async def body(tx: Tx) -> int:
        row = await tx.one("SELECT count(*) AS held FROM memories WHERE org = :org", org=ORG)
        return int(row["held"]) if row else 0

    return await app.store.read(ORG, body)


async def test_a_killed_sync_goes_on_and_nothing_is_lost_or_doubled(database: Database, tmp_path: Path) -> None:
    made = Made(tmp_path / "engine")
    made.many(COMMITS)
    store = await database.open()
    app = App(settings.load({}, data_dir=tmp_path), store)
    process = started(database, tmp_path, made.path)
    began = time.monotonic()
    while await stored(app) == 0 and process.poll() is None and time.monotonic() - began < 60:
        await asyncio.sleep(0.01)
    process.kill()
    process.wait(30)
    half = await stored(app)

    async def lapsed(tx: Tx) -> None:
        await tx.run("UPDATE jobs SET lease_until = 0 WHERE kind = 'sync'")

    await store.engine.claim(lapsed)
    await synced(app)
    while await worker.step(app, ["sync"]):
        pass

    shas = [one.metadata["sha"] for one in await told(app, "commit")]
    indexed = await rows(app, "SELECT count(*) AS held FROM search_docs WHERE org = :org AND bank = :bank")
    vectors = await rows(app, "SELECT count(*) AS held FROM vectors WHERE org = :org AND bank = :bank")
    counted = await rows(app, "SELECT docs FROM terms WHERE org = :org AND bank = :bank AND term = ''")
    await store.close()
    assert 0 < half < COMMITS
    assert len(shas) == len(set(shas)) == COMMITS
    assert indexed[0]["held"] == vectors[0]["held"] == counted[0]["docs"] == COMMITS + 1
