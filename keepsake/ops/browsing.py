"""Browsing: what a bank holds, page by page, narrowed by what memories are and where they came from."""

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import clock, ids, models
from keepsake.core.errors import BadInput
from keepsake.core.models import FactType, InBank, Kind, Moment, Result, SourceKind, Tags, Trust
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.ops import handed_out, views
from keepsake.store import browsing
from keepsake.store.browsing import Stretch
from keepsake.store.engine import Tx
from keepsake.store.filters import Filter


class Browse(InBank):
    """Which memories, from where on."""

    kinds: list[Kind] = Field(default_factory=list, max_length=20, description="Only these kinds of memory.")
    types: list[FactType] = Field(default_factory=list, max_length=3, description="Only these fact types.")
    tags: Tags = Field(default_factory=list, description="Only memories with one of these tags.")
    sources: list[SourceKind] = Field(default_factory=list, max_length=20, description="Only what came from these.")
    trust: list[Trust] = Field(default_factory=list, max_length=3, description="Only what is trusted so far.")
    since: Moment | None = Field(None, description="Only what happened, or was learned, from then on, ISO 8601.")
    until: Moment | None = Field(None, description="Only what happened, or was learned, before then, ISO 8601.")
    as_of: Moment | None = Field(None, description="As the bank knew it at this time, ISO 8601.")
    superseded: bool = Field(False, description="Show what was superseded, too.")
    before: Clean | None = Field(None, max_length=16, description="Id of the last memory of the page before.")
    limit: int = Field(50, ge=1, le=200, description="Maximum number of results.")


class Browsed(Result):
    """A page of memories, newest first."""

    memories: list[models.Memory] = Field(description="Newest first.")
    earlier: str | None = Field(
        None, description="What to give as `before` to go on, where there may be more; a page may be short before that."
    )


@operation("memory.browse", effect=Effect.READ, scope="memory:read")
async def browse(ctx: Ctx, given: Browse) -> Browsed:
    """Look through stored memories, newest first, by kind, type, tag, time, source and trust, page by page."""
    before = ids.LARGEST + 1 if given.before is None else ids.parse(given.before)
    if before is None:
        raise BadInput("`before`: not the id of a memory. Give the `earlier` of the page before, or leave it out.")

    async def body(tx: Tx) -> tuple[list[models.Memory], int | None]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return [], None
        found = await browsing.page(tx, _filter(ctx, bank.id, given), Stretch(before, given.limit + 1))
        return await views.described(tx, bank, found.memories), found.reached

    found, reached = await ctx.read(body)
    page = found[: given.limit]
    handed_out.told(ctx, page)
    earlier = page[-1].id if found[given.limit :] else None if reached is None else str(reached)
    return Browsed.model_construct(memories=page, earlier=earlier)


def _filter(ctx: Ctx, bank: int, given: Browse) -> Filter:
    return Filter(
        ctx.org,
        bank,
        clock.parse(given.as_of) if given.as_of else ctx.now,
        types=tuple(given.types),
        tags=tuple(given.tags),
        kinds=tuple(given.kinds),
        said=clock.stretch(given.since, given.until),
        sources=tuple(given.sources),
        trust=tuple(given.trust),
        with_past=given.superseded,
        is_now=not given.as_of,
    )
