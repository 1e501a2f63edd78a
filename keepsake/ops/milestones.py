"""Milestones: what was reached, when, and which decisions it carries out."""

from typing import Literal

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import clock, slug
from keepsake.core.errors import BadInput
from keepsake.core.models import InBank, Moment, Result, Tags
from keepsake.core.operation import Effect, operation
from keepsake.core.pack import KNOWLEDGE
from keepsake.core.text import Clean, Filled
from keepsake.ops import banks as bank_ops
from keepsake.ops import handed_out, meant, tracking
from keepsake.ops.memory import FORGOTTEN
from keepsake.store import banks, embeddings, knowledge, memories, relations
from keepsake.store.engine import Tx
from keepsake.store.knowledge import Wanted
from keepsake.store.memories import Memory

KIND = "milestone"
#: How a milestone is related to the decisions that it carries out.
IMPLEMENTS = "implements"


class RecordMilestone(InBank):
    """What was reached."""

    title: Filled = Field(max_length=300, description="What was reached, in one line.")
    description: Clean = Field("", max_length=20_000, description="What belongs to it.")
    type: Clean = Field("", max_length=60, description="A word for its sort, such as release, launch or migration.")
    happened_at: Moment | None = Field(None, description="When it was reached, ISO 8601; now when left out.")
    related_decisions: list[Clean] = Field(
        default_factory=list, max_length=50, description="Ids or slugs of the decisions that it carries out."
    )
    tags: Tags = Field(default_factory=list, description="Tags for organizing and filtering.")


class Milestone(Result):
    """A milestone as it is kept."""

    id: str = Field(description="Its id; it is a memory like any other.")
    slug: str = Field(description="A readable name by which it can be got, too.")
    bank: str = Field(description="Name of its bank.")
    title: str = Field(description="What was reached, in one line.")
    description: str = Field(description="What belongs to it.")
    type: str = Field(description="Its sort; empty where nobody said so.")
    happened_at: str = Field(description="When it was reached, ISO 8601.")
    learned_at: str = Field(description="When it was recorded, ISO 8601.")
    related_decisions: list[str] = Field(description="Ids of the decisions that it is related to.")
    tags: list[str] = Field(description="Its tags.")
    author: str = Field(description="Who recorded it.")
    trust: str = Field(description="How far its source is trusted.")


class RecordedMilestone(Result):
    """What became of it."""

    outcome: Literal["stored", "known", "skipped"] = Field(
        description="known: it was recorded before; skipped: nothing was stored, and `note` says why."
    )
    milestone: Milestone | None = Field(None, description="The milestone as it is kept now.")
    note: str | None = Field(None, description="Why it was skipped.")
    redacted: list[str] | None = Field(None, description="Kinds of secrets that were taken out before it was stored.")


@operation("milestone.record", effect=Effect.MUTATE, scope="memory:write")
async def record(ctx: Ctx, given: RecordMilestone) -> RecordedMilestone:
    """Record a milestone that was reached, and the decisions that it carries out."""
    model = await ctx.app.embedding.static_model(ctx.store)
    return await ctx.change(lambda tx: _recorded(tx, ctx, given, model))


async def _recorded(tx: Tx, ctx: Ctx, given: RecordMilestone, model: embeddings.Model) -> Changed[RecordedMilestone]:
    bank = await bank_ops.ensured(tx, ctx, given.bank)
    seq = await banks.step(tx, ctx.org, bank.id)
    decisions = [await _decision(tx, ctx, bank, said) for said in dict.fromkeys(given.related_decisions)]
    entry = _entry(given)
    if await tracking.is_forgotten(tx, ctx, bank, entry):
        return Changed(RecordedMilestone(outcome="skipped", note=FORGOTTEN), bank.id, [])
    made = tracking.memory(ctx, bank, entry, seq)
    known = await knowledge.twin(tx, made)
    if known is not None and not tracking.same(known, made):
        known = None
    if known is None:
        made = await tracking.store(tx, ctx, made, model)
    else:
        made = known
        await memories.confirm(tx, ctx.org, bank.id, known.id)
    for decision in decisions:
        await relations.put(tx, _carries_out(ctx, made, decision))
    [shown] = await described(tx, bank, [made])
    result = RecordedMilestone(
        outcome="known" if known else "stored", milestone=shown, redacted=list(ctx.redacted) or None
    )
    return Changed(result, bank.id, [made.id], entry.text)


