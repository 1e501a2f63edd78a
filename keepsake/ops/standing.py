"""How a bank stands: what it holds, how well its project is known, what waits, and what tokens went and stayed."""

from collections import Counter
from dataclasses import dataclass

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import clock
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.ops import banks as bank_ops
from keepsake.ops import budget
from keepsake.ops import handed_out as handing
from keepsake.ops.score import Breakdown, broken_down
from keepsake.store import banks, handed_out, jobs, records, repos, usage
from keepsake.store.engine import Tx

#: Banks that are listed, and memories handed out that are looked at.
MOST_BANKS, MOST_HANDED = 50, 5_000


class Working(Result):
    """Background work of one kind."""

    kind: str = Field(description="What kind of work.")
    state: str = Field(description="pending, running, completed, failed or cancelled.")
    jobs: int = Field(description="How many.")
    error: str | None = Field(None, description="What kind of error it met.")


class Tokens(Result):
    """What tokens went and stayed."""

    limit: int = Field(description="Tokens that you may spend on a language model in a week.")
    spent: int = Field(description="Tokens spent in this week.")
    reserved: int = Field(description="Tokens set aside for calls that run now.")
    resets_at: str = Field(description="When the next week begins, ISO 8601.")
    saved: int = Field(
        description="What the memories handed out in the last 7 days had cost to find out, beyond what they cost to"
        " read."
    )


class Standing(Result):
    """How a bank stands, and which others there are."""

    bank: str = Field(description="Name of the bank.")
    memories: int = Field(description="Memories that hold now.")
    by_kind: dict[str, int] = Field(description="The same by kind.")
    last_learned_at: str | None = Field(None, description="When it last learned something, ISO 8601.")
    score: int = Field(description="How well its project is known, 0 to 100.")
    breakdown: Breakdown = Field(description="What the score is the sum of.")
    repository: str | None = Field(None, description="The repository it learns from, where it has one.")
    last_synced_at: str | None = Field(None, description="When that was last read to its end, ISO 8601.")
    operations: list[Working] = Field(description="Background work of the bank that waits, runs or failed.")
    tokens: Tokens = Field(description="Budget and savings.")
    banks: list[str] = Field(description="Every bank that you may use, by name; the first 50.")


@dataclass(frozen=True, slots=True)
class Held:
    """What the store says of a bank."""

    kinds: Counter[str]
    last: int | None = None
    repo: repos.Repo | None = None
    from_repo: int = 0
    work: tuple[jobs.Standing, ...] = ()


@operation("bank.status", effect=Effect.READ, scope="memory:read")
async def status(ctx: Ctx, given: InBank) -> Standing:
    """Tell what a bank holds, how well its project is known, what work waits or failed, and the token budget."""
    await handing.noted(ctx.app)
    handed = await ctx.store.engine.volatile(lambda tx: handed_out.memories(tx, ctx.now, MOST_HANDED))

    async def body(tx: Tx) -> Standing:
        bank = await bank_ops.found(tx, ctx, given.bank)
        seen = [one for one in await banks.listed(tx, ctx.org) if ctx.principal.sees(one.name)]
        held = await _held(tx, ctx, bank) if bank else Held(Counter())
        spent = await usage.standing(tx, ctx.org, ctx.principal.name, budget.week(ctx.now))
        tokens = Tokens(
            limit=ctx.app.settings.weekly_token_limit,
            spent=spent.spent,
            reserved=spent.reserved,
            resets_at=budget.resets_at(ctx.now),
            saved=await records.saved(tx, ctx.org, [one.id for one in seen], handed),
        )
        name = bank.name if bank else bank_ops.wanted(ctx, given.bank)[0]
        return _told(ctx, name, held, tokens, [one.name for one in seen[:MOST_BANKS]])

    return await ctx.read(body)


async def _held(tx: Tx, ctx: Ctx, bank: banks.Bank) -> Held:
    repo = await repos.get(tx, ctx.org, bank.id)
    working = tuple(one for one in await jobs.standing(tx, ctx.org) if one.bank == bank.id)
    return Held(
        Counter(await records.kinds(tx, ctx.org, bank.id, ctx.now)),
        await records.last_learned(tx, ctx.org, bank.id),
        repo,
        await repos.held(tx, ctx.org, bank.id) if repo else 0,
        working,
    )


def _told(ctx: Ctx, name: str, held: Held, tokens: Tokens, seen: list[str]) -> Standing:
    parts = broken_down(held.repo, held.from_repo, ctx.now)
    synced = held.repo.last_synced_at if held.repo else None
    return Standing(
        bank=name,
        memories=held.kinds.total(),
        by_kind=dict(held.kinds.most_common()),
        last_learned_at=None if held.last is None else clock.iso(held.last),
        score=parts.total,
        breakdown=parts,
        repository=held.repo.full_name or held.repo.remote if held.repo else None,
        last_synced_at=None if synced is None else clock.iso(synced),
        operations=[
            Working(kind=one.kind, state=one.state, jobs=one.jobs, error=one.error.partition(":")[0] or None)
            for one in held.work
            if one.state in ("pending", "running", "failed") or one.error
        ],
        tokens=tokens,
        banks=seen,
    )
