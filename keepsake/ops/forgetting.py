"""Forgetting: what goes with a memory when it is purged, and the receipt that stays."""

import json
from collections.abc import Sequence

from keepsake.context import Ctx
from keepsake.core import clock
from keepsake.core.models import Receipt
from keepsake.store import banks, memories, receipts, search, sources, suppressions
from keepsake.store.engine import Tx

#: Rows removed by one statement.
BATCH = 500


async def suppress(tx: Tx, ctx: Ctx, bank: banks.Bank, ids: Sequence[int]) -> None:
    """See to it that what is about to be forgotten is not stored again by itself."""
    for memory in (await memories.fetched(tx, ctx.org, bank.id, ids)).values():
        await suppressions.add(tx, ctx.org, bank.id, ctx.store.digest(memory.text_hash), ctx.now)


async def forget(tx: Tx, ctx: Ctx, bank: banks.Bank, ids: Sequence[int], documents: int = 0) -> Receipt:
    """Remove memories with their index rows, vectors, links and source text, and leave a receipt."""
    for start in range(0, len(ids), BATCH):
        batch = list(ids[start : start + BATCH])
        for memory in (await memories.fetched(tx, ctx.org, bank.id, batch)).values():
            if memory.source is not None:
                await sources.blank(tx, ctx.org, bank.id, memory.source, memory.span)
        await search.remove(tx, ctx.org, bank.id, batch)
        await memories.delete(tx, ctx.org, bank.id, batch)
    await banks.purged(tx, ctx.org, bank.id)
    digest = ctx.store.digest(json.dumps(sorted(ids)))
    row = receipts.Receipt(
        org=ctx.org,
        bank=bank.id,
        id=ctx.store.new_id(),
        at=ctx.now,
        principal=ctx.principal.name,
        operation=ctx.operation,
        memories=tuple(ids),
        counts={"memories": len(ids), "documents": documents},
        digest=digest,
    )
    await receipts.insert(tx, row)
    return Receipt(
        id=str(row.id),
        at=clock.iso(row.at),
        principal=row.principal,
        operation=row.operation,
        memories=len(ids),
        documents=documents,
        digest=digest,
    )
