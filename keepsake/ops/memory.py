"""Memories: retain, recall, list, get, forget, clear."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import clock, echo, models, text
from keepsake.core.errors import NotFound
from keepsake.core.lazy import lazy
from keepsake.core.models import (
    BankName,
    Budget,
    FactType,
    InBank,
    Kind,
    Moment,
    Receipt,
    Result,
    SourceKind,
    Tags,
    Trust,
)
from keepsake.core.operation import Effect, operation
from keepsake.core.pack import KNOWLEDGE
from keepsake.core.text import Clean, CleanJson, Filled
from keepsake.ops import banks as bank_ops
from keepsake.ops import handed_out, narrowed, retrieve, storing, tracking, views
from keepsake.store import banks, embeddings, jobs, memories, slugs, sources
from keepsake.store.engine import Tx
from keepsake.store.filters import Filter
from keepsake.store.handed_out import Given
from keepsake.store.memories import Memory

if TYPE_CHECKING:
    from keepsake.ops import forgetting
else:
    forgetting = lazy("keepsake.ops.forgetting")

#: Longer texts are documents to be split by whoever has them.
LONGEST = 1_000_000
FORGOTTEN = "This text was deleted on request before; it does not come back by itself."
MemoryId = Clean
#: Banks that one question is asked of.
MOST_BANKS = 20
#: Categories that are kinds of their own.
TRACKED = (*KNOWLEDGE, "milestone")


class Retain(InBank):
    """Something to remember."""

    content: Filled = Field(max_length=LONGEST, description="The fact or memory to store.")
    category: Clean = Field("general", max_length=200, description="Category for the memory.")
    happened_at: Moment | None = Field(None, description="When the event occurred, ISO 8601.")
    tags: Tags = Field(default_factory=list, description="Tags for organizing and filtering this memory.")
    metadata: dict[Clean, CleanJson] = Field(
        default_factory=dict, max_length=200, description="Key-value metadata to attach."
    )
    document: Clean | None = Field(
        None, min_length=1, max_length=500, description="Document this belongs to; what it said before is replaced."
    )
    whole: bool = Field(
        False,
        description="Keep it as one memory with a readable name, however much it says; the category decision,"
        " constraint, heuristic, rejected or milestone makes it one.",
    )
    title: Clean = Field("", max_length=300, description="A short title.")


class Retained(Result):
    """What became of it."""

    status: Literal["stored", "skipped"] = Field(description="skipped: nothing was stored; `note` says why.")
    id: str | None = Field(None, description="Id of the memory; it can be found from now on.")
    slug: str | None = Field(None, description="Its readable name, where it is kept whole.")
    bank: str = Field(description="Name of the bank.")
    note: str | None = Field(None, description="Why it was skipped.")
    redacted: list[str] | None = Field(
        None, description="Kinds of secrets that were taken out before anything was stored, where there were any."
    )


@operation("memory.retain", effect=Effect.MUTATE, scope="memory:write")
async def retain(ctx: Ctx, given: Retain) -> Retained:
    """Store information to long-term memory; it is durable and can be found as soon as this returns."""
    model = await ctx.app.embedding.static_model(ctx.store)
    found = list(ctx.redacted) or None
    repeats = await _repeats(ctx, given)

    async def body(tx: Tx) -> Changed[Retained]:
        bank = await bank_ops.ensured(tx, ctx, given.bank)
        seq = await banks.step(tx, ctx.org, bank.id)
        content = await forgetting.left_of(tx, ctx, bank, given.content)
        if not content:
            return Changed(Retained(status="skipped", bank=bank.name, note=FORGOTTEN), bank.id, [])
        moment = clock.parse(given.happened_at) if given.happened_at else None
        sort = given.category if given.whole and given.category != storing.GENERAL else ""
        filed = handed_out.Filed(ctx.org, bank.id, moment, tuple(dict.fromkeys(given.tags)), given.metadata, sort)
        if repeats and await repeats.is_all(tx, ctx, filed):
            return Changed(Retained(status="skipped", bank=bank.name, note=handed_out.SKIPPED), bank.id, [])
        id = ctx.store.new_id()
        source = (
            await _documented(tx, ctx, bank, given.model_copy(update={"content": content}), id)
            if given.document
            else None
        )
        memory = Memory(
            org=ctx.org,
            bank=bank.id,
            id=id,
            kind="note",
            fact_type="world",
            text=content,
            learned_at=ctx.now,
            author=ctx.principal.name,
            text_hash=text.digest(content),
            tokens=text.cost(content),
            seq=seq,
            title=given.title,
            category=given.category,
            tags=filed.tags,
            metadata=given.metadata,
            happened_from=moment,
            event_at=moment,
            source=source,
            span=f"0:{len(content)}" if source else "",
        )
        memory = await (_kept if given.whole else _noted)(tx, ctx, memory, model)
        slug = memory.slug or None
        stored = Retained(status="stored", id=str(id), slug=slug, bank=bank.name, redacted=found)
        return Changed(stored, bank.id, [id], content)

    return await ctx.change(body)


async def _noted(tx: Tx, ctx: Ctx, memory: Memory, model: embeddings.Model) -> Memory:
    """Store a note, for the background to take apart."""
    memory = await storing.store(tx, ctx.app, memory, model)
    await jobs.wanted(tx, ctx.store, ctx.org, memory.bank, "enrich", ctx.now)
    return memory


async def _kept(tx: Tx, ctx: Ctx, memory: Memory, model: embeddings.Model) -> Memory:
    """Store a note as it is, under a name of its own; what its category says is knowledge is kept as that."""
    if memory.category in TRACKED:
        fact_type = "experience" if memory.category == "milestone" else "opinion"
        return await tracking.store(tx, ctx, replace(memory, kind=memory.category, fact_type=fact_type), model)
    slug = await slugs.fresh(tx, ctx.org, memory.bank, memory.title or memory.text)
    return await _noted(tx, ctx, replace(memory, slug=slug, parts={"whole": True}), model)


@dataclass(frozen=True, slots=True)
class Repeats:
    """What of a text was handed out before."""

    text: echo.Repeated
    known: handed_out.Known

    async def is_all(self, tx: Tx, ctx: Ctx, filed: handed_out.Filed) -> bool:
        """Whether every part of it was, still holds, and is filed no otherwise."""
        standing = await handed_out.standing(tx, ctx.app, filed, self.known)
        return self.text.is_known(lambda form: form in standing)


async def _repeats(ctx: Ctx, given: Retain) -> Repeats | None:
    """Whether a text may repeat what was handed out; a document is what it says."""
    told = None if given.document else echo.repeated(given.content)
    if told is None:
        return None
    name, _ = bank_ops.wanted(ctx, given.bank)
    asker = Given(ctx.org, ctx.principal.name, "", bank=name)
    known = await handed_out.known(ctx.app, asker, sorted(told.forms))
    return Repeats(told, known) if known else None


async def _documented(tx: Tx, ctx: Ctx, bank: banks.Bank, given: Retain, memory: int) -> int:
    """Make the document's new revision and put what the old one said out of the way."""
    old = await sources.current(tx, ctx.org, bank.id, "document", given.document or "")
    id = ctx.store.new_id()
    if old is not None:
        await sources.replace(tx, old, id)
        told = await memories.of_source(tx, ctx.org, bank.id, old.id)
        await memories.supersede(tx, ctx.org, bank.id, told, memory, ctx.now)
    await sources.insert(
        tx,
        sources.Source(
            org=ctx.org,
            bank=bank.id,
            id=id,
            kind="document",
            key=given.document or "",
            hash=text.digest(given.content),
            text=given.content,
            created_at=ctx.now,
            revision=str(id),
            meta=dict(given.metadata),
        ),
    )
    return id


