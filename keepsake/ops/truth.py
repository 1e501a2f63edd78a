"""Truth over time: what is told twice merges, what is newer takes the place of what it contradicts."""

import heapq
from typing import TYPE_CHECKING

from pydantic import Field

from keepsake.context import App, Changed, Ctx
from keepsake.core import clock, errors, models
from keepsake.core import ids as all_ids
from keepsake.core import text as texts
from keepsake.core.lazy import lazy
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Filled
from keepsake.ops import banks as bank_ops
from keepsake.ops import chosen, storing, tracking, views
from keepsake.store import banks, conflicts, entities, jobs, memories, relations, search
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory

if TYPE_CHECKING:
    from keepsake.core import truth
    from keepsake.ops import naming
else:
    naming = lazy("keepsake.ops.naming")
    truth = lazy("keepsake.core.truth")

#: How many of the memories that share most words with a new one are compared with it.
COMPARED = 5


async def settle(tx: Tx, app: App, fact: Memory) -> None:
    """Compare a new fact with what is known, and let the newer truth stand."""
    for older in await _alike(tx, fact):
        likeness = _likeness(app, older.text, fact.text)
        verdict = truth.verdict(older.text, fact.text, likeness)
        if verdict == "same" and _of_one_kind(older, fact):
            await memories.confirm(tx, fact.org, fact.bank, older.id)
            await memories.relate(tx, fact.org, fact.bank, fact.id, older.id, "near_duplicate")
            await storing.hide(tx, fact, "merged")
            return
        if verdict == "contradicts":
            # Old talk that is brought in later is not the newer truth.
            new, old = (older, fact) if older.said_at > fact.said_at else (fact, older)
            await memories.supersede(tx, fact.org, fact.bank, [old.id], new.id, fact.learned_at)
            await memories.relate(tx, fact.org, fact.bank, new.id, old.id, "supersedes")
        elif verdict == "unclear":
            found = conflicts.Conflict(app.store.new_id(), older.id, fact.id, "may contradict", app.now())
            await conflicts.insert(tx, fact.org, fact.bank, found)


def _of_one_kind(older: Memory, fact: Memory) -> bool:
    """Whether merging two memories loses nothing: neither rests on a source, and both are filed alike."""
    is_loose = older.source is None and fact.source is None
    return is_loose and older.tags == fact.tags and older.category == fact.category


async def _alike(tx: Tx, fact: Memory) -> list[Memory]:
    """The older memories that share most words with a fact."""
    stems = texts.asked(fact.text)[:24]
    known = await search.corpus(tx, fact.org, fact.bank, stems)
    scores = await search.candidates(tx, search.Asked(fact.org, fact.bank, stems, known))
    best = heapq.nlargest(COMPARED + 1, scores, key=lambda id: scores[id].own)
    rows = await memories.fetched(tx, fact.org, fact.bank, [id for id in best if id != fact.id])
    older = [row for row in rows.values() if row.learned_at <= fact.learned_at and row.superseded_at is None]
    return [row for row in older if row.state == "live" and row.parent != (fact.parent or 0)]


def _likeness(app: App, older: str, newer: str) -> float:
    """How alike two texts are: in meaning, by the quick model, or in the words they are made of."""
    model = app.embedding.known["static"]
    cosine = float(app.embedding.at_once(older) @ app.embedding.at_once(newer))
    one, other = set(texts.words(older)), set(texts.words(newer))
    shared = len(one & other) / max(1, len(one | other))
    return min(1.0, max(shared, (cosine - model.zero) / (model.one - model.zero)))


class ListConflicts(InBank):
    """Which conflicts."""

    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results.")


class Conflict(Result):
    """Two memories that cannot both hold."""

    id: str = Field(description="Id of the conflict.")
    older: models.Memory = Field(description="What was told first.")
    newer: models.Memory = Field(description="What was told later.")
    why: str = Field(description="What made it doubtful.")
    found_at: str = Field(description="When it was found, ISO 8601.")


class Conflicts(Result):
    """Open conflicts, newest first."""

    conflicts: list[Conflict] = Field(description="Newest first.")


