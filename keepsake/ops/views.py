"""Memories as everyone sees them."""

from keepsake.core import clock, models, slug
from keepsake.store import banks, sources
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory


def shown(memory: Memory, bank: str, document: str | None) -> models.Memory:
    """A memory as everyone sees it; it comes from our own rows, so it is not validated again."""
    return models.Memory.model_construct(
        id=str(memory.id),
        bank=bank,
        text=memory.text,
        title=memory.title,
        slug=slug.shown(memory.slug, memory.title or memory.text, memory.id),
        kind=memory.kind,
        type=memory.fact_type,  # type: ignore[arg-type]  # the column holds nothing but these three words
        category=memory.category,
        tags=list(memory.tags),
        metadata=dict(memory.metadata),
        document=document,
        happened_at=_moment(memory.event_at if memory.event_at is not None else memory.happened_from),
        speaks_from=_moment(memory.happened_from if memory.happened_to is not None else None),
        speaks_to=_moment(memory.happened_to),
        learned_at=clock.iso(memory.learned_at),
        superseded_at=_moment(memory.superseded_at),
        superseded_by=str(memory.superseded_by) if memory.superseded_by is not None else None,
        author=memory.author,
        trust=memory.trust,
        proof=memory.proof,
        pinned=bool(memory.pinned),
    )


def _moment(at: int | None) -> str | None:
    return None if at is None else clock.iso(at)


async def described(tx: Tx, bank: banks.Bank, rows: list[Memory]) -> list[models.Memory]:
    """Memories with the names of their documents."""
    wanted = sorted({row.source for row in rows if row.source is not None})
    keys = await sources.keys(tx, bank.org, bank.id, wanted) if wanted else {}
    return [shown(row, bank.name, keys.get(row.source or 0)) for row in rows]
