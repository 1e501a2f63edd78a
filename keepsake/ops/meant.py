"""What someone means by an id, a slug or a name: a memory, an artifact or an entity of one bank."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepsake.context import Ctx
from keepsake.core import ids, slug
from keepsake.core.errors import NotFound
from keepsake.core.lazy import lazy
from keepsake.core.words import line
from keepsake.store import banks, entities, memories, slugs
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory
from keepsake.store.relations import Place

if TYPE_CHECKING:
    from keepsake.core import names
    from keepsake.store import artifacts
else:
    artifacts = lazy("keepsake.store.artifacts")
    names = lazy("keepsake.core.names")

#: Characters of a name that an error repeats.
SHOWN = 80


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that a relation can begin or end at."""

    place: Place
    id: int


async def memory(tx: Tx, ctx: Ctx, bank: banks.Bank, said: str) -> Memory | None:
    """The memory with an id or a slug; one of another bank is as unknown as none."""
    id = ids.parse(said) or await slugs.named(tx, ctx.org, bank.id, said) or ids.parse(slug.id_in(said))
    found = await memories.fetched(tx, ctx.org, bank.id, [id]) if id else {}
    return next(iter(found.values()), None)


async def decision(tx: Tx, ctx: Ctx, bank: banks.Bank, said: str) -> Memory:
    """The memory that someone names as an earlier decision."""
    found = await memory(tx, ctx, bank, said)
    if found is None:
        raise NotFound(f"No decision {line(said, SHOWN)!r} in this bank. List the decisions to find its id.")
    return found


async def thing(tx: Tx, ctx: Ctx, bank: banks.Bank, said: str) -> Thing:
    """A memory by id or slug, an artifact by id or identifier, or an entity by id or name."""
    if found := await memory(tx, ctx, bank, said):
        return Thing("memory", found.id)
    if id := await _artifact(tx, ctx, bank, said):
        return Thing("artifact", id)
    if id := await _entity(tx, ctx, bank, said):
        return Thing("entity", id)
    raise NotFound(
        f"Nothing is called {line(said, SHOWN)!r} in this bank. Name a memory, decision, milestone, artifact or entity"
        " by its id, slug or name; search for it, or record it first."
    )


async def _artifact(tx: Tx, ctx: Ctx, bank: banks.Bank, said: str) -> int | None:
    id = ids.parse(said)
    found = await artifacts.get(tx, ctx.org, bank.id, id) if id else None
    found = found or await artifacts.named(tx, ctx.org, bank.id, said)
    return found.id if found else None


async def _entity(tx: Tx, ctx: Ctx, bank: banks.Bank, said: str) -> int | None:
    id = ids.parse(said)
    if id is not None:
        known = await entities.titled(ctx.org, bank.id, [id]).of(tx)
        return id if id in known else None
    meant = await entities.meant(ctx.org, bank.id, [names.folded(said)]).of(tx)
    return meant[0].id if meant else None
