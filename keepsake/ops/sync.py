"""Syncing: a bank learns from a repository, again and again, and only what is new."""

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from keepsake.auth import policy
from keepsake.context import App, Changed, Ctx
from keepsake.core import address, clock
from keepsake.core.address import Address
from keepsake.core.errors import BadInput, Conflict, Forbidden, KeepsakeError, NotFound, Unavailable
from keepsake.core.lazy import lazy
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.principal import Principal
from keepsake.core.text import Clean
from keepsake.ops import background
from keepsake.ops import banks as bank_ops
from keepsake.store import banks, jobs, repos
from keepsake.store.engine import Tx
from keepsake.store.repos import Repo

if TYPE_CHECKING:
    from keepsake.ops import ingest, sync_git, sync_github, synthesis
    from keepsake.ops.embedding import Alive
    from keepsake.services import git
else:
    git = lazy("keepsake.services.git")
    ingest = lazy("keepsake.ops.ingest")
    sync_git = lazy("keepsake.ops.sync_git")
    sync_github = lazy("keepsake.ops.sync_github")
    synthesis = lazy("keepsake.ops.synthesis")

JOB = "sync"
NONE = "This bank has no repository yet. Say which one it learns from (`repo`)."
#: Characters of what a repository's row says of its last sync.
LONGEST_NOTE = 1_000


class Sync(InBank):
    """What to learn from."""

    repo: Clean | None = Field(
        None,
        min_length=1,
        max_length=2_000,
        description="An https address, or on this machine a folder; the repository the bank has when left out.",
    )


class Synced(Result):
    """The sync that was asked for, and how the repository stood before it."""

    operation: str = Field(description="Id of the background operation; get_operation tells how far it is.")
    bank: str = Field(description="Name of the bank.")
    repo: str = Field(description="The repository it learns from.")
    full_name: str | None = Field(None, description="`owner/name` where it is on GitHub.")
    state: str = Field(description="How the last sync ended: new, running, completed, partial or failed.")
    note: str | None = Field(None, description="What the last sync left out or failed of.")
    last_synced_at: str | None = Field(None, description="When it was last read to its end, ISO 8601.")


@operation("bank.sync", effect=Effect.MUTATE, scope="bank:admin")
async def sync_bank(ctx: Ctx, given: Sync) -> Synced:
    """Let a bank learn from a git repository: commits, tags, documents and, from GitHub, pull requests and issues."""
    place = await _permitted(ctx, given.repo) if given.repo is not None else None
    return await ctx.change(lambda tx: _asked(tx, ctx, given, place))


async def _permitted(ctx: Ctx, told: str) -> Address:
    """A repository that this principal may have read."""
    try:
        place = address.checked(told)
    except ValueError as error:
        raise BadInput(str(error)) from error
    is_owner = _is_owner(ctx.principal)
    if place.is_local and not is_owner:
        raise Forbidden("only the owner of the machine may sync a folder of it. Give an https:// address.")
    if not place.is_local and not is_owner and place.host not in ctx.app.settings.sync_hosts:
        hosts = ", ".join(ctx.app.settings.sync_hosts) or "none"
        raise Forbidden(f"repositories are synced from these hosts only: {hosts} (KEEPSAKE_SYNC_HOSTS).")
    if place.is_local:
        # Said at once: whoever gave the folder is still there to give another.
        await asyncio.to_thread(git.Git, place.place)
        return replace(place, place=await asyncio.to_thread(os.path.realpath, place.place))
    return place


def _is_owner(principal: Principal) -> bool:
    return principal.key is None and principal.name == background.LOCAL


async def _asked(tx: Tx, ctx: Ctx, given: Sync, place: Address | None) -> Changed[Synced]:
    bank = await _bank(tx, ctx, given.bank)
    await banks.step(tx, ctx.org, bank.id)
    repo = await repos.get(tx, ctx.org, bank.id)
    if repo is None and place is None:
        raise BadInput(NONE)
    await jobs.wanted(tx, ctx.store, ctx.org, bank.id, JOB, ctx.now)
    await jobs.hurry(tx, ctx.org, bank.id, JOB, ctx.now)
    job = await jobs.of_kind(tx, ctx.org, bank.id, JOB)
    if job is None:
        raise Conflict("The sync could not be asked for. Try again.")
    if repo is None or (place is not None and place.place != repo.remote):
        assert place is not None
        if job.state == "running":
            raise Conflict(f"A sync of another repository runs. Wait for it, or cancel operation {job.id}.")
        repo = _chosen(ctx, bank, repo, place)
    repo = replace(repo, cursors={**repo.cursors, "asked_by": ctx.principal.name}, updated_at=ctx.now)
    await repos.put(tx, repo)
    return Changed(shown(bank.name, repo, job.id), bank.id, [job.id], repo.remote)


