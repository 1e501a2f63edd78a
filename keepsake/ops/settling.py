"""Settling conflicts: one of two memories holds, or both do."""

from typing import Literal

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import ids as all_ids
from keepsake.core.errors import Conflict, NotFound
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.store import banks, conflicts, memories
from keepsake.store.engine import Tx


class Settle(InBank):
    """Which conflict, and what holds."""

    id: Clean = Field(min_length=1, max_length=16, description="Id of the conflict.")
    keep: Literal["older", "newer", "both"] = Field(description="Which of the two memories holds.")


class Settled(Result):
    """How a conflict was settled."""

    kept: list[str] = Field(description="Ids of the memories that hold.")
    superseded: str | None = Field(None, description="Id of the memory that gave way; it is found as of its time.")


@operation("memory.settle", effect=Effect.MUTATE, scope="memory:write")
async def settle(ctx: Ctx, given: Settle) -> Settled:
    """Settle a conflict: keep one of its two memories and supersede the other, or say that both are true."""

    async def body(tx: Tx) -> Changed[Settled]:
        bank, found = await _open(tx, ctx, given)
        await banks.step(tx, ctx.org, bank.id)
        both = [found.older, found.newer]
        if given.keep == "both":
            await conflicts.close(tx, ctx.org, bank.id, found.id, ctx.principal.name)
            return Changed(Settled(kept=[str(id) for id in both]), bank.id, both)
        kept, gone = both if given.keep == "older" else both[::-1]
        rows = await memories.fetched(tx, ctx.org, bank.id, both)
        if kept not in rows or rows[kept].superseded_at is not None:
            raise Conflict("The memory to keep no longer holds itself. Open it to see what took its place.")
        await memories.supersede(tx, ctx.org, bank.id, [gone], kept, ctx.now)
        await memories.relate(tx, ctx.org, bank.id, kept, gone, "supersedes")
        # What else stood against the one that gave way stands against nothing now.
        await conflicts.settle(tx, ctx.org, bank.id, [gone], ctx.principal.name)
        return Changed(Settled(kept=[str(kept)], superseded=str(gone)), bank.id, [kept, gone])

    return await ctx.change(body)


async def _open(tx: Tx, ctx: Ctx, given: Settle) -> tuple[banks.Bank, conflicts.Conflict]:
    bank, id = await bank_ops.found(tx, ctx, given.bank), all_ids.parse(given.id)
    found = await conflicts.get(tx, ctx.org, bank.id, id) if bank and id else None
    if bank is None or found is None:
        raise NotFound(f"No conflict {given.id!r} in this bank. Use memory.conflicts to see those that are open.")
    if not found.is_open:
        raise Conflict("Someone else has settled this already. Look at what holds now.")
    return bank, found
