"""What may be meant by the beginning of a word: topics, names of memories, ids of artifacts."""

from typing import Literal

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.store import banks, suggestions
from keepsake.store.engine import Tx

#: What a client shows at once.
MOST = 50


class Suggest(InBank):
    """What is being typed."""

    what: Literal["topic", "memory", "artifact"] = Field(description="What is to be named.")
    start: Clean = Field("", max_length=200, description="What is typed so far.")


class Suggestions(Result):
    """What may be meant."""

    values: list[str] = Field(description="At most 50.")
    has_more: bool = Field(description="Whether there are more.")


@operation("bank.suggest", effect=Effect.READ, scope="memory:read")
async def suggest(ctx: Ctx, given: Suggest) -> Suggestions:
    """Suggest topics, memories or artifacts of a bank by the beginning of their names."""

    async def body(tx: Tx) -> list[str]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        return await _found(tx, bank, given) if bank else []

    found = await ctx.read(body)
    return Suggestions(values=found[:MOST], has_more=len(found) > MOST)


async def _found(tx: Tx, bank: banks.Bank, given: Suggest) -> list[str]:
    wanted = suggestions.Wanted(bank.org, bank.id, given.start.strip().lower(), MOST + 1)
    if given.what == "memory":
        return await suggestions.slugs(tx, wanted)
    if given.what == "artifact":
        return await suggestions.artifacts(tx, wanted)
    names = [*await suggestions.entities(tx, wanted), *await suggestions.tags(tx, wanted)]
    return sorted({name.lower(): name for name in names}.values(), key=str.lower)
