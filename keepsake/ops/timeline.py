"""The timeline: what happened before and after a memory, in its own bank."""

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import clock, ids
from keepsake.core.errors import NotFound
from keepsake.core.models import Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import handed_out
from keepsake.ops import records as record_ops
from keepsake.ops.records import MOST, Record
from keepsake.store import banks, memories, records
from keepsake.store.engine import Tx
from keepsake.store.records import Anchor


class Around(Given):
    """A memory, and how far to look from it."""

    id: Clean = Field(min_length=1, max_length=64, description="The id of the memory in the middle.")
    before: int = Field(5, ge=0, le=MOST, description="How many memories before it.")
    after: int = Field(5, ge=0, le=MOST, description="How many memories after it.")


class Entry(Result):
    """A memory and its place."""

    record: Record = Field(description="The memory.")
    position: int = Field(description="Negative before the memory in the middle, 0 for itself, positive after.")


class Timeline(Result):
    """Memories in the order in which they happened."""

    entries: list[Entry] = Field(description="Oldest first; summaries are left out.")


@operation("memory.timeline", effect=Effect.READ, scope="memory:read")
async def timeline(ctx: Ctx, given: Around) -> Timeline:
    """Show what happened before and after a memory, in its bank and in the order of time."""
    entries = await ctx.read(lambda tx: _entries(tx, ctx, given))
    handed_out.told(ctx, [entry.record for entry in entries])
    return Timeline.model_construct(entries=entries)


async def _entries(tx: Tx, ctx: Ctx, given: Around) -> list[Entry]:
    bank, middle = await _middle(tx, ctx, given.id)
    anchor = Anchor(ctx.org, bank.id, int(middle.id), clock.parse(middle.at))
    earlier = await records.before(tx, anchor, given.before) if given.before else []
    later = await records.after(tx, anchor, given.after) if given.after else []
    rows = await memories.fetched(tx, ctx.org, bank.id, [*earlier, *later])
    told = {int(one.id): one for one in await record_ops.described(tx, bank, list(rows.values()))}
    positions = {id: -n for n, id in enumerate(earlier, 1)} | {id: n for n, id in enumerate(later, 1)}
    placed = [(position, told[id]) for id, position in positions.items() if id in told] + [(0, middle)]
    return [
        Entry.model_construct(record=record, position=position)
        for position, record in sorted(placed, key=lambda one: one[0])
    ]


async def _middle(tx: Tx, ctx: Ctx, text: str) -> tuple[banks.Bank, Record]:
    """The memory in the middle; one that is out of reach is as unknown as none."""
    id = ids.parse(text)
    found = await record_ops.by_id(tx, ctx, [id]) if id else []
    bank = await banks.named(tx, ctx.org, found[0].bank) if found else None
    if bank is None:
        raise NotFound(f"No memory {text!r} within reach. Use search to find the id of one to look around.")
    return bank, found[0]
