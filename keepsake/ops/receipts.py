"""Receipts: the proof that every deletion leaves, made in one place."""

import json
from collections.abc import Mapping, Sequence

from keepsake.context import Ctx
from keepsake.core import clock
from keepsake.core.models import Receipt
from keepsake.store import receipts
from keepsake.store.engine import Tx


async def leave(
    tx: Tx, ctx: Ctx, bank: int, counts: Mapping[str, int], gone: Sequence[int | str], memories: Sequence[int] = ()
) -> Receipt:
    """Write the receipt of what has just gone: ids, counts and a keyed digest, never what it said."""
    row = receipts.Receipt(
        org=ctx.org,
        bank=bank,
        id=ctx.store.new_id(),
        at=ctx.now,
        principal=ctx.principal.name,
        operation=ctx.operation,
        memories=tuple(memories),
        counts=counts,
        digest=ctx.store.digest(json.dumps(list(gone))),
    )
    await receipts.insert(tx, row)
    return shown(row)


def shown(row: receipts.Receipt) -> Receipt:
    """A receipt as everyone sees it."""
    return Receipt(
        id=str(row.id),
        at=clock.iso(row.at),
        principal=row.principal,
        operation=row.operation,
        memories=row.counts.get("memories", 0),
        documents=row.counts.get("documents", 0),
        digest=row.digest,
    )
