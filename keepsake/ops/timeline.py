"""The timeline: what happened before and after a memory, or a moment, in one bank."""

from dataclasses import replace

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import clock, ids
from keepsake.core.errors import BadInput, NotFound
from keepsake.core.models import Kind, Moment, Result, Somewhere
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.ops import handed_out
from keepsake.ops import records as record_ops
from keepsake.ops.records import MOST, Record
from keepsake.store import banks, memories, records
from keepsake.store.engine import Tx
from keepsake.store.records import Anchor


class Around(Somewhere):
    """A memory or a moment, and how far to look from it."""

    id: Clean | None = Field(None, min_length=1, max_length=64, description="The id of the memory in the middle.")
    at: Moment | None = Field(None, description="The moment in the middle instead, ISO 8601.")
    before: int = Field(5, ge=0, le=MOST, description="How many memories before it.")
    after: int = Field(5, ge=0, le=MOST, description="How many memories after it.")
    kinds: list[Kind] = Field(default_factory=list, max_length=20, description="Only memories of these kinds.")


class Entry(Result):
    """A memory and its place."""

    record: Record = Field(description="The memory.")
    position: int = Field(description="Negative before the middle, 0 for the memory that is it, positive after.")


class Timeline(Result):
    """Memories in the order in which they happened."""

    entries: list[Entry] = Field(description="Oldest first; summaries are left out.")


@operation("memory.timeline", effect=Effect.READ, scope="memory:read")
async def timeline(ctx: Ctx, given: Around) -> Timeline:
    """Show what happened before and after a memory or a moment, in one bank and in the order of time."""
    if (given.id is None) == (given.at is None):
        raise BadInput("Give `id` for what happened around a memory, or `at` for around a moment; one of them.")
    entries = await ctx.read(lambda tx: _entries(tx, ctx, given))
    handed_out.told(ctx, [entry.record for entry in entries])
    return Timeline.model_construct(entries=entries)


async def _entries(tx: Tx, ctx: Ctx, given: Around) -> list[Entry]:
    middle = await _middle(tx, ctx, given)
    if middle is None:
        return []
    anchor, own = replace(middle[0], kinds=tuple(given.kinds)), middle[1]
    bank = await banks.of_id(tx, ctx.org, anchor.bank)
    assert bank is not None
    earlier = await records.before(tx, anchor, given.before) if given.before else []
    later = await records.after(tx, anchor, given.after) if given.after else []
    rows = await memories.fetched(tx, ctx.org, bank.id, [*earlier, *later])
    told = {int(one.id): one for one in await record_ops.described(tx, bank, list(rows.values()))}
    positions = {id: -n for n, id in enumerate(earlier, 1)} | {id: n for n, id in enumerate(later, 1)}
    placed = [(position, told[id]) for id, position in positions.items() if id in told] + [(0, one) for one in own]
    return [
        Entry.model_construct(record=record, position=position)
        for position, record in sorted(placed, key=lambda one: one[0])
    ]


async def _middle(tx: Tx, ctx: Ctx, given: Around) -> tuple[Anchor, list[Record]] | None:
    """The middle, and the memory that is it; one that is out of reach is as unknown as none."""
    if given.at is not None:
        bank = await bank_ops.found(tx, ctx, given.bank)
        # Before every memory of that very moment, so that these come after.
        return (Anchor(ctx.org, bank.id, 0, clock.parse(given.at)), []) if bank else None
    id = ids.parse(given.id or "")
    looking = ctx if given.bank is None else replace(ctx, bank=bank_ops.wanted(ctx, given.bank)[0])
    found = await record_ops.by_id(tx, looking, [id]) if id else []
    bank = await banks.named(tx, ctx.org, found[0].bank) if found else None
    if bank is None:
        raise NotFound(f"No memory {given.id!r} within reach.", "memory.recall")
    return Anchor(ctx.org, bank.id, int(found[0].id), clock.parse(found[0].at)), found
