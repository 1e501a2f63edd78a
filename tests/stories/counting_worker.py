"""A worker with one more kind of job, whose every completion leaves a row: `python -m tests.stories.counting_worker`.

Time passes faster here than outside, so that the lease of a killed worker is soon over.
"""

import asyncio
import random
import sys

from keepsake import context, settings, worker
from keepsake.context import App
from keepsake.core import clock
from keepsake.ops.embedding import Alive
from keepsake.store import jobs
from keepsake.store.engine import Tx
from keepsake.store.store import Store

KIND = "count"
HASTE = 30


def hurried(since: int) -> int:
    """The present moment of a world that has gone so much faster since then."""
    return since + (clock.now() - since) * HASTE


async def count(app: App, job: jobs.Job, alive: Alive) -> None:
    """Work for a moment, then leave a row and finish, both or neither."""
    await asyncio.sleep(random.uniform(0.0, 0.5))

    async def body(tx: Tx) -> None:
        if await jobs.finish(tx, job, app.now()):
            await tx.run(
                "INSERT INTO usage (org, bank, id, at, principal, operation, model, tokens_in, tokens_out)"
                " VALUES (:org, :bank, :id, 0, '', :operation, '', 0, 0)",
                org=job.org,
                bank=job.bank,
                id=app.store.new_id(),
                operation=str(job.id),
            )

    await app.store.write(job.org, body)


async def add(store: Store, org: int, bank: int, number: int, now: int) -> list[int]:
    """Leave so many jobs."""

    async def body(tx: Tx) -> list[int]:
        return [await jobs.add(tx, store, org, bank, KIND, now, {}) for _ in range(number)]

    return await store.write(org, body)


async def main(since: int) -> None:
    """Work until killed."""
    worker.HANDLERS[KIND] = count
    async with context.open(settings.load()) as opened:
        app = App(opened.settings, opened.store, now=lambda: hurried(since))
        print("ready", flush=True)
        await worker.run(app)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
