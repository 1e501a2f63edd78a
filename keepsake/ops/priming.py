"""What a session begins with: where it is and what is known, a topic to start on, a note to be saved."""

from collections import Counter
from typing import get_args

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import models
from keepsake.core.models import InBank, Kind, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Filled
from keepsake.ops import banks as bank_ops
from keepsake.ops import binding, brief, decisions, handed_out, retrieve, views
from keepsake.ops.brief import Brief
from keepsake.ops.decisions import Decision
from keepsake.store import banks, entities, memories
from keepsake.store.engine import Tx
from keepsake.store.filters import Filter

#: Tokens of a brief at the beginning of a session; decisions, memories, entities and names that are shown.
ROOM, DECISIONS, MEMORIES, ENTITIES, NAMES = 600, 5, 8, 12, 12
#: Memories that are near a topic, of which the best and the newest are shown.
NEAR = 40
#: Pairs of memory and entity that are looked at.
PAIRS = 200


class Primed(Result):
    """Where a session is, and what is known there."""

    bound: binding.Bound = Field(description="The workspace, its project, and the tier of this credential.")
    memories: dict[str, int] = Field(description="How many memories hold now, by fact type.")
    brief: Brief = Field(description="How the project stands.")


@operation("session.prime", effect=Effect.READ, scope="memory:read")
async def prime(ctx: Ctx, given: InBank) -> Primed:
    """Tell what a session should know as it begins: where it is, what it can do there, and how the project stands."""

    async def counted(tx: Tx) -> dict[str, int]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        return await memories.counts(tx, ctx.org, bank.id, ctx.now) if bank else {}

    return Primed(
        bound=await binding.bind(ctx, binding.Bind()),
        memories=await ctx.read(counted),
        brief=await brief.get(ctx, brief.GetBrief(bank=given.bank, max_tokens=ROOM)),
    )


class Briefed(Result):
    """How a project stands, and what was decided last."""

    brief: Brief = Field(description="How the project stands.")
    decisions: list[Decision] = Field(description="The latest decisions in full.")


@operation("session.brief", effect=Effect.READ, scope="memory:read")
async def briefed(ctx: Ctx, given: InBank) -> Briefed:
    """Tell how the project stands, with its five latest decisions in full."""
    latest = await decisions.list_(ctx, decisions.ListDecisions(bank=given.bank, limit=DECISIONS))
    return Briefed(brief=await brief.get(ctx, brief.GetBrief(bank=given.bank)), decisions=latest.decisions)


class Onboard(InBank):
    """What to begin with."""

    topic: Filled = Field(max_length=1_000, description="What you are about to work on.")


class Entity(Result):
    """Who or what memories speak of."""

    name: str = Field(description="Its name.")
    kind: str = Field(description="person, file, name, …")


class Onboarded(Result):
    """What is known of a topic."""

    topic: str = Field(description="The topic.")
    memories: list[models.Memory] = Field(description="What answers it best.")
    entities: list[Entity] = Field(description="Who and what these speak of, the most named first.")
    recent: list[models.Memory] = Field(description="What was learned last about the same.")


@operation("session.onboard", effect=Effect.READ, scope="memory:read")
async def onboard(ctx: Ctx, given: Onboard) -> Onboarded:
    """Gather what is known of a topic: the memories that answer it best, who and what they name, what came last."""
    question = retrieve.Question(given.topic, ctx.now, most=NEAR)
    near = [hit.memory for hit in await retrieve.search_bank(ctx, given.bank, question)]
    found = near[:MEMORIES]

    async def body(tx: Tx) -> tuple[list[Entity], list[models.Memory]]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        return await _around(tx, ctx, bank, [int(one.id) for one in near]) if bank and near else ([], [])

    named, recent = await ctx.read(body)
    handed_out.told(ctx, [*found, *recent])
    return Onboarded(topic=given.topic, memories=found, entities=named, recent=recent)


async def _around(tx: Tx, ctx: Ctx, bank: banks.Bank, near: list[int]) -> tuple[list[Entity], list[models.Memory]]:
    """Who and what the best memories name, and the newest others that are near or name the same."""
    found = near[:MEMORIES]
    pairs = await entities.of_memories(ctx.org, bank.id, found, PAIRS).of(tx)
    often = [id for id, _ in Counter(entity for _, entity in pairs).most_common(ENTITIES)]
    called = await entities.titled(ctx.org, bank.id, often).of(tx)
    others = await entities.with_entities(ctx.org, bank.id, often, PAIRS).of(tx) if often else []
    newest = sorted({*near, *(memory for memory, _ in others)}.difference(found), reverse=True)[:MEMORIES]
    rows = await memories.fetched(tx, ctx.org, bank.id, newest)
    shown = await views.described(tx, bank, [rows[id] for id in newest if id in rows])
    return [Entity(name=called[id].name, kind=called[id].kind) for id in often if id in called], shown


class SaveThis(InBank):
    """What is to be saved."""

    note: Filled = Field(max_length=20_000, description="What to remember.")


class Form(Result):
    """A note, and what it may be linked to."""

    note: str = Field(description="The note.")
    recent: list[models.Memory] = Field(description="What was saved last, by whose names it may be linked.")


@operation("session.form", effect=Effect.READ, scope="memory:read")
async def form(ctx: Ctx, given: SaveThis) -> Form:
    """Lay out a note to be saved, with the names of recent memories that it may be linked to."""

    async def body(tx: Tx) -> list[models.Memory]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return []
        rows = await memories.newest(tx, _told(ctx, bank), NAMES)
        return await views.described(tx, bank, rows)

    return Form(note=given.note, recent=await ctx.read(body))


def _told(ctx: Ctx, bank: banks.Bank) -> Filter:
    """What stands for itself: artifacts have addresses of their own, and pieces of a repository are legion."""
    kinds = tuple(kind for kind in get_args(Kind) if kind not in ("artifact", "chunk"))
    return Filter(ctx.org, bank.id, ctx.now, kinds=kinds)


class Recent(InBank):
    """Which page of the newest."""

    limit: int = Field(50, ge=1, le=200, description="Maximum number of results.")
    offset: int = Field(0, ge=0, le=10_000, description="Number of results to skip.")


class Newest(Result):
    """Memories, newest first."""

    memories: list[models.Memory] = Field(description="Newest first.")


@operation("memory.newest", effect=Effect.READ, scope="memory:read")
async def newest(ctx: Ctx, given: Recent) -> Newest:
    """Show the newest memories by name, without counting them all."""

    async def body(tx: Tx) -> list[models.Memory]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return []
        rows = await memories.newest(tx, _told(ctx, bank), given.limit, given.offset)
        return await views.described(tx, bank, rows)

    return Newest(memories=await ctx.read(body))
