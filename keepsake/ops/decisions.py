"""Decisions: what was decided, why and instead of what; kept whole, found by every search, superseded by name."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import clock, slug
from keepsake.core import decision as decided
from keepsake.core.errors import NotFound
from keepsake.core.models import Given, InBank, Moment, Result, Tags
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean, Filled
from keepsake.ops import banks as bank_ops
from keepsake.ops import handed_out, meant, retrieve, tracking
from keepsake.ops.memory import FORGOTTEN
from keepsake.store import banks, embeddings, knowledge, memories, relations
from keepsake.store.engine import Tx
from keepsake.store.knowledge import Wanted
from keepsake.store.memories import Memory

#: Decisions that a question by meaning looks through at most.
MOST = 200


Option = Annotated[Filled, Field(max_length=500)]


class Alternative(Given):
    """What was considered and not taken."""

    option: Option = Field(description="The option.")
    why_not: Clean = Field("", max_length=2_000, description="Why it was not taken.")


class RecordDecision(InBank):
    """What was decided."""

    title: Filled = Field(max_length=300, description="What was decided, in one line.")
    decision: Clean = Field("", max_length=20_000, description="The decision in full, where one line is not enough.")
    rationale: Clean = Field("", max_length=20_000, description="Why.")
    alternatives: list[Alternative | Option] = Field(
        default_factory=list,
        max_length=30,
        description="What was considered and not taken: texts, or option and why_not.",
    )
    kind: decided.Kind = Field("decision", description="A rejected option is what must not be tried again.")
    status: decided.Given | None = Field(None, description="How it stands; accepted when left out.")
    supersedes: Clean | None = Field(
        None, min_length=1, max_length=200, description="Id or slug of the decision whose place it takes."
    )
    blocker: bool = Field(False, description="Whether it is an open problem that stands in the way of other work.")
    tags: Tags = Field(default_factory=list, description="Tags for organizing and filtering.")
    happened_at: Moment | None = Field(None, description="When it was decided, ISO 8601; now when left out.")


class Considered(Result):
    """What was considered and not taken."""

    option: str = Field(description="The option.")
    why_not: str = Field("", description="Why it was not taken.")


class Decision(Result):
    """A decision as it is kept."""

    id: str = Field(description="Its id; it is a memory like any other.")
    slug: str = Field(description="A readable name by which it can be got, too.")
    bank: str = Field(description="Name of its bank.")
    kind: str = Field(description="decision, constraint, heuristic or rejected.")
    title: str = Field(description="What was decided, in one line.")
    decision: str = Field(description="The decision in full; empty where the title says it all.")
    rationale: str = Field(description="Why; empty where nobody said so.")
    alternatives: list[Considered] = Field(description="What was considered and not taken.")
    status: decided.Status = Field(description="proposed, accepted, blocked, rejected, reversed or superseded.")
    blocker: bool = Field(description="Whether it stands in the way of other work.")
    tags: list[str] = Field(description="Its tags.")
    happened_at: str = Field(description="When it was decided, else when it was recorded, ISO 8601.")
    learned_at: str = Field(description="When it was recorded, ISO 8601.")
    superseded_at: str | None = Field(None, description="When another decision took its place.")
    superseded_by: str | None = Field(None, description="Id of that one.")
    author: str = Field(description="Who recorded it.")
    trust: str = Field(description="How far its source is trusted.")
    score: float | None = Field(None, description="How well it answers the query, 0 to 1, where one was given.")


class RecordedDecision(Result):
    """What became of it."""

    outcome: Literal["stored", "known", "skipped"] = Field(
        description="known: it was recorded before and still holds; skipped: nothing was stored, and `note` says why."
    )
    decision: Decision | None = Field(None, description="The decision as it is kept now.")
    superseded: list[str] = Field(default_factory=list, description="Ids of what it took the place of.")
    note: str | None = Field(None, description="Why it was skipped.")
    redacted: list[str] | None = Field(None, description="Kinds of secrets that were taken out before it was stored.")


@operation("decision.record", effect=Effect.MUTATE, scope="memory:write")
async def record(ctx: Ctx, given: RecordDecision) -> RecordedDecision:
    """Record a decision, constraint, heuristic or rejected option, with why; one it supersedes stays in the history."""
    model = await ctx.app.embedding.static_model(ctx.store)
    return await ctx.change(lambda tx: _recorded(tx, ctx, given, model))


async def _recorded(tx: Tx, ctx: Ctx, given: RecordDecision, model: embeddings.Model) -> Changed[RecordedDecision]:
    bank = await bank_ops.ensured(tx, ctx, given.bank)
    seq = await banks.step(tx, ctx.org, bank.id)
    entry = _entry(given)
    old = await meant.decision(tx, ctx, bank, given.supersedes) if given.supersedes else None
    if await tracking.is_forgotten(tx, ctx, bank, entry):
        return Changed(RecordedDecision(outcome="skipped", note=FORGOTTEN), bank.id, [])
    made = tracking.memory(ctx, bank, entry, seq)
    twin = await knowledge.twin(tx, made)
    if twin is not None and tracking.same(twin, made) and (old is None or old.id == twin.id):
        await memories.confirm(tx, ctx.org, bank.id, twin.id)
        return Changed(RecordedDecision(outcome="known", decision=shown(twin, bank.name)), bank.id, [twin.id])
    # Said again in the same words, it stands otherwise now.
    replaced = {one.id: one for one in (old, twin) if one is not None}
    made = await tracking.store(tx, ctx, made, model)
    gone = [id for one in replaced.values() for id in await tracking.supersede(tx, ctx, made, one)]
    if twin is not None:
        await relations.carry(tx, ctx.org, bank.id, twin.id, made.id)
    result = RecordedDecision(
        outcome="stored",
        decision=shown(made, bank.name),
        superseded=[str(id) for id in gone],
        redacted=list(ctx.redacted) or None,
    )
    return Changed(result, bank.id, [made.id, *gone], entry.text)


def _entry(given: RecordDecision) -> tracking.Entry:
    options = [
        decided.Alternative(one) if isinstance(one, str) else decided.Alternative(one.option, one.why_not)
        for one in given.alternatives
    ]
    status = given.status or decided.usual(given.kind)
    made = decided.Decision(given.title, given.decision, given.rationale, options, status)
    in_the_way = given.blocker or status == "blocked"
    return tracking.Entry(
        kind=given.kind,
        fact_type="opinion",
        title=" ".join(given.title.split()),
        text=made.told,
        parts=made.parts,
        tags=tracking.once([*given.tags, *([decided.BLOCKER] if in_the_way else [])]),
        happened_at=clock.parse(given.happened_at) if given.happened_at else None,
    )


def shown(memory: Memory, bank: str, score: float | None = None) -> Decision:
    """A decision as everyone sees it; one that was stated in passing is its own words."""
    parts = memory.parts
    return Decision(
        id=str(memory.id),
        slug=slug.shown(memory.slug, memory.title or memory.text, memory.id),
        bank=bank,
        kind=memory.kind,
        title=memory.title or memory.text[:300],
        decision=tracking.told(parts, "decision") or ("" if "status" in parts else memory.text),
        rationale=tracking.told(parts, "rationale"),
        alternatives=[Considered(option=one.option, why_not=one.why_not) for one in decided.alternatives(parts)],
        status=decided.status(memory.kind, parts, memory.superseded_at is not None),
        blocker=decided.BLOCKER in memory.tags or memory.category == decided.BLOCKER,
        tags=list(memory.tags),
        happened_at=clock.iso(memory.said_at),
        learned_at=clock.iso(memory.learned_at),
        superseded_at=clock.iso(memory.superseded_at) if memory.superseded_at is not None else None,
        superseded_by=str(memory.superseded_by) if memory.superseded_by is not None else None,
        author=memory.author,
        trust=memory.trust,
        score=score,
    )


class OneDecision(InBank):
    """Which decision."""

    id: Clean = Field(min_length=1, max_length=200, description="Its id or slug.")


class Standing(Decision):
    """A decision, and what it took the place of."""

    supersedes: list[str] = Field(description="Ids of the decisions whose place it took, the latest first.")


@operation("decision.get", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: OneDecision) -> Standing:
    """Read one decision, constraint, heuristic or rejected option, and what it took the place of."""

    async def body(tx: Tx) -> Standing:
        bank = await bank_ops.found(tx, ctx, given.bank)
        one = await meant.decision(tx, ctx, bank, given.id) if bank else None
        if bank is None or one is None or one.kind not in decided.KINDS:
            raise NotFound(f"No decision {given.id!r} in this bank. List the decisions to find its id.")
        older = await knowledge.replaced(tx, ctx.org, bank.id, [one.id])
        ids = [str(id) for id in older.get(one.id, [])]
        return Standing(**shown(one, bank.name).model_dump(), supersedes=ids)

    found = await ctx.read(body)
    handed_out.told(ctx, [handed_out.Said(found.id, found.title)])
    return found


class ListDecisions(InBank):
    """Which decisions."""

    query: Clean = Field("", max_length=20_000, description="What they are about; the newest first when left out.")
    kinds: list[decided.Kind] = Field(default_factory=list, max_length=4, description="Only these kinds.")
    status: list[decided.Status] = Field(default_factory=list, max_length=6, description="Only those that stand so.")
    tags: Tags = Field(default_factory=list, description="Only those with one of these tags.")
    since: Moment | None = Field(None, description="Only what was decided from then on, ISO 8601.")
    until: Moment | None = Field(None, description="Only what was decided before then, ISO 8601.")
    include_superseded: bool = Field(False, description="Whether to show what was superseded as well.")
    limit: int = Field(20, ge=1, le=100, description="Maximum number of results.")
    offset: int = Field(0, ge=0, le=10_000_000, description="Number of results to skip.")


class Decisions(Result):
    """A page of decisions."""

    decisions: list[Decision] = Field(description="Best first with a query, else the newest first.")
    total: int = Field(description="How many there are in all; with a query, how many are relevant.")


@operation("decision.list", effect=Effect.READ, scope="memory:read")
async def list_(ctx: Ctx, given: ListDecisions) -> Decisions:
    """List decisions, constraints, heuristics and rejected options: by meaning with a query, else newest first."""
    page = await (_answering(ctx, given) if given.query.strip() else _newest(ctx, given))
    handed_out.told(ctx, [handed_out.Said(one.id, one.title) for one in page.decisions])
    return page


def _wanted(ctx: Ctx, bank: banks.Bank, given: ListDecisions) -> Wanted:
    return Wanted(
        ctx.org,
        bank.id,
        kinds=tuple(given.kinds) or decided.KINDS,
        statuses=tuple(given.status),
        tags=tuple(given.tags),
        since=clock.parse(given.since) if given.since else None,
        until=clock.parse(given.until) if given.until else None,
        include_superseded=given.include_superseded or "superseded" in given.status,
    )


async def _newest(ctx: Ctx, given: ListDecisions) -> Decisions:
    async def body(tx: Tx) -> Decisions:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return Decisions(decisions=[], total=0)
        rows, total = await knowledge.page(tx, _wanted(ctx, bank, given), given.limit, given.offset)
        return Decisions(decisions=[shown(row, bank.name) for row in rows], total=total)

    return await ctx.read(body)


async def _answering(ctx: Ctx, given: ListDecisions) -> Decisions:
    """By meaning: what holds is searched, and what it took the place of stands behind it where that is wanted."""
    question = retrieve.Question(given.query, ctx.now, most=MOST, kinds=tuple(given.kinds) or decided.KINDS)
    hits = await retrieve.search_bank(ctx, given.bank, question)
    scores = {int(hit.memory.id): hit.score for hit in hits}

    async def body(tx: Tx) -> Decisions:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None or not scores:
            return Decisions(decisions=[], total=0)
        wanted = _wanted(ctx, bank, given)
        order = await _with_history(tx, wanted, list(scores)) if wanted.include_superseded else list(scores)
        kept = await knowledge.among(tx, wanted, order)
        rows = [kept[id] for id in order if id in kept]
        page = rows[given.offset : given.offset + given.limit]
        return Decisions(decisions=[shown(row, bank.name, scores.get(row.id)) for row in page], total=len(rows))

    return await ctx.read(body)


async def _with_history(tx: Tx, wanted: Wanted, found: Sequence[int]) -> list[int]:
    """Each decision, and behind it what it took the place of."""
    older: dict[int, list[int]] = {}
    left = list(found)
    while left and len(older) < MOST:
        replaced = await knowledge.replaced(tx, wanted.org, wanted.bank, left)
        older |= {id: replaced.get(id, []) for id in left}
        left = [id for ids in replaced.values() for id in ids if id not in older]
    order: dict[int, None] = {}

    def tell(id: int) -> None:
        if id not in order:
            order[id] = None
            for one in older.get(id, []):
                tell(one)

    for id in found:
        tell(id)
    return list(order)
