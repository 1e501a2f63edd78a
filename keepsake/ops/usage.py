"""Usage: how the week's budget of tokens stands, and what was spent on which call."""

from collections import Counter

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import clock
from keepsake.core.clock import DAY
from keepsake.core.errors import Forbidden
from keepsake.core.models import Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import budget
from keepsake.ops.standing import MOST_HANDED
from keepsake.store import banks, handed_out, records, usage
from keepsake.store.engine import Tx


class GetUsage(Given):
    """Whose usage."""

    principal: Clean | None = Field(
        None, max_length=200, description="Whose; your own when left out. Another's needs the scope admin."
    )
    limit: int = Field(20, ge=1, le=1_000, description="How many of the last calls at most.")


class Call(Result):
    """What one request spent on a model."""

    at: str = Field(description="When, ISO 8601.")
    source: str = Field(description="Where it came in: mcp, web or cli; empty for the background.")
    operation: str = Field(description="The operation that asked.")
    model: str = Field(description="The model, or `rules` where none was asked.")
    tokens_in: int = Field(description="Tokens that the model was given.")
    tokens_out: int = Field(description="Tokens that it answered with.")


class Usage(Result):
    """How a budget stands."""

    principal: str = Field(description="Whose budget it is.")
    limit: int = Field(description="Tokens of a week.")
    spent: int = Field(description="Tokens spent in this week.")
    reserved: int = Field(description="Tokens set aside for calls that run now.")
    resets_at: str = Field(description="When the next week begins: Monday 00:00 UTC, ISO 8601.")
    saved: int = Field(
        description="What the memories handed out in the last 7 days, to whomever, had cost to find out, beyond reading"
        " them; of the banks that you may see."
    )
    calls: list[Call] = Field(description="The last calls, newest first.")


@operation("usage.get", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: GetUsage) -> Usage:
    """Tell how the week's budget of tokens stands, and what the last calls spent."""
    holder = given.principal or ctx.principal.name
    if holder != ctx.principal.name and not ctx.principal.is_manager:
        raise Forbidden("this credential may see only what it spent itself; that of others needs the scope admin.")

    handed = await ctx.store.engine.volatile(lambda tx: handed_out.memories(tx, ctx.now, MOST_HANDED))

    async def body(tx: Tx) -> tuple[usage.Standing, int, list[usage.Usage]]:
        standing = await usage.standing(tx, ctx.org, holder, budget.week(ctx.now))
        seen = [one.id for one in await banks.listed(tx, ctx.org) if ctx.principal.sees(one.name)]
        saved = await records.saved(tx, ctx.org, seen, handed)
        return standing, saved, await usage.latest(tx, ctx.org, holder, given.limit)

    standing, saved, rows = await ctx.read(body)
    return Usage(
        principal=holder,
        limit=ctx.app.settings.weekly_token_limit,
        spent=standing.spent,
        reserved=standing.reserved,
        resets_at=budget.resets_at(ctx.now),
        saved=saved,
        calls=[_shown(row) for row in rows],
    )


class GetWeeks(Given):
    """How far back, and whose."""

    weeks: int = Field(12, ge=1, le=53, description="How many weeks, this one included.")
    everyone: bool = Field(False, description="What everyone and the background spent; needs the scope admin.")


class Week(Result):
    """What was spent in a week."""

    starts_at: str = Field(description="Its Monday 00:00 UTC, ISO 8601.")
    tokens: dict[str, int] = Field(description="Tokens by what for: ask, extraction, reflection, models, other.")
    calls: int = Field(description="Calls of a model.")


class Spender(Result):
    """Who spent how much in this week."""

    principal: str = Field(description="Who; `background` for Keepsake's own work.")
    tokens: int = Field(description="Tokens.")
    calls: int = Field(description="Calls of a model.")


class Weeks(Result):
    """What was spent, week by week."""

    weeks: list[Week] = Field(description="Oldest first; the last one is this week.")
    spenders: list[Spender] = Field(description="Who spent most in this week; only where everyone was asked for.")


#: What an operation spends tokens for; whatever is not named is `other`.
PURPOSES = {
    "memory.ask": "ask",
    "memory.extract": "extraction",
    "memory.consolidate": "extraction",
    "memory.reflect": "reflection",
    "brief.analyze": "reflection",
    "model.refresh": "models",
    "model.create": "models",
}
MOST_SPENDERS = 20


@operation("usage.weeks", effect=Effect.READ, scope="memory:read")
async def weeks(ctx: Ctx, given: GetWeeks) -> Weeks:
    """Tell what was spent on models week by week and for what: your own, or everyone's for who manages the org."""
    if given.everyone and not ctx.principal.is_manager:
        raise Forbidden("this credential may see only what it spent itself; that of others needs the scope admin.")
    monday = clock.parse(budget.resets_at(ctx.now)) - 7 * DAY
    first = monday - (given.weeks - 1) * 7 * DAY
    holder = None if given.everyone else ctx.principal.name

    async def body(tx: Tx) -> tuple[list[usage.Share], list[usage.Spender]]:
        most = await usage.spenders(tx, ctx.org, monday, MOST_SPENDERS) if given.everyone else []
        return await usage.by_week(tx, ctx.org, first, holder), most

    shares, most = await ctx.read(body)
    found = [_week(first + n * 7 * DAY, [one for one in shares if one.week == n]) for n in range(given.weeks)]
    spent = [Spender(principal=one.principal or "background", tokens=one.tokens, calls=one.calls) for one in most]
    return Weeks(weeks=found, spenders=spent)


def _week(starts_at: int, shares: list[usage.Share]) -> Week:
    tokens: Counter[str] = Counter()
    for share in shares:
        tokens[PURPOSES.get(share.operation, "other")] += share.tokens
    return Week(starts_at=clock.iso(starts_at), tokens=dict(tokens), calls=sum(share.calls for share in shares))


def _shown(row: usage.Usage) -> Call:
    return Call(
        at=clock.iso(row.at),
        source=row.source,
        operation=row.operation,
        model=row.model,
        tokens_in=row.tokens_in,
        tokens_out=row.tokens_out,
    )
