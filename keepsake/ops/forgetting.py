"""Forgetting: what goes with a memory when it is purged, and the receipt that stays."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keepsake.context import Ctx
from keepsake.core import text
from keepsake.core.lazy import lazy
from keepsake.core.models import Receipt
from keepsake.ops import receipts, storing
from keepsake.store import (
    artifact_traces,
    artifacts,
    banks,
    chats,
    conflicts,
    entities,
    insights,
    invocations,
    jobs,
    memories,
    mental_models,
    relations,
    search,
    sessions,
    sources,
    suppressions,
    threads,
)
from keepsake.store.artifact_traces import Falling
from keepsake.store.engine import Tx

if TYPE_CHECKING:
    from keepsake.core import facts
else:
    facts = lazy("keepsake.core.facts")

#: Rows removed by one statement.
BATCH = 500


async def suppress(tx: Tx, ctx: Ctx, bank: banks.Bank, ids: Sequence[int]) -> None:
    """See to it that what is about to be forgotten is not stored again by itself."""
    told = await memories.wordings(tx, ctx.org, bank.id, ids)
    for memory in (await memories.fetched(tx, ctx.org, bank.id, told)).values():
        hashes = {memory.text_hash}
        if memory.kind == artifacts.KIND:
            # The next version may say the same among other sentences.
            hashes |= {text.digest(one) for one in artifact_traces.sentences([memory.text])}
        await suppressions.add(tx, ctx.org, bank.id, [ctx.store.digest(hash) for hash in sorted(hashes)], ctx.now)


async def left_of(tx: Tx, ctx: Ctx, bank: banks.Bank, told: str) -> str:
    """A text with blanks where it says what was forgotten; empty when it says nothing else."""
    if not await suppressions.exist(tx, ctx.org, bank.id):
        return told
    spans = [facts.Span(0, len(told)), *facts.split(told)]
    digests = [ctx.store.digest(text.digest(told[span.start : span.end])) for span in spans]
    gone = await suppressions.among(tx, ctx.org, bank.id, digests)
    for span, digest in zip(spans, digests, strict=True):
        if digest in gone:
            told = told[: span.start] + " " * (span.end - span.start) + told[span.end :]
    return told if told.strip() else ""


async def reach(tx: Tx, ctx: Ctx, bank: banks.Bank, ids: Sequence[int]) -> tuple[list[int], Falling]:
    """All memories that go when some are forgotten: these and what tells the same or rests on them; and artifacts."""
    ids = sorted({*ids, *await memories.children(tx, ctx.org, bank.id, ids)})
    ids = await memories.wordings(tx, ctx.org, bank.id, ids)
    falling = await artifact_traces.falling(tx, ctx.org, bank.id, ids)
    ids = sorted({*ids, *falling.memories})
    ids = sorted({*ids, *await insights.resting_on(tx, ctx.org, bank.id, ids)})
    return sorted({*ids, *await sessions.telling_of(tx, ctx.org, bank.id, ids)}), falling


async def forget(tx: Tx, ctx: Ctx, bank: banks.Bank, ids: Sequence[int], documents: int = 0) -> Receipt:
    """Remove memories with their index rows, vectors, links and source text, and leave a receipt."""
    ids, falling = await reach(tx, ctx, bank, ids)
    await artifact_traces.blank(tx, ctx.org, bank.id, falling)
    # First, so that no text is blanked piece by piece that goes as a whole.
    await drop_artifacts(tx, ctx, bank, falling.artifacts)
    await mental_models.forgotten(tx, ctx.store, ctx.org, bank.id, ids, ctx.now)
    touched: set[int] = set()
    for start in range(0, len(ids), BATCH):
        batch = list(ids[start : start + BATCH])
        await _blank(tx, ctx, bank, batch)
        touched |= set(await threads.close_gap(tx, ctx.org, bank.id, batch))
        await search.remove(tx, ctx.org, bank.id, batch)
        await entities.forget(tx, ctx.org, bank.id, batch)
        await conflicts.forget(tx, ctx.org, bank.id, batch)
        await relations.forget(tx, ctx.org, bank.id, batch)
        await chats.forget(tx, ctx.org, bank.id, batch)
        await memories.delete(tx, ctx.org, bank.id, batch)
    seq = await banks.purged(tx, ctx.org, bank.id)
    await storing.remake(tx, ctx.app, ctx.org, bank.id, sorted(touched.difference(ids)), seq)
    await jobs.wanted(tx, ctx.store, ctx.org, bank.id, "embed", ctx.now)
    counts = {"memories": len(ids), "documents": documents}
    return await receipts.leave(tx, ctx, bank.id, counts, ids, ids)


async def drop_artifacts(tx: Tx, ctx: Ctx, bank: banks.Bank, ids: Sequence[int]) -> None:
    """Remove artifacts whose memories go, with every version and every relation."""
    if ids:
        await artifacts.delete(tx, ctx.org, bank.id, ids)
        await relations.forget(tx, ctx.org, bank.id, ids)


async def _blank(tx: Tx, ctx: Ctx, bank: banks.Bank, ids: Sequence[int]) -> None:
    """Put blanks where these memories stood in what they were told by."""
    for memory in (await memories.fetched(tx, ctx.org, bank.id, ids)).values():
        if memory.source is not None:
            await sources.blank(tx, ctx.org, bank.id, memory.source, memory.span)
        if memory.kind == "observation" and memory.category == invocations.CATEGORY:
            await invocations.forget(tx, ctx.org, bank.id, str(memory.metadata.get("invocation")))
        if memory.parent is not None:
            await memories.blank(tx, ctx.org, bank.id, memory.parent, memory.span)
