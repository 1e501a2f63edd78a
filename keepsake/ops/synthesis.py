"""The job that makes a project's profile, chapter by chapter, and when it is due."""

import asyncio

from keepsake.context import App, Ctx
from keepsake.core import profile
from keepsake.core.errors import Conflict, KeepsakeError
from keepsake.ops import background, budget, chapters, modelling
from keepsake.ops.embedding import Alive
from keepsake.services.llm import LlmFailed
from keepsake.store import banks, jobs, mental_models, repos
from keepsake.store import profile as pieces
from keepsake.store.engine import Tx
from keepsake.store.profile import Since
from keepsake.store.repos import Repo, Synthesis

JOB = "synthesise"
#: How much must be new or gone before a profile is made anew: so many pieces, and such a share of what it was made of.
LEAST, SHARE = 20, 0.1
TAKEN = "Someone else makes this profile now."


def is_due(repo: Repo, since: Since) -> bool:
    """Whether a profile is to be made: the first, one after a try that came to no end, or as enough has changed."""
    if not repo.completed:
        return False
    if repo.synthesis != "completed" or since.front or since.is_outdated:
        return True
    gone = max(0, repo.synthesis_of - (since.held - since.new))
    return since.new + gone >= max(LEAST, SHARE * repo.synthesis_of)


async def wanted(tx: Tx, app: App, repo: Repo) -> bool:
    """Ask for the profile where it is due; called after `repos.put` in the transaction that ends a sync."""
    if not is_due(repo, await _since(tx, app, repo)):
        return False
    await repos.synthesised(tx, repo.org, repo.bank, "pending", 0, None, app.now())
    await jobs.wanted(tx, app.store, repo.org, repo.bank, JOB, app.now())
    return True


async def _since(tx: Tx, app: App, repo: Repo) -> Since:
    """What has changed since the profile was made; where every chapter was deleted, only how many pieces there are."""
    models = [await mental_models.get(tx, repo.org, repo.bank, one.id) for one in profile.CHAPTERS]
    versions = [version for model in models if model and (version := await mental_models.current(tx, model))]
    # A chapter may have been made anew by itself since; one that must be made anew anyway stands at nothing.
    seq = min((version.seq for version in versions if version.seq), default=0)
    found = await pieces.since(tx, repo.org, repo.bank, seq, app.now())
    if not seq:
        return Since(max(0, found.held - repo.synthesis_of), found.held)
    resting = sorted({id for version in versions for one in version.sentences for id in one.memories})
    is_outdated = await pieces.outdated(tx, repo.org, repo.bank, resting)
    return Since(found.new, found.held, found.front, is_outdated)


async def synthesise(app: App, job: jobs.Job, alive: Alive) -> None:
    """Make every chapter whose ground has changed."""
    bank = await background.bank(app, job.org, job.bank)
    if bank is None or await app.store.read(job.org, lambda tx: repos.get(tx, job.org, job.bank)) is None:
        return
    ctx = background.ctx(app, job.org, bank.name, "model.refresh")
    left: Synthesis | None = "failed"
    try:
        await _made(ctx, job, alive, bank)
        left = None
    except (asyncio.CancelledError, Conflict):
        left = "pending"
        raise
    finally:
        if left is not None:
            await _left(app, job, left)


async def _made(ctx: Ctx, job: jobs.Job, alive: Alive, bank: banks.Bank) -> None:
    """The chapters one after the other; one that fails does not keep the others from being made."""
    held = await ctx.store.write(job.org, lambda tx: _begun(tx, ctx, job))
    failed: KeepsakeError | None = None
    for n, chapter in enumerate(profile.CHAPTERS):
        await _tell(ctx, job, "running", 100 * n // len(profile.CHAPTERS))
        try:
            await _chapter(ctx, job, alive, bank, chapter.id)
        except (LlmFailed, budget.Spent, budget.Unusable) as error:
            failed = error
    if failed is not None:
        raise failed
    await _tell(ctx, job, "completed", 100, held)


async def _chapter(ctx: Ctx, job: jobs.Job, alive: Alive, bank: banks.Bank, id: str) -> None:
    making = await ctx.read(lambda tx: modelling.wanted(tx, bank, id, chapters.way))
    if making is not None:
        await modelling.renew(ctx, job, alive, making)


async def _begun(tx: Tx, ctx: Ctx, job: jobs.Job) -> int:
    """Put the chapters there that are missing, and count what they are made of."""
    if not await jobs.keep(tx, job, ctx.now):
        raise Conflict(TAKEN)
    for chapter in profile.CHAPTERS:
        await mental_models.insert(tx, _model(ctx, job, chapter))
    return await repos.held(tx, job.org, job.bank)


def _model(ctx: Ctx, job: jobs.Job, chapter: profile.Chapter) -> mental_models.Model:
    return mental_models.Model(
        org=job.org,
        bank=job.bank,
        id=chapter.id,
        name=chapter.name,
        source_query=chapter.query,
        tags=(profile.TAG,),
        max_tokens=chapter.max_tokens,
        refresh_after_consolidation=False,
        version=0,
        created_at=ctx.now,
        updated_at=ctx.now,
    )


async def _tell(ctx: Ctx, job: jobs.Job, state: Synthesis, progress: int, of: int | None = None) -> None:
    """Say how far it is, as long as the job is ours."""

    async def body(tx: Tx) -> None:
        if not await jobs.progress(tx, job, ctx.now, progress / 100):
            raise Conflict(TAKEN)
        await repos.synthesised(tx, job.org, job.bank, state, progress, of, ctx.now)

    await ctx.store.write(job.org, body)


async def _left(app: App, job: jobs.Job, state: Synthesis) -> None:
    """Say how a profile stands that came to no end: it waits for another try, or has failed for good."""

    async def body(tx: Tx) -> None:
        record = await jobs.get(tx, job.org, job.bank, job.id)
        if record is None or (record.state == "running" and not await jobs.holds(tx, job)):
            return
        is_last = record.state == "failed" or (state == "failed" and job.attempt >= jobs.MOST_ATTEMPTS)
        told: Synthesis = "failed" if is_last else "pending"
        await repos.synthesised(tx, job.org, job.bank, told, 0, None, app.now())

    await app.store.write(job.org, body)
