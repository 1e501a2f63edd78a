"""How a decision or a milestone gets into the store: whole, never split, and found at once by its words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keepsake.context import Ctx
from keepsake.core import decision, text, words
from keepsake.core.errors import BadInput, Conflict
from keepsake.core.lazy import lazy
from keepsake.core.pack import KNOWLEDGE
from keepsake.ops import storing
from keepsake.store import banks, conflicts, embeddings, entities, jobs, memories, slugs, threads
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory

if TYPE_CHECKING:
    from keepsake.ops import forgetting, naming
else:
    forgetting = lazy("keepsake.ops.forgetting")
    naming = lazy("keepsake.ops.naming")

#: Characters of a title.
LONGEST_TITLE = 300
#: What a decision may take the place of.
REPLACEABLE = (*KNOWLEDGE, "note", "fact", "insight")


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to keep."""

    kind: str
    fact_type: str
    title: str
    text: str
    subtype: str = ""
    parts: dict[str, object] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    happened_at: int | None = None


def memory(ctx: Ctx, bank: banks.Bank, entry: Entry, seq: int) -> Memory:
    """An entry as a memory."""
    return Memory(
        org=ctx.org,
        bank=bank.id,
        id=ctx.store.new_id(),
        kind=entry.kind,
        fact_type=entry.fact_type,
        text=entry.text,
        learned_at=ctx.now,
        author=ctx.principal.name,
        text_hash=text.digest(entry.text),
        tokens=text.cost(entry.text),
        seq=seq,
        subtype=entry.subtype,
        title=entry.title,
        category=entry.kind,
        parts=entry.parts,
        tags=entry.tags,
        happened_from=entry.happened_at,
        event_at=entry.happened_at,
    )


async def is_forgotten(tx: Tx, ctx: Ctx, bank: banks.Bank, entry: Entry) -> bool:
    """Whether some of it was deleted on request before."""
    return await forgetting.left_of(tx, ctx, bank, entry.text) != entry.text


async def store(tx: Tx, ctx: Ctx, made: Memory, model: embeddings.Model) -> Memory:
    """Write it so that it is found at once; it stands in no thread, for it says all that belongs to it."""
    made = replace(made, slug=await slugs.fresh(tx, ctx.org, made.bank, made.title or made.text))
    made = await storing.store_at(tx, ctx.app, made, model, threads.Place(""))
    await entities.link(tx, ctx.store, ctx.org, made.bank, made.id, naming.named(made.text))
    await jobs.wanted(tx, ctx.store, ctx.org, made.bank, "embed", ctx.now)
    return made


async def supersede(tx: Tx, ctx: Ctx, made: Memory, old: Memory) -> list[int]:
    """Put what was decided before out of the way; it stays findable as of its time."""
    if old.kind not in REPLACEABLE:
        raise BadInput(f"{old.id} is a {old.kind}, which no decision takes the place of. Name an earlier decision.")
    if old.superseded_at is not None:
        by = f" by {old.superseded_by}" if old.superseded_by else ""
        raise Conflict(f"The decision {old.id} was superseded{by} before. Supersede the one that holds now.")
    gone = [old.id, *await memories.children(tx, ctx.org, made.bank, [old.id])]
    await memories.supersede(tx, ctx.org, made.bank, gone, made.id, ctx.now)
    for id in gone:
        await memories.relate(tx, ctx.org, made.bank, made.id, id, "supersedes")
    await conflicts.settle(tx, ctx.org, made.bank, gone, ctx.principal.name)
    return gone


def same(one: Memory, other: Memory) -> bool:
    """Whether recording one beside the other would tell nothing new."""
    at = other.event_at is None or one.event_at == other.event_at
    return at and one.subtype == other.subtype and one.parts == other.parts and set(other.tags) <= set(one.tags)


def reworded(old: Memory, new: Memory) -> Memory:
    """What corrects a decision or a milestone: as whole as the old one, with all that the new words do not speak of."""
    if old.kind not in (*KNOWLEDGE, "milestone"):
        return new
    first, _, rest = new.text.strip().partition("\n")
    said, parts = new.text, dict[str, object]()
    if old.kind == "milestone" and (description := rest.strip() or told(old.parts, "description")):
        said, parts = f"{first}\n{description}", {"description": description}
    elif "status" in old.parts:
        made = decision.reworded(new.text, old.title, old.parts)
        first, said, parts = made.title, made.told, made.parts
    return replace(
        new,
        title=words.line(first, LONGEST_TITLE),
        subtype=old.subtype,
        parts=parts,
        text=said,
        text_hash=text.digest(said),
        tokens=text.cost(said),
    )


def told(parts: Mapping[str, object], name: str) -> str:
    """A part that is a text; empty where there is none."""
    said = parts.get(name)
    return said if isinstance(said, str) else ""


def once(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags, each once, in their order."""
    return tuple(dict.fromkeys(tags))