class Recall(InBank):
    """A question to the memories of a bank, or of several."""

    query: Clean = Field(
        "", max_length=20_000, description="Natural language search query; the newest come first where there is none."
    )
    max_tokens: int = Field(4096, ge=1, le=1_000_000, description="Maximum tokens of the whole result.")
    budget: Budget = Field("high", description="How thoroughly to search.")
    types: list[FactType] = Field(default_factory=list, description="Only these fact types; all when left out.")
    tags: Tags = Field(default_factory=list, description="Only memories with these tags.")
    tags_match: Literal["any", "all"] = Field("any", description="Whether one of the tags is enough.")
    as_of: Moment | None = Field(None, description="Answer as the bank knew it at this time, ISO 8601.")
    banks: list[BankName] = Field(
        default_factory=list,
        max_length=MOST_BANKS,
        description="Banks to ask together, and `bank` too where it is given.",
    )
    limit: int | None = Field(None, ge=1, le=50, description="How many at most; left to the budget when left out.")
    kinds: list[Kind] = Field(default_factory=list, max_length=20, description="Only these kinds of memory.")
    since: Moment | None = Field(None, description="Only what happened, or was learned, from then on, ISO 8601.")
    until: Moment | None = Field(None, description="Only what happened, or was learned, before then, ISO 8601.")
    sources: list[SourceKind] = Field(default_factory=list, max_length=20, description="Only what came from these.")
    trust: list[Trust] = Field(default_factory=list, max_length=3, description="Only what is trusted so far.")
    min_similarity: float = Field(0.0, ge=0, le=1, description="Only memories that are at least so similar.")


