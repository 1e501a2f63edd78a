"""The queue of background work as the worker sees it; no operation, because no caller names a job."""

from keepsake.context import App
from keepsake.store import jobs
from keepsake.store.engine import Tx
from keepsake.store.jobs import Job

__all__ = ["Job", "claim", "fail", "finish", "keep"]


async def claim(app: App) -> Job | None:
    """Take the next job; None when nothing waits."""
    if not await app.store.engine.look(lambda tx: jobs.waiting(tx, app.now())):
        return None
    return await app.store.engine.claim(lambda tx: jobs.claim(tx, app.now()))


async def keep(app: App, job: Job) -> bool:
    """Extend the lease; False when another process has taken the job over."""
    return await app.store.write(job.org, lambda tx: jobs.keep(tx, job, app.now()))


async def finish(app: App, job: Job) -> None:
    """The job is done."""

    async def body(tx: Tx) -> None:
        await jobs.finish(tx, job, app.now())

    await app.store.write(job.org, body)


async def fail(app: App, job: Job, reason: str) -> None:
    """The job failed; it is tried again after a pause."""

    async def body(tx: Tx) -> None:
        await jobs.fail(tx, job, app.now(), reason)

    await app.store.write(job.org, body)