async def _decision(tx: Tx, ctx: Ctx, bank: banks.Bank, said: str) -> int:
    found = await meant.decision(tx, ctx, bank, said)
    if found.kind not in KNOWLEDGE:
        raise BadInput(f"{found.id} is a {found.kind}, not a decision. Relate other things with graph.relate.")
    return found.id


def _carries_out(ctx: Ctx, milestone: Memory, decision: int) -> relations.Relation:
    ends: tuple[relations.Place, relations.Place] = ("memory", "memory")
    return relations.Relation(
        ctx.org, milestone.bank, milestone.id, decision, IMPLEMENTS, *ends, "", ctx.principal.name, ctx.now
    )


def _entry(given: RecordMilestone) -> tracking.Entry:
    title, description = " ".join(given.title.split()), given.description.strip()
    return tracking.Entry(
        kind=KIND,
        fact_type="experience",
        title=title,
        text=f"{title}\n{description}".strip(),
        subtype=_type(given.type),
        parts={"description": description} if description else {},
        tags=tracking.once(given.tags),
        happened_at=clock.parse(given.happened_at) if given.happened_at else None,
    )


def _type(said: str) -> str:
    """A sort of milestone as it is compared."""
    return " ".join(said.lower().split())


async def described(tx: Tx, bank: banks.Bank, rows: list[Memory]) -> list[Milestone]:
    """Milestones with the decisions that they are related to."""
    if not rows:
        return []
    edges = await relations.touching(tx, bank.org, bank.id, [row.id for row in rows], 1_000)
    ends = {(edge.origin, edge.target) for edge in edges} | {(edge.target, edge.origin) for edge in edges}
    others = await memories.fetched(tx, bank.org, bank.id, sorted({other for _, other in ends}))
    decisions = {id: other for id, other in others.items() if other.kind in KNOWLEDGE}
    return [
        Milestone(
            id=str(row.id),
            slug=slug.shown(row.slug, row.title or row.text, row.id),
            bank=bank.name,
            title=row.title or row.text[:300],
            description=tracking.told(row.parts, "description"),
            type=row.subtype,
            happened_at=clock.iso(row.said_at),
            learned_at=clock.iso(row.learned_at),
            related_decisions=_current(
                [decisions[other] for id, other in sorted(ends) if id == row.id and other in decisions]
            ),
            tags=list(row.tags),
            author=row.author,
            trust=row.trust,
        )
        for row in rows
    ]


def _current(decisions: list[Memory]) -> list[str]:
    """Ids of decisions; of one that was corrected, only of the words that took its place."""
    ids = {one.id for one in decisions}
    return [str(one.id) for one in decisions if one.superseded_by not in ids]


class ListMilestones(InBank):
    """Which milestones."""

    type: Clean = Field("", max_length=60, description="Only milestones of this sort.")
    since: Moment | None = Field(None, description="Only what was reached from then on, ISO 8601.")
    until: Moment | None = Field(None, description="Only what was reached before then, ISO 8601.")
    related_decision: Clean | None = Field(
        None, min_length=1, max_length=200, description="Only those related to the decision with this id or slug."
    )
    tags: Tags = Field(default_factory=list, description="Only those with one of these tags.")
    limit: int = Field(20, ge=1, le=100, description="Maximum number of results.")
    offset: int = Field(0, ge=0, le=10_000_000, description="Number of results to skip.")


class Milestones(Result):
    """A page of milestones."""

    milestones: list[Milestone] = Field(description="The latest first.")
    total: int = Field(description="How many there are in all.")


@operation("milestone.list", effect=Effect.READ, scope="memory:read")
async def list_(ctx: Ctx, given: ListMilestones) -> Milestones:
    """List what was reached, the latest first, by sort, time or the decision that it carries out."""

    async def body(tx: Tx) -> Milestones:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return Milestones(milestones=[], total=0)
        related = given.related_decision
        wanted = Wanted(
            ctx.org,
            bank.id,
            kinds=(KIND,),
            tags=tuple(given.tags),
            subtype=_type(given.type),
            since=clock.parse(given.since) if given.since else None,
            until=clock.parse(given.until) if given.until else None,
            related=(await meant.decision(tx, ctx, bank, related)).id if related else None,
        )
        rows, total = await knowledge.page(tx, wanted, given.limit, given.offset)
        return Milestones(milestones=await described(tx, bank, rows), total=total)

    page = await ctx.read(body)
    handed_out.told(ctx, [handed_out.Said(one.id, one.title) for one in page.milestones])
    return page
