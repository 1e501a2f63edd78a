"""The background: claims jobs and does them; inside `serve` and stdio, or alone at scale."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepsake.context import App
from keepsake.core import log
from keepsake.core.clock import HOUR, SECOND
from keepsake.core.errors import Conflict
from keepsake.core.lazy import lazy
from keepsake.ops import embedding, jobs

if TYPE_CHECKING:
    from keepsake.hooks import spool
    from keepsake.ops import (
        chapters,
        consolidate,
        ending,
        enrich,
        modelling,
        observe,
        running,
        sync,
        synthesis,
        watching,
    )
else:
    chapters = lazy("keepsake.ops.chapters")
    consolidate = lazy("keepsake.ops.consolidate")
    ending = lazy("keepsake.ops.ending")
    enrich = lazy("keepsake.ops.enrich")
    modelling = lazy("keepsake.ops.modelling")
    observe = lazy("keepsake.ops.observe")
    running = lazy("keepsake.ops.running")
    spool = lazy("keepsake.hooks.spool")
    sync = lazy("keepsake.ops.sync")
    synthesis = lazy("keepsake.ops.synthesis")
    watching = lazy("keepsake.ops.watching")

Handler = Callable[[App, jobs.Job, embedding.Alive], Awaitable[None]]


async def _enrich(app: App, job: jobs.Job, alive: embedding.Alive) -> None:
    await enrich.enrich(app, job, alive)


async def _model(app: App, job: jobs.Job, alive: embedding.Alive) -> None:
    await modelling.make(app, job, alive, chapters.way)


async def _consolidate(app: App, job: jobs.Job, alive: embedding.Alive) -> None:
    await consolidate.consolidate(app, job, alive)


async def _observe(app: App, job: jobs.Job, alive: embedding.Alive) -> None:
    await observe.observe(app, job, alive)


async def _sync(app: App, job: jobs.Job, alive: embedding.Alive) -> None:
    await sync.sync(app, job, alive)


async def _synthesise(app: App, job: jobs.Job, alive: embedding.Alive) -> None:
    await synthesis.synthesise(app, job, alive)


# Behind functions of our own, because a server that only starts must not load what a job needs.
HANDLERS: dict[str, Handler] = {
    "embed": embedding.sharpen,
    "enrich": _enrich,
    "model": _model,
    "consolidate": _consolidate,
    "observe": _observe,
    "sync": _sync,
    "synthesise": _synthesise,
}
#: How long a job of a kind may run; a large bank is sharpened for hours.
CEILINGS: dict[str, int] = {"embed": 24 * HOUR, "sync": 12 * HOUR, "synthesise": 2 * HOUR}
CEILING = HOUR
#: Jobs at a time: one that works for hours, or waits for a model far away, must not hold up the rest.
LANES = 2
#: How often an idle worker looks for what other processes left.
POLL_S = 1.0
#: How often it tries again when the store does not answer.
UNANSWERED_S = 10.0
#: How often a running job is asked whether it is still ours, and after how long its lease is renewed.
WATCH_S = 1.0
BEAT = 15 * SECOND
#: How long work that was told to stop may take for it.
GRACE_S = 10.0
#: How long a job rests that someone else's work stands in the way of.
REST = 30 * SECOND
FIRST_SWEEP_S, SWEEP_S = 5.0, 600.0
#: How long after its start a process begins to watch; whoever waits for its first answer comes before that.
FIRST_WATCH_S = 2.0
#: How long after its start it looks for commands to run.
FIRST_RUN_S = 1.0


async def run(app: App) -> None:
    """Do jobs until cancelled."""
    lanes = asyncio.Semaphore(LANES)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_sweeping(app))
        tasks.create_task(_watching(app))
        tasks.create_task(_running(app))
        while True:
            await lanes.acquire()
            app.work.clear()
            if job := await _next(app):
                tasks.create_task(_do(app, job)).add_done_callback(lambda _: lanes.release())
                continue
            lanes.release()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(app.work.wait(), POLL_S)


async def _next(app: App) -> jobs.Job | None:
    try:
        return await jobs.claim(app, list(HANDLERS))
    except Exception as error:
        log.error("no job could be claimed", error=type(error).__name__, trace=log.trace(error))
        await asyncio.sleep(UNANSWERED_S)
        return None


async def _sweeping(app: App) -> None:
    await asyncio.sleep(FIRST_SWEEP_S)
    while True:
        try:
            if dropped := await jobs.clear_away(app):
                log.info("cleared away", rows=dropped)
            if spool.waits(app.settings.data_dir) and (taken := await observe.take_in(app)):
                log.info("taken in from the spool", events=taken)
            if left := await embedding.look_again(app):
                log.info("to be embedded anew", banks=left)
            await watching.roll_up(app)
            await running.clear_away(app)
            if ended := await ending.sweep(app):
                log.info("ended", rows=ended)
        except Exception as error:
            log.error("nothing could be cleared away", error=type(error).__name__, trace=log.trace(error))
        await asyncio.sleep(SWEEP_S)


async def _watching(app: App) -> None:
    await asyncio.sleep(FIRST_WATCH_S)
    while True:
        try:
            await watching.run(app)
        except Exception as error:
            log.error("nothing could be watched", error=type(error).__name__, trace=log.trace(error))
        await asyncio.sleep(UNANSWERED_S)


async def _running(app: App) -> None:
    # Until something is asked for here, there is time; what others asked for can wait that long.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(app.runs.wait(), FIRST_RUN_S)
    while True:
        try:
            await running.run(app)
        except Exception as error:
            log.error("nothing could be run", error=type(error).__name__, trace=log.trace(error))
        await asyncio.sleep(UNANSWERED_S)


async def step(app: App, kinds: Sequence[str] = ()) -> bool:
    """Do one job, of these kinds where some are named; False when there was none."""
    job = await jobs.claim(app, list(kinds or HANDLERS))
    if job is None:
        return False
    await _do(app, job)
    return True


async def _do(app: App, job: jobs.Job) -> None:
    try:
        await _done(app, job)
    except Exception as error:
        # The store did not take the outcome: when the lease is over, the job is taken again.
        log.error("job left", kind=job.kind, job=job.id, error=type(error).__name__, trace=log.trace(error))
    finally:
        # More may have been asked of it meanwhile.
        app.work.set()


@dataclass(slots=True)
class Hold:
    """This worker's hold on a job, kept up by a heartbeat until the job ends or is lost."""

    app: App
    job: jobs.Job
    lease_until: int
    #: When it has run too long.
    over: int
    lost: bool = False

    async def alive(self) -> bool:
        """Whether the job is still ours to do."""
        if not self.lost and self.app.now() >= self.lease_until:
            await self.beat()
        return not self.lost

    async def beat(self) -> None:
        """Renew the lease."""
        until = self.app.now() + jobs.LEASE
        if await jobs.keep(self.app, self.job):
            self.lease_until = until
        else:
            self.lost = True

    async def watch(self) -> None:
        """Return when the work has to stop: the job is lost, or has run too long."""
        while not self.lost and self.app.now() < self.over:
            await asyncio.sleep(WATCH_S)
            try:
                await self._look()
            except Exception as error:
                # Who cannot renew a lease gives the job up with it: someone else may have it by then.
                self.lost = self.app.now() >= self.lease_until
                log.warning("no heartbeat", kind=self.job.kind, job=self.job.id, error=type(error).__name__)

    async def _look(self) -> None:
        if self.app.now() >= self.lease_until - jobs.LEASE + BEAT:
            await self.beat()
        else:
            self.lost = not await jobs.holds(self.app, self.job)


