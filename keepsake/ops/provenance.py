"""Provenance: everything around one memory, from the words it came from to who has recalled it."""

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import clock, models
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.ops import chosen, handed_out, records, views
from keepsake.ops.records import Record
from keepsake.store import banks, browsing, conflicts, entities, memories, recalls, sessions, sources
from keepsake.store import records as stored
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory

#: Characters around the marked span, and of the span itself, that are shown.
AROUND, LONGEST = 240, 4_000
#: Entities, and people or clients who recalled it, that are named; memories that it rests on.
ENTITIES, RECALLERS, EVIDENCE = 30, 20, 20


class Quote(Result):
    """The words that a memory came from, among those around them."""

    before: str = Field(description="What stands before.")
    marked: str = Field(description="The exact span.")
    after: str = Field(description="What stands after.")
    first_line: int = Field(description="The line where the span begins, from 1.")
    last_line: int = Field(description="The line where it ends.")


class Source(Result):
    """Where a memory came from."""

    kind: str = Field(description="document, commit, pull, issue, file, artifact, session, …")
    key: str = Field(description="Its name: a document's id, a commit, a path.")
    uri: str = Field(description="Its address, where it has one.")
    revision: str = Field(description="Which state of it, where that is a commit.")
    at: str = Field(description="When it was taken in, ISO 8601.")
    is_current: bool = Field(description="Whether no newer revision has taken its place.")
    about: str = Field("", description="Of a session: its client and branch.")
    quote: Quote | None = Field(None, description="The span that the memory came from.")


class Entity(Result):
    """Who or what a memory names."""

    id: str = Field(description="Id of the entity.")
    name: str = Field(description="Its name.")
    kind: str = Field(description="person, file, name, …")


class Recaller(Result):
    """Someone who was handed a memory."""

    principal: str = Field(description="Who, by the name of the credential.")
    times: int = Field(description="How often.")
    last_at: str = Field(description="When last, ISO 8601.")
    score: float = Field(description="How well it answered then, 0 to 1; 0 where nothing was asked.")


class Provenance(Result):
    """All that is known around a memory."""

    record: Record = Field(description="The memory with all that is kept of it.")
    state: str = Field(description="live; rolled: its facts are memories of their own; merged: another says the same.")
    source: Source | None = Field(None, description="Where it came from; absent if it was just told.")
    parent: models.Memory | None = Field(None, description="The memory that it was taken out of.")
    parent_quote: Quote | None = Field(None, description="Its words in that memory.")
    evidence: list[models.Memory] = Field(description="Memories that it rests on.")
    later: list[models.Memory] = Field(description="What took its place since, newest first.")
    earlier: list[models.Memory] = Field(description="What it took the place of, newest first.")
    entities: list[Entity] = Field(description="Who and what it names.")
    against: list[models.Memory] = Field(description="Memories that it is in an open conflict with.")
    recalled: list[Recaller] = Field(description="Who was handed it, the last ones first.")


class OneOf(InBank):
    """Which memory."""

    id: chosen.MemoryId = Field(description="The id of the memory, or its readable name.")


@operation("memory.provenance", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: OneOf) -> Provenance:
    """Show one memory with its source and the exact words there, its history, who it names and who recalled it."""

    async def body(tx: Tx) -> Provenance:
        bank, found = await chosen.these(tx, ctx, given.bank, [given.id])
        return await _around(tx, ctx, bank, found[0])

    told = await ctx.read(body)
    await handed_out.noted(ctx.app)
    id = int(told.record.id)
    rows = await ctx.store.engine.volatile(lambda tx: recalls.of(tx, ctx.org, id, RECALLERS))
    handed_out.told(ctx, [told.record])
    return told.model_copy(update={"recalled": [_recaller(row) for row in rows]})


async def _around(tx: Tx, ctx: Ctx, bank: banks.Bank, memory: Memory) -> Provenance:
    origin = (await stored.origins(tx, ctx.org, [memory.id]))[memory.id]
    evidence = [id for id in origin.derived_from if id != memory.parent][:EVIDENCE]
    against = await conflicts.against(tx, ctx.org, bank.id, memory.id)
    wanted = [*evidence, *against, *([memory.parent] if memory.parent else [])]
    rows = await memories.fetched(tx, ctx.org, bank.id, wanted)
    shown = {int(one.id): one for one in await views.described(tx, bank, list(rows.values()))}
    parent = rows.get(memory.parent or 0)
    return Provenance(
        record=(await records.described(tx, bank, [memory]))[0],
        state=memory.state,
        source=await _source(tx, memory),
        parent=shown.get(memory.parent or 0),
        parent_quote=quoted(parent.text, memory.span) if parent else None,
        evidence=[shown[id] for id in evidence if id in shown],
        later=await views.described(tx, bank, await browsing.later(tx, memory)),
        earlier=await views.described(tx, bank, await browsing.earlier(tx, memory)),
        entities=await _named(tx, memory),
        against=[shown[id] for id in against if id in shown],
        recalled=[],
    )


async def _source(tx: Tx, memory: Memory) -> Source | None:
    if memory.source is None:
        return None
    if source := await sources.by_id(tx, memory.org, memory.bank, memory.source):
        return Source(
            kind=source.kind,
            key=source.key,
            uri=source.uri,
            revision=source.revision if source.revision != str(source.id) else "",
            at=clock.iso(source.created_at),
            is_current=source.replaced_by is None,
            quote=quoted(source.text, memory.span),
        )
    session = await sessions.by_id(tx, memory.org, memory.bank, memory.source)
    if session is None:
        return None
    about = ", ".join(part for part in (session.client, session.branch) if part)
    return Source(
        kind="session",
        key=session.key,
        uri="",
        revision="",
        at=clock.iso(session.started_at),
        is_current=True,
        about=about,
    )


def quoted(text: str, span: str) -> Quote | None:
    """The words of a span among those around them; nothing where the text does not reach that far."""
    start, _, end = span.partition(":")
    if not (start.isdecimal() and end.isdecimal() and int(start) < min(int(end), len(text))):
        return None
    first, last = int(start), min(int(end), len(text))
    return Quote(
        before=_cut_before(text[:first]),
        marked=text[first : min(last, first + LONGEST)] + ("…" if last - first > LONGEST else ""),
        after=_cut_after(text[last:]),
        first_line=text.count("\n", 0, first) + 1,
        last_line=text.count("\n", 0, last) + 1,
    )


def _cut_before(text: str) -> str:
    return text if len(text) <= AROUND else f"… {text[-AROUND:].partition(' ')[2]}"


def _cut_after(text: str) -> str:
    return text if len(text) <= AROUND else f"{text[:AROUND].rpartition(' ')[0]} …"


async def _named(tx: Tx, memory: Memory) -> list[Entity]:
    pairs = await entities.of_memories(memory.org, memory.bank, [memory.id], ENTITIES).of(tx)
    called = await entities.titled(memory.org, memory.bank, [entity for _, entity in pairs]).of(tx)
    return [Entity(id=str(id), name=one.name, kind=one.kind) for id, one in called.items()]


def _recaller(row: recalls.Recall) -> Recaller:
    return Recaller(principal=row.principal, times=row.times, last_at=clock.iso(row.last_at), score=row.score)
