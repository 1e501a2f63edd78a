"""The background: claims jobs and does them; inside `serve` and stdio, or alone at scale."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from keepsake.context import App
from keepsake.core import log
from keepsake.core.clock import SECOND
from keepsake.ops import embedding, jobs

Handler = Callable[[App, jobs.Job, embedding.Alive], Awaitable[None]]
HANDLERS: dict[str, Handler] = {"embed": embedding.sharpen}
#: How often an idle worker looks for what other processes left.
POLL_S = 1.0


async def run(app: App) -> None:
    """Do jobs until cancelled."""
    while True:
        app.work.clear()
        if await step(app):
            continue
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(app.work.wait(), POLL_S)


async def step(app: App) -> bool:
    """Do one job; False when there was none."""
    job = await jobs.claim(app)
    if job is None:
        return False
    await _do(app, job)
    return True


async def _do(app: App, job: jobs.Job) -> None:
    renewed = app.now()

    async def alive() -> bool:
        nonlocal renewed
        if app.now() - renewed < 10 * SECOND:
            return True
        renewed = app.now()
        return await jobs.keep(app, job)

    try:
        await HANDLERS[job.kind](app, job, alive)
    except Exception as error:
        log.error("job failed", kind=job.kind, job=job.id, attempt=job.attempt, error=type(error).__name__)
        await jobs.fail(app, job, f"{type(error).__name__}: {error}")
        return
    await jobs.finish(app, job)


@contextlib.asynccontextmanager
async def beside(app: App) -> AsyncIterator[None]:
    """Run the worker as long as the block lasts, where the settings want one."""
    if not app.settings.worker:
        yield
        return
    task = asyncio.create_task(run(app))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
