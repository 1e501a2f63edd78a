"""A look at every bank at once: how well each is known, how it grows, what is open, and what tokens went and stayed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import clock
from keepsake.core.clock import DAY
from keepsake.core.models import BankName, Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.ops import handed_out as handing
from keepsake.ops.score import Breakdown, broken_down
from keepsake.store import banks, handed_out, jobs, overview, repos
from keepsake.store.engine import Tx
from keepsake.store.overview import DAYS, WEEKS

#: Memories handed out that are looked at.
MOST_HANDED = 5_000


class GetOverview(Given):
    """Which banks."""

    banks: list[BankName] = Field(default_factory=list, max_length=50, description="Only these; every one by default.")
    limit: int = Field(50, ge=1, le=50, description="Maximum number of results.")
    offset: int = Field(0, ge=0, le=10_000_000, description="Number of results to skip.")


class Project(Result):
    """The repository that a bank learns from, and how that went."""

    repository: str = Field(description="`owner/name` where it is on GitHub, else its address or folder.")
    state: str = Field(description="How the last sync ended or runs: new, running, completed, partial or failed.")
    note: str | None = Field(None, description="What the last sync left out or failed of.")
    last_synced_at: str | None = Field(None, description="When it was last read to its end, ISO 8601.")


class Look(Result):
    """A bank at a glance."""

    name: str = Field(description="Its name.")
    title: str = Field(description="A human-friendly name.")
    mission: str = Field(description="Who the agent is and what it is trying to accomplish.")
    memories: int = Field(description="Memories that hold now.")
    weeks: dict[str, list[int]] = Field(
        description="How many of them it knew at the end of each of the last 12 weeks, oldest first, by kind."
    )
    last_learned_at: str | None = Field(None, description="When it last learned something, ISO 8601.")
    last_author: str | None = Field(None, description="From whom.")
    breakdown: Breakdown = Field(description="The memory score and its parts.")
    project: Project | None = Field(None, description="Its repository, where it has one.")
    operations: dict[str, int] = Field(description="Background work that waits, runs or failed, by state.")
    conflicts: int = Field(description="Conflicts that wait to be settled.")


class Day(Result):
    """What tokens went and stayed on a day."""

    starts_at: str = Field(description="Its midnight UTC, ISO 8601.")
    spent: int = Field(description="Tokens spent on models: yours, or everyone's for who manages the org.")
    saved: int = Field(description="What memories last handed out on that day had cost to find out, beyond reading.")


class Overview(Result):
    """Every bank that you may see, and what tokens went and stayed."""

    banks: list[Look] = Field(description="By name.")
    total: int = Field(description="How many there are in all.")
    days: list[Day] = Field(description="The last seven days in UTC, oldest first; the last one is today.")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the store says of banks, all of them together."""

    weeks: Mapping[int, Mapping[str, list[int]]]
    last: Mapping[int, overview.Last]
    repos: Mapping[int, repos.Repo]
    work: Mapping[int, Counter[str]]
    conflicts: Mapping[int, int]


@operation("bank.overview", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: GetOverview) -> Overview:
    """Look at every bank at once: score, memories, growth, last activity, open work, and tokens spent and saved."""
    await handing.noted(ctx.app)
    handed = await ctx.store.engine.volatile(lambda tx: overview.handed(tx, ctx.now, MOST_HANDED))

    async def body(tx: Tx) -> Overview:
        every = [bank for bank in await banks.listed(tx, ctx.org) if ctx.principal.sees(bank.name)]
        wanted = [bank for bank in every if not given.banks or bank.name in given.banks]
        shown = wanted[given.offset : given.offset + given.limit]
        seen = await _seen(tx, ctx, [bank.id for bank in shown])
        return Overview(
            banks=[_look(bank, seen, ctx.now) for bank in shown],
            total=len(wanted),
            days=await _days(tx, ctx, [bank.id for bank in wanted], handed),
        )

    return await ctx.read(body)


async def _seen(tx: Tx, ctx: Ctx, ids: Sequence[int]) -> Seen:
    work: dict[int, Counter[str]] = {id: Counter() for id in ids}
    for one in await jobs.standing(tx, ctx.org):
        if one.bank in work and one.state in ("pending", "running", "failed"):
            work[one.bank][one.state] += one.jobs
    return Seen(
        _grown(await overview.growth(tx, ctx.org, ids, ctx.now)),
        await overview.last(tx, ctx.org, ids),
        await repos.listed(tx, ctx.org),
        work,
        await overview.at_odds(tx, ctx.org, ids),
    )


def _grown(learned: Sequence[overview.Learned]) -> dict[int, dict[str, list[int]]]:
    """What was known at the end of each week, by bank and kind."""
    known: dict[int, dict[str, list[int]]] = {}
    for one in learned:
        weeks = known.setdefault(one.bank, {}).setdefault(one.kind, [0] * WEEKS)
        for week in range(one.week, WEEKS):
            weeks[week] += one.held
    return known


def _look(bank: banks.Bank, seen: Seen, now: int) -> Look:
    weeks, repo, last = seen.weeks.get(bank.id, {}), seen.repos.get(bank.id), seen.last.get(bank.id)
    from_repo = weeks["chunk"][-1] if repo and "chunk" in weeks else 0
    return Look(
        name=bank.name,
        title=bank.title or bank.name,
        mission=bank.mission,
        memories=sum(known[-1] for known in weeks.values()),
        weeks=dict(sorted(weeks.items(), key=lambda kind: (-kind[1][-1], kind[0]))),
        last_learned_at=clock.iso(last.learned_at) if last else None,
        last_author=last.author if last else None,
        breakdown=broken_down(repo, from_repo, now),
        project=_project(repo) if repo else None,
        operations=dict(seen.work[bank.id]),
        conflicts=seen.conflicts.get(bank.id, 0),
    )


def _project(repo: repos.Repo) -> Project:
    return Project(
        repository=repo.full_name or repo.remote,
        state=repo.state,
        note=repo.note or None,
        last_synced_at=clock.iso(repo.last_synced_at) if repo.last_synced_at is not None else None,
    )


async def _days(tx: Tx, ctx: Ctx, ids: Sequence[int], handed: Mapping[int, int]) -> list[Day]:
    """The last days; a memory that was handed out several times counts once, on the last of them."""
    first = ctx.now // DAY * DAY - (DAYS - 1) * DAY
    spent = await overview.spent(tx, ctx.org, first, None if ctx.principal.is_manager else ctx.principal.name)
    saved: Counter[int] = Counter()
    for id, worth in (await overview.worth(tx, ctx.org, ids, list(handed))).items():
        saved[(handed[id] - handed_out.KEPT_FOR - first) // DAY] += worth
    return [Day(starts_at=clock.iso(first + n * DAY), spent=spent.get(n, 0), saved=saved[n]) for n in range(DAYS)]


class CountIncidents(Given):
    """Nothing to say."""


class Down(Result):
    """How many incidents are open."""

    banks: dict[str, int] = Field(description="By bank; those without an open incident are left out.")


@operation("incident.count", effect=Effect.READ, scope="watch:read")
async def incidents(ctx: Ctx, given: CountIncidents) -> Down:
    """Count the open incidents of every bank that you may watch."""

    async def body(tx: Tx) -> Down:
        names = {bank.id: bank.name for bank in await banks.listed(tx, ctx.org) if ctx.principal.sees(bank.name)}
        found = await overview.down(tx, ctx.org, list(names))
        return Down(banks={names[id]: held for id, held in found.items()})

    return await ctx.read(body)