def ceiling(kind: str) -> int:
    """How long a job of a kind may run."""
    return CEILINGS.get(kind, CEILING)


async def _done(app: App, job: jobs.Job) -> None:
    if job.attempt > jobs.MOST_ATTEMPTS:
        await jobs.bury(app, job, f"lost: whoever did it died, {jobs.MOST_ATTEMPTS} times.")
        return
    hold = Hold(app, job, job.lease_until, app.now() + ceiling(job.kind))
    work = asyncio.ensure_future(HANDLERS[job.kind](app, job, hold.alive))
    watch = asyncio.create_task(hold.watch())
    try:
        await asyncio.wait((work, watch), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            await _settled(app, job, work)
        elif hold.lost:
            log.info("job stopped", kind=job.kind, job=job.id, reason="cancelled or taken over")
        else:
            reason = f"too_long: it ran over its ceiling of {ceiling(job.kind) // SECOND} s."
            log.error("job stopped", kind=job.kind, job=job.id, reason=reason)
            await jobs.bury(app, job, reason)
    except asyncio.CancelledError:
        # The process ends; the next one need not wait for the lease.
        await _stopped(work, watch)
        await jobs.release(app, job)
        raise
    finally:
        await _stopped(work, watch)


async def _settled(app: App, job: jobs.Job, work: "asyncio.Future[None]") -> None:
    """Write down how the work ended; changes nothing when the job is no longer ours."""
    error = asyncio.CancelledError() if work.cancelled() else work.exception()
    if error is None:
        await jobs.finish(app, job)
    elif isinstance(error, Conflict):
        await jobs.release(app, job, REST)
    else:
        fault = {"error": type(error).__name__, "trace": log.trace(error)}
        log.error("job failed", kind=job.kind, job=job.id, attempt=job.attempt, **fault)
        await jobs.fail(app, job, error)


async def _stopped(*tasks: "asyncio.Future[None]") -> None:
    """Stop tasks, and wait a while for those that have something to put away."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=GRACE_S)
    for task in tasks:
        if task.done() and not task.cancelled():
            # Whatever it met on its way out is of no interest, but must be taken note of.
            task.exception()


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
