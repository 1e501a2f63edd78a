"""A question to some kinds of memories: asked of all, and only where others are in the way of those kinds alone."""

from dataclasses import replace

from keepsake.context import Ctx
from keepsake.ops import banks as bank_ops
from keepsake.ops import retrieve
from keepsake.ops.retrieve import Hit, Question
from keepsake.store import browsing
from keepsake.store.engine import Tx
from keepsake.store.filters import Filter

#: How many more are looked for, for those of other kinds that will be among them.
MORE = 3


async def search_bank(ctx: Ctx, named: str | None, question: Question) -> list[Hit]:
    """Find the memories that best answer, best first.

    To narrow a search every memory of those kinds is listed first; of many, that costs more than the search.
    """
    is_open = question.kinds and not (question.types or question.tags or question.said)
    if not is_open or await _are_few(ctx, named, question):
        return await retrieve.search_bank(ctx, named, question)
    most = question.most or retrieve.EFFORT[question.budget][1]
    found = await retrieve.search_bank(ctx, named, replace(question, kinds=(), most=MORE * most))
    kept = [hit for hit in found if hit.memory.kind in question.kinds]
    if len(kept) < most and len(kept) < len(found):
        return await retrieve.search_bank(ctx, named, question)
    return kept[:most]


async def _are_few(ctx: Ctx, named: str | None, question: Question) -> bool:
    async def body(tx: Tx) -> bool:
        bank = await bank_ops.found(tx, ctx, named)
        return bank is None or await browsing.are_few(tx, Filter(ctx.org, bank.id, question.at, kinds=question.kinds))

    return await ctx.read(body)
