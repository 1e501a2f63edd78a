"""Background work: as callers follow it, and the queue as the worker sees it."""

import json
import random
from typing import get_args

from pydantic import Field

from keepsake.context import App, Changed, Ctx
from keepsake.core import clock, ids
from keepsake.core.errors import Conflict, KeepsakeError, NotFound
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.store import banks, handed_out, jobs, layouts, recalls
from keepsake.store.engine import Tx
from keepsake.store.jobs import LEASE, MOST_ATTEMPTS, Job, State

__all__ = ["LEASE", "MOST_ATTEMPTS", "Job", "State"]
STATES: tuple[State, ...] = get_args(State)


class JobStatus(Result):
    """How a job stands."""

    id: str = Field(description="Id of the job.")
    kind: str = Field(description="What kind of work it is.")
    state: State = Field(description="Whether it waits, runs or has ended, and how.")
    progress: float = Field(description="How much is done, 0 to 1.")
    created_at: str = Field(description="When it was asked for, ISO 8601.")
    updated_at: str = Field(description="When it last changed, ISO 8601.")
    attempts: int = Field(description="How often it was tried.")
    result: dict[str, object] | None = Field(None, description="What it has done so far: counts, and why rules did it.")
    error: str | None = Field(None, description="What the last try failed of.")


class Jobs(Result):
    """Jobs, newest first."""

    jobs: list[JobStatus] = Field(description="Newest first.")


class ListJobs(InBank):
    """Which jobs."""

    state: State | None = Field(None, description="Only jobs in this state.")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results.")


@operation("job.list", effect=Effect.READ, scope="memory:read")
async def list_(ctx: Ctx, given: ListJobs) -> Jobs:
    """List background operations, newest first: those that wait, run, succeeded, failed or were cancelled."""

    async def body(tx: Tx) -> list[jobs.Record]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        states = (given.state,) if given.state else STATES
        return await jobs.listed(tx, ctx.org, bank.id, states, given.limit) if bank else []

    return Jobs(jobs=[_shown(record) for record in await ctx.read(body)])


def _shown(record: jobs.Record) -> JobStatus:
    return JobStatus(
        id=str(record.id),
        kind=record.kind,
        state=record.state,
        progress=record.progress,
        created_at=clock.iso(record.created_at),
        updated_at=clock.iso(record.updated_at),
        attempts=record.attempts,
        result=json.loads(record.result) if record.result else None,
        error=record.error or None,
    )


class OneJob(InBank):
    """Which job."""

    id: Clean = Field(min_length=1, max_length=64, description="The id of the job.")


async def _one(tx: Tx, ctx: Ctx, given: OneJob) -> tuple[banks.Bank, jobs.Record]:
    """The job meant; another bank's is as unknown as none."""
    bank = await bank_ops.found(tx, ctx, given.bank)
    id = ids.parse(given.id)
    record = await jobs.get(tx, ctx.org, bank.id, id) if bank and id else None
    if bank is None or record is None:
        raise NotFound(f"No operation {given.id!r} in this bank. Use list_operations to see the ids.")
    return bank, record


@operation("job.get", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: OneJob) -> JobStatus:
    """Tell how a background operation stands, how far it is and what it failed of."""
    _, record = await ctx.read(lambda tx: _one(tx, ctx, given))
    return _shown(record)


class Cancelled(JobStatus):
    """A job after it was to be cancelled."""

    note: str = Field(description="What was done, and why nothing was where the job had ended before.")