async def _bank(tx: Tx, ctx: Ctx, named: str | None) -> banks.Bank:
    """The bank to fill; whoever may sync may also make it."""
    name, implied = bank_ops.wanted(ctx, named)
    if implied:
        return await bank_ops.ensured(tx, ctx, named)
    policy.check_bank(ctx.principal, name)
    made = await banks.named(tx, ctx.org, name) or await banks.create(tx, ctx.store, ctx.org, name)
    return made or await bank_ops.ensured(tx, ctx, named)


def _chosen(ctx: Ctx, bank: banks.Bank, before: Repo | None, place: Address) -> Repo:
    """Another repository is read from its beginning; what the former one told is then superseded."""
    created_at = before.created_at if before else ctx.now
    return Repo(ctx.org, bank.id, place.place, created_at, ctx.now)


def shown(bank: str, repo: Repo, job: int) -> Synced:
    """A sync that was asked for, as everyone sees it."""
    return Synced(
        operation=str(job),
        bank=bank,
        repo=repo.remote,
        full_name=repo.full_name or None,
        state=repo.state,
        note=repo.note or None,
        last_synced_at=clock.iso(repo.last_synced_at) if repo.last_synced_at is not None else None,
    )


async def sync(app: App, job: jobs.Job, alive: "Alive") -> None:
    """Read what is new in the repository of a bank; what cannot be mended by trying again ends it."""
    repo = await app.store.read(job.org, lambda tx: repos.get(tx, job.org, job.bank))
    if repo is None:
        return
    report = ingest.Report()
    try:
        pulled = await _synced(app, job, repo, alive, report)
    except (BadInput, NotFound) as error:
        await _failed(app, job, report, error)
        reason = f"{error.code}: {error}"
        await app.store.write(job.org, lambda tx: jobs.bury(tx, job, app.now(), reason))
        return
    except Unavailable as error:
        await _failed(app, job, report, error)
        raise
    if pulled.error is not None:
        # The repository was read, GitHub not to its end: the job is tried again for the rest.
        raise pulled.error
    if pulled.again_at is not None:
        after = max(0, pulled.again_at - app.now())
        await app.store.write(job.org, lambda tx: jobs.release(tx, job, app.now(), after))


async def _failed(app: App, job: jobs.Job, report: "ingest.Report", error: KeepsakeError) -> None:
    """Note why nothing more was read; what was read stays."""
    note = " ".join([str(error), *report.notes])[:LONGEST_NOTE]
    await ingest.noted(app, job, state="failed", note=note)


async def _synced(app: App, job: jobs.Job, repo: Repo, alive: "Alive", report: "ingest.Report") -> "sync_github.Pulled":
    repo = await ingest.noted(app, job, state="running")
    repo = await sync_git.read(app, job, repo, alive, report)
    pulled = await sync_github.pulled(app, job, repo, alive, report)
    report.begin("done" if pulled.again_at is None else "waiting for GitHub", 0, 1.0, 1.0)
    await app.store.write(job.org, lambda tx: _ended(tx, app, job, report))
    return pulled


async def _ended(tx: Tx, app: App, job: jobs.Job, report: "ingest.Report") -> None:
    """Note that all was read, and ask for what comes after."""
    await banks.step(tx, job.org, job.bank)
    await report.tell_in(tx, app, job)
    repo = await repos.get(tx, job.org, job.bank)
    if repo is None:
        raise Conflict(ingest.LOST)
    note = " ".join(report.notes)[:LONGEST_NOTE]
    repo = replace(
        repo,
        state="partial" if report.notes else "completed",
        note=note,
        completed=repo.completed + 1,
        last_synced_at=app.now(),
        updated_at=app.now(),
    )
    await repos.put(tx, repo)
    await banks.learns_from(tx, job.org, job.bank, repo.full_name)
    await synthesis.wanted(tx, app, repo)
    if report.tally.stored:
        await jobs.wanted(tx, app.store, job.org, job.bank, "embed", app.now())
