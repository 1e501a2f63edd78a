"""Usage: how the week's budget of tokens stands, and what was spent on which call."""

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import clock
from keepsake.core.errors import Forbidden
from keepsake.core.models import Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import budget
from keepsake.store import usage
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
    calls: list[Call] = Field(description="The last calls, newest first.")


@operation("usage.get", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: GetUsage) -> Usage:
    """Tell how the week's budget of tokens stands, and what the last calls spent."""
    holder = given.principal or ctx.principal.name
    if holder != ctx.principal.name and not ctx.principal.is_manager:
        raise Forbidden("this credential may see only what it spent itself; that of others needs the scope admin.")

    async def body(tx: Tx) -> tuple[usage.Standing, list[usage.Usage]]:
        standing = await usage.standing(tx, ctx.org, holder, budget.week(ctx.now))
        return standing, await usage.latest(tx, ctx.org, holder, given.limit)

    standing, rows = await ctx.read(body)
    return Usage(
        principal=holder,
        limit=ctx.app.settings.weekly_token_limit,
        spent=standing.spent,
        reserved=standing.reserved,
        resets_at=budget.resets_at(ctx.now),
        calls=[_shown(row) for row in rows],
    )


def _shown(row: usage.Usage) -> Call:
    return Call(
        at=clock.iso(row.at),
        source=row.source,
        operation=row.operation,
        model=row.model,
        tokens_in=row.tokens_in,
        tokens_out=row.tokens_out,
    )
