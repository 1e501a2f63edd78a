"""The memories that someone chose by their ids."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core.errors import NotFound
from keepsake.core.models import InBank
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.store import banks, memories, slugs
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory

#: Memories that are chosen at once.
MOST = 100
MemoryId = Annotated[Clean, Field(min_length=1, max_length=200)]


class Chosen(InBank):
    """Which memories."""

    ids: list[MemoryId] = Field(min_length=1, max_length=MOST, description="Ids of the memories, or readable names.")


async def these(tx: Tx, ctx: Ctx, named: str | None, told: Sequence[str]) -> tuple[banks.Bank, list[Memory]]:
    """The memories meant, each once and in the order given; one that is not there stops it all."""
    bank = await bank_ops.found(tx, ctx, named)
    meant = {one: await slugs.meant(tx, ctx.org, bank.id, one) if bank else None for one in dict.fromkeys(told)}
    ids = list(dict.fromkeys(id for id in meant.values() if id is not None))
    rows = await memories.fetched(tx, ctx.org, bank.id, ids) if bank else {}
    missing = [one for one, id in meant.items() if id not in rows]
    if bank is None or missing:
        raise NotFound(f"No memory {(missing or list(told))[0]!r} in this bank. Use recall or list to find its id.")
    return bank, [rows[id] for id in ids]