class Hit(Result):
    """A memory that answers."""

    memory: models.Memory = Field(description="The memory.")
    score: float = Field(description="How well it answers, 0 to 1.")
    signals: dict[str, float] = Field(description="Each signal's part of the score.")
    similarity: float = Field(
        0.0,
        description="How near it is in meaning and words, from 0 (unrelated) to 1 (the same), whatever the model; at"
        " least 0.5 where it holds an identifier of the question as it is written.",
    )


class Recalled(Result):
    """What was found, best first."""

    hits: list[Hit] = Field(description="Best first; empty when nothing relevant is known.")
    max_tokens: int = Field(description="The budget that the answer keeps to.")
    repositories: dict[str, str] = Field(
        default_factory=dict,
        description="`owner/name` of the banks' repositories, by bank; told where `banks` was given.",
    )


@operation("memory.recall", effect=Effect.READ, scope="memory:read")
async def recall(ctx: Ctx, given: Recall) -> Recalled:
    """Find the memories that best answer a question, best first; an empty list means nothing relevant is known."""
    if not given.query.strip():
        return await _newest(ctx, given)
    question = retrieve.Question(
        query=given.query,
        at=clock.parse(given.as_of) if given.as_of else ctx.now,
        budget=given.budget,
        types=tuple(given.types),
        tags=tuple(given.tags),
        every_tag=given.tags_match == "all",
        most=_most(given),
        kinds=tuple(given.kinds),
        said=clock.stretch(given.since, given.until),
        sources=tuple(given.sources),
        trust=tuple(given.trust),
    )
    told: dict[str, str] = {}
    if given.banks:
        named = [given.bank, *given.banks] if given.bank else given.banks
        hits, told = await retrieve.search_banks(ctx, named, question)
    else:
        hits = await narrowed.search_bank(ctx, given.bank, question)
    most = given.limit or retrieve.EFFORT[given.budget][1]
    hits = [hit for hit in hits if hit.similarity >= given.min_similarity][:most]
    found = [
        Hit.model_construct(memory=hit.memory, score=hit.score, signals=hit.signals, similarity=hit.similarity)
        for hit in hits
    ]
    handed_out.told(ctx, [hit.memory for hit in hits], [hit.score for hit in hits])
    return Recalled.model_construct(hits=found, max_tokens=given.max_tokens, repositories=told)


