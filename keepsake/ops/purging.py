"""Purging: what would go if memories were forgotten; several or all forgotten at once; the proof that stays."""

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import ids as all_ids
from keepsake.core import models
from keepsake.core.errors import NotFound
from keepsake.core.models import FactType, InBank, Receipt, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.ops import chosen, forgetting, views
from keepsake.ops import receipts as receipt_ops
from keepsake.store import banks, memories, mental_models, receipts
from keepsake.store.engine import Tx

#: Memories that are shown of all that would go.
SHOWN = 200


class Losses(Result):
    """What would go for good."""

    chosen: list[models.Memory] = Field(description="The memories that were chosen.")
    others: list[models.Memory] = Field(description="What goes with them: it says the same, or rests on them.")
    memories: int = Field(description="How many memories would go in all.")
    artifacts: int = Field(description="How many artifacts would go, of whose text nothing would be left.")
    mental_models: list[str] = Field(description="Mental models that would lose sentences and be made anew.")


@operation("memory.losses", effect=Effect.READ, scope="memory:read")
async def losses(ctx: Ctx, given: chosen.Chosen) -> Losses:
    """Tell what would go for good if memories were forgotten; nothing is changed."""

    async def body(tx: Tx) -> Losses:
        bank, found = await chosen.these(tx, ctx, given.bank, given.ids)
        first = [memory.id for memory in found]
        gone, falling = await forgetting.reach(tx, ctx, bank, first)
        others = [id for id in gone if id not in first]
        rows = await memories.fetched(tx, ctx.org, bank.id, others[:SHOWN])
        told = await views.described(tx, bank, [*found, *(rows[id] for id in others if id in rows)])
        return Losses(
            chosen=told[: len(found)],
            others=told[len(found) :],
            memories=len(gone),
            artifacts=len(falling.artifacts),
            mental_models=await mental_models.resting_on(tx, ctx.org, bank.id, gone),
        )

    return await ctx.read(body)


@operation("memory.purge", effect=Effect.DESTRUCTIVE, scope="memory:delete")
async def purge(ctx: Ctx, given: chosen.Chosen) -> Receipt:
    """Permanently delete several memories at once, with all that rests on them; leaves one receipt."""
    await ctx.app.embedding.static_model(ctx.store)

    async def body(tx: Tx) -> Changed[Receipt]:
        bank, found = await chosen.these(tx, ctx, given.bank, given.ids)
        await banks.step(tx, ctx.org, bank.id)
        gone = [memory.id for memory in found]
        await forgetting.suppress(tx, ctx, bank, gone)
        return Changed(await forgetting.forget(tx, ctx, bank, gone), bank.id, gone)

    return await ctx.change(body)


class Clear(InBank):
    """What to clear."""

    type: FactType | None = Field(None, description="Fact type to clear; all when left out.")


@operation("memory.clear", effect=Effect.DESTRUCTIVE, scope="memory:delete")
async def clear(ctx: Ctx, given: Clear) -> Receipt:
    """Clear a bank's memories, all or of one fact type, without deleting the bank; leaves a receipt."""
    await ctx.app.embedding.static_model(ctx.store)

    async def body(tx: Tx) -> Changed[Receipt]:
        bank = await bank_ops.ensured(tx, ctx, given.bank)
        await banks.step(tx, ctx.org, bank.id)
        found = await memories.of_types(tx, ctx.org, bank.id, [given.type] if given.type else [])
        return Changed(await forgetting.forget(tx, ctx, bank, found), bank.id, found)

    return await ctx.change(body)


class OneReceipt(InBank):
    """Which receipt."""

    id: Clean = Field(min_length=1, max_length=16, description="Id of the receipt.")


@operation("receipt.get", effect=Effect.READ, scope="memory:read")
async def receipt(ctx: Ctx, given: OneReceipt) -> Receipt:
    """Show the receipt of a deletion: what went, when and by whom; never what it said."""

    async def body(tx: Tx) -> receipts.Receipt | None:
        bank, id = await bank_ops.found(tx, ctx, given.bank), all_ids.parse(given.id)
        return await receipts.get(tx, ctx.org, bank.id, id) if bank and id else None

    row = await ctx.read(body)
    if row is None:
        raise NotFound(f"No receipt {given.id!r} in this bank. The audit log names those of every deletion.")
    return receipt_ops.shown(row)
