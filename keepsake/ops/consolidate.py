"""Consolidation: what several memories show together, found by the background; and the models that follow it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from keepsake.context import App, Changed, Ctx
from keepsake.core import cite, log, names, text, trust
from keepsake.core.errors import Conflict
from keepsake.ops import background, budget, prompts, retrieve
from keepsake.ops.embedding import Alive
from keepsake.services.llm import Ask, Json, Llm, LlmFailed, Quoted, Reply, parsed
from keepsake.store import banks, insights, jobs, memories, mental_models, search
from keepsake.store.engine import Tx, VectorRow
from keepsake.store.insights import Place
from keepsake.store.memories import Memory

#: Memories looked at together.
BATCH = 8
#: Memories that must agree before rules make an insight of them, and before a language model may.
LEAST_BY_RULES, LEAST_BY_MODEL = 3, 2
#: How near memories must be to belong together, with a name in common and without.
NEAR_NAMED, NEAR = 0.25, 0.5
#: Sentences that an insight made by rules has at most, and memories it rests on.
SENTENCES, MOST = 5, 20
ANSWER_TOKENS = 1_500
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "observations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "evidence": {"type": "array", "items": {"type": "integer"}},
                    "updates": {"type": ["integer", "null"]},
                },
                "required": ["text", "evidence", "updates"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["observations"],
    "additionalProperties": False,
}


class Observed(BaseModel):
    """An observation as the model gives it."""

    text: str
    evidence: list[int]
    updates: int | None = None


class Observations(BaseModel):
    """What the model gives."""

    observations: list[Observed]


@dataclass(frozen=True, slots=True)
class Draft:
    """An insight before it is stored."""

    text: str
    evidence: frozenset[int]
    maker: str
    #: The insight whose place it takes.
    replaces: int | None = None


async def consolidate(app: App, job: jobs.Job, alive: Alive) -> None:
    """Look at the memories that are new since the last run; nothing new means nothing to do."""
    bank = await background.bank(app, job.org, job.bank)
    if bank is None:
        return
    await app.embedding.static_model(app.store)
    ctx = background.ctx(app, job.org, bank.name, "memory.consolidate")
    has_changed = False
    while await alive():
        batch = await ctx.read(lambda tx: _batch(tx, ctx, job))
        if not batch:
            break
        has_changed = True
        drafts = await _drafted(ctx, bank, batch)
        await _stored(ctx, job, drafts, Place(batch[-1].seq, batch[-1].id))
    if has_changed:
        await app.store.write(job.org, lambda tx: _refresh(tx, app, job))


async def _batch(tx: Tx, ctx: Ctx, job: jobs.Job) -> list[Memory]:
    reached = await insights.reached(tx, job.org, job.bank)
    return await insights.fresh(tx, job.org, job.bank, reached, ctx.now, BATCH)


async def _refresh(tx: Tx, app: App, job: jobs.Job) -> None:
    """Have the models made anew that follow consolidation."""
    for model in await mental_models.listed(tx, job.org, job.bank):
        if model.refresh_after_consolidation:
            await mental_models.asked(tx, app.store, job.org, job.bank, model.id, app.now())


async def _drafted(ctx: Ctx, bank: banks.Bank, batch: Sequence[Memory]) -> list[Draft]:
    asked = budget.model(ctx.app)
    if asked is None:
        return await _by_rules(ctx, bank, batch)
    payer = budget.Payer(ctx.app, bank.org, bank.id, "memory.consolidate", budget.BACKGROUND)
    try:
        return await _by_model(ctx, bank, batch, payer, asked)
    except (LlmFailed, budget.Spent, budget.Unusable) as error:
        log.warning("consolidated by rules", bank=bank.id, code=error.code)
        return await _by_rules(ctx, bank, batch)


async def _around(ctx: Ctx, bank: banks.Bank, told: str) -> list[retrieve.Hit]:
    return await retrieve.search_bank(ctx, bank.name, retrieve.Question(told[:2_000], ctx.now, "low"))


async def _by_rules(ctx: Ctx, bank: banks.Bank, batch: Sequence[Memory]) -> list[Draft]:
    """Put memories together that are near each other, each into one insight at most."""
    drafts: list[Draft] = []
    for memory in batch:
        if any(memory.id in draft.evidence for draft in drafts):
            continue
        hits = [hit for hit in await _around(ctx, bank, memory.text) if hit.memory.kind != insights.KIND]
        told = {memory.id: memory.text} | {int(hit.memory.id): hit.memory.text for hit in hits}
        near = await _near(ctx, memory, told)
        known = await _resting_on(ctx, bank, near)
        if draft := _grouped(near, told, known):
            drafts.append(draft)
    return drafts


async def _resting_on(ctx: Ctx, bank: banks.Bank, ids: Sequence[int]) -> dict[int, set[int]]:
    return await ctx.read(lambda tx: insights.resting_on(tx, bank.org, bank.id, ids))


async def _near(ctx: Ctx, memory: Memory, told: dict[int, str]) -> list[int]:
    """The memories that speak of the same, the one itself first."""
    model = await ctx.app.embedding.static_model(ctx.store)
    vectors = await ctx.app.embedding.static(list(told.values()))
    named = _named(memory.text)
    kept = []
    for id, cosine in zip(told, vectors @ vectors[0], strict=True):
        likeness = (float(cosine) - model.zero) / (model.one - model.zero)
        if id == memory.id or likeness >= (NEAR_NAMED if named & _named(told[id]) else NEAR):
            kept.append(id)
    return kept[:MOST]


def _named(told: str) -> set[str]:
    return {names.folded(mention.name) for mention in names.entities(told)} - {""}


def _grouped(near: Sequence[int], told: dict[int, str], known: dict[int, set[int]]) -> Draft | None:
    """An insight over memories that belong together; None when too few do, or when one says it already."""
    if len(near) < LEAST_BY_RULES:
        return None
    old = max(known, key=lambda id: len(known[id] & set(near)), default=None)
    if old is not None and len(known[old] & set(near)) < LEAST_BY_MODEL:
        old = None
    if old is not None and set(near) <= known[old]:
        return None
    lines = cite.extract("", [cite.Passage(id, told[id]) for id in near])[:SENTENCES]
    mentions = Counter(mention.name for id in near for mention in names.entities(told[id]))
    subject = next((name for name, n in mentions.most_common(1) if n >= LEAST_BY_RULES), "")
    said = " ".join(line.text for line in lines)
    # What was said before stays evidence only where its sentences stay: the new text is made from these alone.
    return Draft(f"{subject}: {said}" if subject else said, frozenset(near), cite.RULES, old)


async def _by_model(
    ctx: Ctx, bank: banks.Bank, batch: Sequence[Memory], payer: budget.Payer, asked: Llm
) -> list[Draft]:
    """What the language model sees in the new memories beside related ones, checked against them."""
    hits = await _around(ctx, bank, "\n".join(memory.text for memory in batch))
    older = [hit.memory for hit in hits if hit.memory.kind != insights.KIND]
    new = {str(memory.id) for memory in batch}
    facts = [Quoted(n, str(memory.id), memory.text[:1_000], memory.trust) for n, memory in enumerate(batch, 1)]
    related = [memory for memory in older if memory.id not in new][:BATCH]
    facts += [
        Quoted(n, memory.id, memory.text[:1_000], memory.trust) for n, memory in enumerate(related, len(facts) + 1)
    ]
    seen = [hit.memory for hit in hits if hit.memory.kind == insights.KIND]
    known = [Quoted(n, memory.id, memory.text, memory.trust) for n, memory in enumerate(seen, 1)]
    ask = Ask(prompts.observing(facts, known), ANSWER_TOKENS, SCHEMA)
    return await budget.checked(payer, asked, ask, lambda reply: _observed(reply, facts, known, asked.model))


def _observed(reply: Reply, facts: Sequence[Quoted], known: Sequence[Quoted], maker: str) -> list[Draft]:
    try:
        given = Observations.model_validate(parsed(reply.text)).observations
    except ValidationError:
        raise ValueError("it is not of the form {observations: [{text, evidence, updates}]}.") from None
    told = {fact.number: fact for fact in facts}
    earlier = {one.number: one for one in known}
    drafts = []
    for one in given:
        if not set(one.evidence) <= told.keys() or (one.updates is not None and one.updates not in earlier):
            raise ValueError("an observation names a number that was not given.")
        evidence = frozenset(int(told[n].id) for n in one.evidence)
        said = " ".join(one.text.split())[:1_000]
        if len(evidence) >= LEAST_BY_MODEL and cite.supported(said, " ".join(told[n].text for n in one.evidence)):
            drafts.append(Draft(said, evidence, maker, int(earlier[one.updates].id) if one.updates else None))
    return drafts


async def _stored(ctx: Ctx, job: jobs.Job, drafts: Sequence[Draft], reached: Place) -> None:
    """Store insights whose evidence still holds, and note how far we have come, in one transaction."""

    async def body(tx: Tx) -> Changed[None]:
        seq = await banks.step(tx, job.org, job.bank)
        if not await jobs.keep(tx, job, ctx.now):
            raise Conflict("Someone else consolidates this bank now.")
        made = [id for draft in drafts if (id := await _insert(tx, ctx, job, draft, seq))]
        await insights.mark(tx, job.org, job.bank, reached)
        if made:
            await jobs.wanted(tx, ctx.store, job.org, job.bank, "embed", ctx.now)
        return Changed(None, job.bank, made, "\n".join(draft.text for draft in drafts))

    await ctx.change(body)


async def _insert(tx: Tx, ctx: Ctx, job: jobs.Job, draft: Draft, seq: int) -> int | None:
    held = [
        memory
        for memory in (await memories.fetched(tx, job.org, job.bank, sorted(draft.evidence))).values()
        if retrieve.held(memory, ctx.now)
    ]
    if len(held) < len(draft.evidence):
        return None
    id, hash = ctx.store.new_id(), text.digest(draft.text)
    tags = set.intersection(*(set(memory.tags) for memory in held))
    memory = Memory(
        org=job.org,
        bank=job.bank,
        id=id,
        kind=insights.KIND,
        fact_type=Counter(memory.fact_type for memory in held).most_common(1)[0][0],
        text=draft.text,
        learned_at=ctx.now,
        author=draft.maker,
        text_hash=hash,
        tokens=text.cost(draft.text),
        seq=seq,
        category="observation",
        tags=tuple(sorted(tags)),
        trust=trust.lowest(memory.trust for memory in held),
        proof=len(held),
        # In a thread of its own: it stands beside nothing.
        thread=f"i{id}",
    )
    await memories.insert(tx, memory)
    await search.add(tx, job.org, job.bank, id, search.Fields(draft.text))
    model = ctx.app.embedding.known["static"]
    await tx.put_vector(VectorRow(job.org, job.bank, id, model.id, ctx.app.embedding.at_once(draft.text), hash, seq))
    await insights.link(tx, job.org, job.bank, id, sorted(draft.evidence))
    if draft.replaces is not None:
        await memories.supersede(tx, job.org, job.bank, [draft.replaces], id, ctx.now)
    return id