async def _newest(ctx: Ctx, given: Recall) -> Recalled:
    """What was learned last, where nothing is asked."""

    async def body(tx: Tx) -> list[models.Memory]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return []
        at = clock.parse(given.as_of) if given.as_of else ctx.now
        wanted = Filter(ctx.org, bank.id, at, tuple(given.types), tuple(given.tags), given.tags_match == "all")
        wanted = replace(
            wanted, kinds=tuple(given.kinds), said=clock.stretch(given.since, given.until), sources=tuple(given.sources)
        )
        wanted = replace(wanted, trust=tuple(given.trust))
        rows = await memories.newest(tx, wanted, given.limit or retrieve.EFFORT[given.budget][1])
        return await views.described(tx, bank, rows)

    found = await ctx.read(body)
    handed_out.told(ctx, found)
    hits = [Hit.model_construct(memory=memory, score=0.0, signals={}, similarity=0.0) for memory in found]
    return Recalled.model_construct(hits=hits, max_tokens=given.max_tokens, repositories={})


def _most(given: Recall) -> int:
    """How many to look for; where some will not be similar enough, others are there in their place."""
    return (given.limit or 0) * (2 if given.min_similarity else 1)


class ListMemories(InBank):
    """Which page of which memories."""

    type: FactType | None = Field(None, description="Only this fact type.")
    contains: Clean | None = Field(None, max_length=1_000, description="Only memories whose text contains this.")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results.")
    offset: int = Field(0, ge=0, le=10_000_000, description="Number of results to skip.")


class Memories(Result):
    """A page of memories, newest first."""

    memories: list[models.Memory] = Field(description="Newest first.")
    total: int = Field(description="How many there are in all.")


@operation("memory.list", effect=Effect.READ, scope="memory:read")
async def list_(ctx: Ctx, given: ListMemories) -> Memories:
    """Browse stored memories, newest first, with optional filtering and pagination."""

    async def body(tx: Tx) -> Memories:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return Memories(memories=[], total=0)
        types = (given.type,) if given.type else ()
        wanted = Filter(ctx.org, bank.id, ctx.now, types=types, contains=given.contains or "")
        rows, total = await memories.page(tx, wanted, given.limit, given.offset)
        return Memories(memories=await views.described(tx, bank, rows), total=total)

    page = await ctx.read(body)
    handed_out.told(ctx, page.memories)
    return page


class OneMemory(InBank):
    """Which memory."""

    id: MemoryId = Field(min_length=1, max_length=200, description="The id of the memory, or its readable name.")


async def _one(tx: Tx, ctx: Ctx, given: OneMemory) -> tuple[banks.Bank, Memory]:
    """The memory meant; another bank's is as unknown as none."""
    bank = await bank_ops.found(tx, ctx, given.bank)
    id = await slugs.meant(tx, ctx.org, bank.id, given.id) if bank else None
    rows = await memories.fetched(tx, ctx.org, bank.id, [id]) if bank and id else {}
    if bank is None or id is None or id not in rows:
        raise NotFound(f"No memory {given.id!r} in this bank.", "memory.list", "memory.recall")
    return bank, rows[id]


@operation("memory.get", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: OneMemory) -> models.Memory:
    """Retrieve one memory by its id, with where it came from."""

    async def body(tx: Tx) -> models.Memory:
        bank, memory = await _one(tx, ctx, given)
        return (await views.described(tx, bank, [memory]))[0]

    shown = await ctx.read(body)
    handed_out.told(ctx, [shown])
    return shown


@operation("memory.forget", effect=Effect.DESTRUCTIVE, scope="memory:delete")
async def forget(ctx: Ctx, given: OneMemory) -> Receipt:
    """Permanently delete one memory from text, index and vectors; leaves a receipt."""
    await ctx.app.embedding.static_model(ctx.store)

    async def body(tx: Tx) -> Changed[Receipt]:
        bank, memory = await _one(tx, ctx, given)
        await banks.step(tx, ctx.org, bank.id)
        await forgetting.suppress(tx, ctx, bank, [memory.id])
        return Changed(await forgetting.forget(tx, ctx, bank, [memory.id]), bank.id, [memory.id])

    return await ctx.change(body)
