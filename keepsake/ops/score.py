"""The memory score of a project: how much of it is known, and how it came to be known."""

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import clock
from keepsake.core.clock import DAY
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.ops import banks as bank_ops
from keepsake.store import banks, repos
from keepsake.store.engine import Tx
from keepsake.store.repos import Repo

#: Memories from the repository, and the points from that many on; most first.
COVERAGE = ((200, 25), (50, 17), (1, 8))
#: Days since the last sync, and the points up to that many; fewest first.
FRESHNESS = ((7, 15), (30, 10), (90, 5))
INGESTION, SYNTHESIS, FOLDER = 25, 25, 10


class Breakdown(Result):
    """What a memory score is the sum of."""

    total: int = Field(description="The sum, 0 to 100.")
    ingestion: int = Field(description="25 once the repository was read to its end.")
    synthesis: int = Field(description="25 once the project's profile is made.")
    coverage: int = Field(description="0, 8, 17 or 25 for 0, 1, 50 or 200 memories from the repository.")
    freshness: int = Field(description="15, 10 or 5 while the last sync is at most 7, 30 or 90 days ago.")
    folder: int = Field(description="10 where the repository has notes for agents in .keystone or .keepsake.")


class Score(Result):
    """How well a project is known, and where its pipeline stands."""

    bank: str = Field(description="Name of the bank.")
    repository: str | None = Field(None, description="`owner/name` of its repository where it is on GitHub.")
    breakdown: Breakdown = Field(description="The memory score and its parts.")
    state: str | None = Field(None, description="How the last sync ended or runs; absent where there was none.")
    note: str | None = Field(None, description="What the last sync left out or failed of.")
    ingested: bool = Field(description="Whether the repository was read to its end at least once.")
    synthesis: str | None = Field(None, description="How the project's profile stands; absent without a repository.")
    synthesis_progress: int = Field(description="How far the profile is, 0 to 100.")
    last_synced_at: str | None = Field(None, description="When the repository was last read to its end, ISO 8601.")
    memories: int = Field(description="Memories from the repository.")
    folder_files: int = Field(description="Files in .keystone or .keepsake.")


@operation("bank.score", effect=Effect.READ, scope="memory:read")
async def score(ctx: Ctx, given: InBank) -> Score:
    """Tell the memory score of a project and how far it has been read and summed up."""
    name, _ = bank_ops.wanted(ctx, given.bank)

    async def body(tx: Tx) -> Score:
        bank = await _bank(tx, ctx, given.bank)
        if bank is None:
            return _told(name, None, 0, ctx.now)
        repo = await repos.get(tx, ctx.org, bank.id)
        held = await repos.held(tx, ctx.org, bank.id) if repo else 0
        return _told(bank.name, repo, held, ctx.now)

    return await ctx.read(body)


async def _bank(tx: Tx, ctx: Ctx, named: str | None) -> banks.Bank | None:
    if named is None:
        return await bank_ops.found(tx, ctx, None)
    return (await bank_ops.several(tx, ctx, [named])).get(named)


def _told(bank: str, repo: Repo | None, held: int, now: int) -> Score:
    synced_at = repo.last_synced_at if repo else None
    return Score(
        bank=bank,
        repository=repo.full_name or None if repo else None,
        breakdown=broken_down(repo, held, now),
        state=repo.state if repo else None,
        note=repo.note or None if repo else None,
        ingested=bool(repo and repo.completed),
        synthesis=repo.synthesis if repo else None,
        synthesis_progress=repo.synthesis_progress if repo else 0,
        last_synced_at=clock.iso(synced_at) if synced_at is not None else None,
        memories=held,
        folder_files=repo.folder_files if repo else 0,
    )


def broken_down(repo: Repo | None, held: int, now: int) -> Breakdown:
    """The score of a project and its parts, from its repository and how many memories came from it."""
    ingestion = INGESTION if repo and repo.completed else 0
    synthesis = SYNTHESIS if repo and repo.synthesis == "completed" else 0
    coverage = next((points for least, points in COVERAGE if held >= least), 0)
    freshness = _freshness(now - repo.last_synced_at) if repo and repo.last_synced_at is not None else 0
    folder = FOLDER if repo and repo.folder_files else 0
    return Breakdown(
        total=ingestion + synthesis + coverage + freshness + folder,
        ingestion=ingestion,
        synthesis=synthesis,
        coverage=coverage,
        freshness=freshness,
        folder=folder,
    )


def _freshness(age: int) -> int:
    return next((points for days, points in FRESHNESS if age <= days * DAY), 0)
