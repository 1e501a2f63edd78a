"""Pinning and tagging: how people mark what must not be missed, and file what belongs together."""

from dataclasses import replace

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import models
from keepsake.core.models import Result, Tags
from keepsake.core.operation import Effect, operation
from keepsake.ops import chosen, views
from keepsake.store import banks, browsing, memories
from keepsake.store.engine import Tx


class Pin(chosen.Chosen):
    """Which memories, and whether they are to be pinned."""

    pinned: bool = Field(True, description="False takes the pins out again.")


class Marked(Result):
    """The memories as they are now."""

    memories: list[models.Memory] = Field(description="The memories, in the order given.")


@operation("memory.pin", effect=Effect.MUTATE, scope="memory:write")
async def pin(ctx: Ctx, given: Pin) -> Marked:
    """Pin memories, so that every new session is told of them first; or take the pins out again."""

    async def body(tx: Tx) -> Changed[Marked]:
        bank, found = await chosen.these(tx, ctx, given.bank, given.ids)
        await banks.step(tx, ctx.org, bank.id)
        ids = [memory.id for memory in found]
        await browsing.pin(tx, ctx.org, bank.id, ids, given.pinned)
        marked = [replace(memory, pinned=int(given.pinned)) for memory in found]
        return Changed(Marked(memories=await views.described(tx, bank, marked)), bank.id, ids)

    return await ctx.change(body)


class Tag(chosen.Chosen):
    """Which memories, and how their tags change."""

    add: Tags = Field(default_factory=list, description="Tags to give them.")
    remove: Tags = Field(default_factory=list, description="Tags to take away; one that is added as well stays.")


@operation("memory.tag", effect=Effect.MUTATE, scope="memory:write")
async def tag(ctx: Ctx, given: Tag) -> Marked:
    """Give memories tags, and take others away; what they say stays as it is."""

    async def body(tx: Tx) -> Changed[Marked]:
        bank, found = await chosen.these(tx, ctx, given.bank, given.ids)
        await banks.step(tx, ctx.org, bank.id)
        for memory in found:
            kept = [one for one in memory.tags if one not in given.remove or one in given.add]
            await browsing.tag(tx, memory, list(dict.fromkeys([*kept, *given.add])))
        ids = [memory.id for memory in found]
        now = await memories.fetched(tx, ctx.org, bank.id, ids)
        shown = await views.described(tx, bank, [now[id] for id in ids])
        return Changed(Marked(memories=shown), bank.id, ids, "\n".join([*given.add, "", *given.remove]))

    return await ctx.change(body)