@operation("memory.conflicts", effect=Effect.READ, scope="memory:read")
async def list_(ctx: Ctx, given: ListConflicts) -> Conflicts:
    """List pairs of memories that may contradict each other; `memory.correct` settles them."""

    async def body(tx: Tx) -> Conflicts:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return Conflicts(conflicts=[])
        rows = await conflicts.listed(tx, ctx.org, bank.id, given.limit)
        ids = [id for row in rows for id in (row.older, row.newer)]
        held = await memories.fetched(tx, ctx.org, bank.id, ids)
        shown = {memory.id: memory for memory in await views.described(tx, bank, list(held.values()))}
        return Conflicts(
            conflicts=[
                Conflict(
                    id=str(row.id),
                    older=shown[str(row.older)],
                    newer=shown[str(row.newer)],
                    why=row.why,
                    found_at=clock.iso(row.created_at),
                )
                for row in rows
                if row.older in held and row.newer in held
            ]
        )

    return await ctx.read(body)


class Correct(InBank):
    """What is wrong, and what is right."""

    id: str = Field(min_length=1, max_length=64, description="Id of the memory that is wrong or outdated.")
    content: Filled = Field(
        max_length=100_000,
        description="What holds instead. A decision keeps its reasons, unless lines `Why: …`, `Considered: …` differ.",
    )
    also: list[chosen.MemoryId] = Field(
        default_factory=list, max_length=chosen.MOST, description="Other memories that it takes the place of, too."
    )
    if_current: bool = Field(False, description="Refuse where something else has taken its place already.")


@operation("memory.correct", effect=Effect.MUTATE, scope="memory:write")
async def correct(ctx: Ctx, given: Correct) -> models.Memory:
    """Replace a wrong or outdated memory; the old one stays findable as of its time."""
    model = await ctx.app.embedding.static_model(ctx.store)

    async def body(tx: Tx) -> Changed[models.Memory]:
        bank, old = await _known(tx, ctx, given)
        if given.if_current and old.superseded_at is not None:
            raise errors.Conflict(
                "Someone else has changed this memory since. Look at what holds now, then correct that."
            )
        seq = await banks.step(tx, ctx.org, bank.id)
        new = Memory(
            org=ctx.org,
            bank=bank.id,
            id=ctx.store.new_id(),
            kind=old.kind if old.kind != "note" else "fact",
            fact_type=old.fact_type,
            text=given.content,
            learned_at=ctx.now,
            author=ctx.principal.name,
            text_hash=texts.digest(given.content),
            tokens=texts.cost(given.content),
            seq=seq,
            title=old.title,
            category=old.category,
            tags=old.tags,
            metadata=old.metadata,
            happened_from=old.happened_from,
            happened_to=old.happened_to,
            event_at=old.event_at,
            trust=old.trust,
            pinned=old.pinned,
        )
        new = await storing.store(tx, ctx.app, tracking.reworded(old, new), model)
        await entities.link(tx, ctx.store, ctx.org, bank.id, new.id, naming.named(new.text))
        others = (await chosen.these(tx, ctx, given.bank, given.also))[1] if given.also else []
        told = [old.id, *(one.id for one in others), *await _outdone(tx, ctx, old, new)]
        wrong = list(dict.fromkeys(told))
        await memories.supersede(tx, ctx.org, bank.id, wrong, new.id, ctx.now)
        for one in (old, *others):
            # It is the same thing in other words, so whatever was related to it still is.
            await relations.carry(tx, ctx.org, bank.id, one.id, new.id)
        for id in wrong:
            await memories.relate(tx, ctx.org, bank.id, new.id, id, "supersedes")
        await conflicts.settle(tx, ctx.org, bank.id, wrong, ctx.principal.name)
        await jobs.wanted(tx, ctx.store, ctx.org, bank.id, "embed", ctx.now)
        return Changed(views.shown(new, bank.name, None), bank.id, [*wrong, new.id], new.text)

    return await ctx.change(body)


async def _outdone(tx: Tx, ctx: Ctx, old: Memory, new: Memory) -> list[int]:
    """What stood against the corrected memory, where the correction says the same or speaks against it, too."""
    others = await conflicts.against(tx, old.org, old.bank, old.id)
    held = await memories.fetched(tx, old.org, old.bank, others)
    return [
        other.id
        for other in held.values()
        if truth.verdict(other.text, new.text, _likeness(ctx.app, other.text, new.text)) != "other"
    ]


async def _known(tx: Tx, ctx: Ctx, given: Correct) -> tuple[banks.Bank, Memory]:
    bank = await bank_ops.found(tx, ctx, given.bank)
    id = all_ids.parse(given.id)
    rows = await memories.fetched(tx, ctx.org, bank.id, [id]) if bank and id else {}
    if bank is None or not rows:
        raise errors.NotFound(f"No memory {given.id!r} in this bank.", "memory.list", "memory.recall")
    return bank, next(iter(rows.values()))