@operation("job.cancel", effect=Effect.MUTATE, scope="memory:write")
async def cancel(ctx: Ctx, given: OneJob) -> Cancelled:
    """Cancel a background operation that waits or runs; one that has ended stays as it is."""

    async def body(tx: Tx) -> Changed[Cancelled]:
        bank, before = await _one(tx, ctx, given)
        is_done = await jobs.cancel(tx, ctx.org, bank.id, before.id, ctx.now)
        _, after = await _one(tx, ctx, given)
        note = "Cancelled." if is_done else _why_not(after.state)
        told = Cancelled(**_shown(after).model_dump(), note=note)
        return Changed(told, bank.id, [before.id] if is_done else [])

    _, found = await ctx.read(lambda tx: _one(tx, ctx, given))
    if found.state not in ("pending", "running"):
        return Cancelled(**_shown(found).model_dump(), note=_why_not(found.state))
    return await ctx.change(body)


def _why_not(state: State) -> str:
    return f"It had ended before ({state}); nothing was changed."


@operation("job.retry", effect=Effect.MUTATE, scope="memory:write")
async def retry(ctx: Ctx, given: OneJob) -> JobStatus:
    """Begin a background operation anew that has failed for good or was cancelled."""

    async def body(tx: Tx) -> Changed[JobStatus]:
        bank, before = await _one(tx, ctx, given)
        if not await jobs.retry(tx, ctx.org, bank.id, before.id, ctx.now):
            raise Conflict(f"The operation can be retried once it has failed or was cancelled; it is {before.state}.")
        _, after = await _one(tx, ctx, given)
        return Changed(_shown(after), bank.id, [before.id])

    return await ctx.change(body)


async def claim(app: App, kinds: list[str]) -> Job | None:
    """Take the next job of these kinds; None when nothing waits."""
    # Another may be quicker with the one job while there are more.
    while await app.store.engine.look(lambda tx: jobs.waiting(tx, kinds, app.now())):
        if job := await app.store.engine.claim(lambda tx: jobs.claim(tx, kinds, app.now())):
            return job
    return None


async def holds(app: App, job: Job) -> bool:
    """Whether the job is still this holder's: neither cancelled nor taken over."""
    return await app.store.read(job.org, lambda tx: jobs.holds(tx, job))


async def keep(app: App, job: Job) -> bool:
    """Extend the lease; False when the job is no longer this holder's."""
    return await app.store.write(job.org, lambda tx: jobs.keep(tx, job, app.now()))


async def progress(app: App, job: Job, share: float) -> bool:
    """Tell how much of a job is done, 0 to 1; False when it is no longer this holder's."""
    return await app.store.write(job.org, lambda tx: jobs.progress(tx, job, app.now(), share))


async def finish(app: App, job: Job) -> bool:
    """The job is done; False when it is no longer this holder's."""
    return await app.store.write(job.org, lambda tx: jobs.finish(tx, job, app.now()))


async def fail(app: App, job: Job, error: BaseException) -> bool:
    """The job failed; it is tried again after a pause, but not for ever."""
    jitter = random.random()
    return await app.store.write(job.org, lambda tx: jobs.fail(tx, job, app.now(), told(error), jitter))


async def bury(app: App, job: Job, reason: str) -> bool:
    """The job has failed and is not tried again."""
    return await app.store.write(job.org, lambda tx: jobs.bury(tx, job, app.now(), reason))


async def release(app: App, job: Job, after: int = 0) -> bool:
    """Give the job back untried, to be taken again after a while."""
    return await app.store.write(job.org, lambda tx: jobs.release(tx, job, app.now(), after))


def told(error: BaseException) -> str:
    """What a job says of its failure: our own words, or only the kind of another's, which might quote content."""
    return f"{error.code}: {str(error)[:300]}" if isinstance(error, KeepsakeError) else type(error).__name__


async def clear_away(app: App) -> int:
    """Drop ended jobs and expired rows that no one will ask for; tells how many."""
    dropped = await app.store.engine.claim(lambda tx: jobs.prune(tx, app.now()))

    async def past(tx: Tx) -> int:
        gone = await handed_out.expire(tx, app.now()) + await recalls.expire(tx, app.now())
        return gone + await layouts.expire(tx, app.now())

    return dropped + await app.store.engine.volatile(past)
