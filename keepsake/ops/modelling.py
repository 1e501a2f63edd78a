"""The job that makes a mental model's text: by the language model where there is one, else by rules."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ValidationError

from keepsake.context import App, Changed, Ctx
from keepsake.core import cite, ids, log, text
from keepsake.core.cite import Passage
from keepsake.core.errors import Conflict
from keepsake.ops import background, budget, prompts, retrieve
from keepsake.ops.embedding import Alive
from keepsake.services.llm import Ask, Json, Llm, LlmFailed, Quoted, Reply, parsed
from keepsake.store import banks, jobs, memories, mental_models
from keepsake.store.engine import Tx
from keepsake.store.mental_models import Change, Model, Sentence, Version, rendered

LONGEST = 1_000
#: What the JSON around the sentences costs beside them, and what an endpoint can be asked for.
FRAME, LONGEST_ANSWER = 3, 8_192
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "sections": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "title": {"type": "string"},
                    "sentences": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "text": {"type": "string"},
                                "evidence": {"type": "array", "items": {"type": "integer"}},
                            },
                            "required": ["text", "evidence"],
                            "additionalProperties": False,
                        },
                    },
                },
                "required": ["title", "sentences"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["sections"],
    "additionalProperties": False,
}


class Told(BaseModel):
    """A sentence as the model gives it."""

    text: str
    evidence: list[int]


class Section(BaseModel):
    """A section as the model gives it."""

    title: str
    sentences: list[Told]


class Document(BaseModel):
    """What the model gives."""

    sections: list[Section]


@dataclass(frozen=True, slots=True)
class Ground:
    """What a text is made from, and how rules tell it."""

    hits: Sequence[retrieve.Hit]
    told: Sequence[Sentence]


@dataclass(frozen=True, slots=True)
class Way:
    """How a text is made."""

    gather: Callable[[Ctx, banks.Bank, Model], Awaitable[Ground]]
    #: Figures: a language model has no say in them.
    is_counted: bool = False


@dataclass(frozen=True, slots=True)
class Making:
    """A model that is to be made, and how the bank stands."""

    bank: banks.Bank
    model: Model
    version: Version | None
    change: Change
    way: Way

    @property
    def has_thought(self) -> bool:
        """Whether its present text was made by a language model, and is whole."""
        return self.version is not None and self.version.maker != cite.RULES and self.version.basis != ""


async def searched(ctx: Ctx, bank: banks.Bank, model: Model) -> Ground:
    """What the bank answers to the model's query."""
    question = retrieve.Question(model.source_query, ctx.now, "high")
    found = await retrieve.search_bank(ctx, bank.name, question)
    # Insights are made from memories themselves: resting on them would hide what a sentence comes from.
    hits = [hit for hit in found if hit.memory.kind != "insight"]
    return Ground(hits, by_rules(model.source_query, hits))


SEARCHED = Way(searched)


async def make(app: App, job: jobs.Job, alive: Alive, way: Callable[[Model], Way] = lambda _: SEARCHED) -> None:
    """Make a model's text anew, unless nothing has changed since it was made."""
    bank = await background.bank(app, job.org, job.bank)
    if bank is None:
        return
    ctx = background.ctx(app, job.org, bank.name, "model.refresh")
    making = await ctx.read(lambda tx: wanted(tx, bank, str(job.input["model"]), way))
    if making is not None:
        await renew(ctx, job, alive, making)


async def renew(ctx: Ctx, job: jobs.Job, alive: Alive, making: Making) -> None:
    """Make the next version of a text where there is something new to tell."""
    asked = None if making.way.is_counted else budget.model(ctx.app)
    maker = asked.model if asked else cite.RULES
    if _is_current(making, maker):
        return
    ground = await making.way.gather(ctx, making.bank, making.model)
    basis = _basis(making, maker, ground)
    if making.version is not None and making.version.basis == basis:
        await _keep(ctx.app, making)
        return
    sentences, made_by = await _written(ctx.app, making, asked, ground)
    if await alive():
        await _stored(
            ctx,
            job,
            Version(
                org=job.org,
                bank=job.bank,
                model=making.model.id,
                version=0,
                sentences=fitting(sentences, making.model.max_tokens),
                maker=made_by,
                seq=making.change.seq,
                made_at=ctx.now,
                basis=basis,
            ),
        )


async def wanted(tx: Tx, bank: banks.Bank, id: str, way: Callable[[Model], Way]) -> Making | None:
    """A model that is to be made; None when it has been deleted."""
    model = await mental_models.get(tx, bank.org, bank.id, id)
    if model is None:
        return None
    version = await mental_models.current(tx, model)
    return Making(bank, model, version, await mental_models.last_change(tx, bank.org, bank.id), way(model))


def _is_current(making: Making, maker: str) -> bool:
    version = making.version
    return version is not None and version.seq > 0 and version.maker == maker and not making.change.since(version)


def _basis(making: Making, maker: str, ground: Ground) -> str:
    """A digest of all that the text is made from: equal means there is nothing to do."""
    told: list[tuple[str, str]] = [(hit.memory.id, text.digest(hit.memory.text)) for hit in ground.hits]
    if making.way is not SEARCHED:
        told += [(one.text, one.section) for one in ground.told]
    model = making.model
    return text.digest(json.dumps([model.source_query, model.max_tokens, maker, making.bank.mission, told]))


async def _keep(app: App, making: Making) -> None:
    version = making.version
    assert version is not None

    async def body(tx: Tx) -> None:
        await mental_models.seen(tx, version, making.change.seq)

    await app.store.write(version.org, body)


async def _written(app: App, making: Making, asked: Llm | None, ground: Ground) -> tuple[Sequence[Sentence], str]:
    """The sentences and who made them; a model's text is not replaced by rules because the model is away."""
    if asked is None or not ground.hits:
        return ground.told, cite.RULES
    payer = budget.Payer(app, making.bank.org, making.bank.id, "model.refresh", budget.BACKGROUND)
    try:
        return await _thought(payer, asked, making, ground.hits), asked.model
    except (LlmFailed, budget.Spent, budget.Unusable) as error:
        if making.has_thought:
            raise
        log.warning("model made by rules", model=making.model.id, code=error.code)
        return ground.told, cite.RULES


def by_rules(query: str, hits: Sequence[retrieve.Hit]) -> list[Sentence]:
    """The sentences that answer best, grouped by what they are about."""
    passages = [Passage(n, hit.memory.text) for n, hit in enumerate(hits)]
    about = [hit.memory.category for hit in hits]
    is_mixed = len(set(about)) > 1
    made: dict[str, list[Sentence]] = {}
    for line in cite.extract(query, passages):
        section = about[line.numbers[0]] if is_mixed else ""
        rests_on = tuple(int(hits[n].memory.id) for n in line.numbers)
        made.setdefault(section, []).append(Sentence(line.text, rests_on, section.capitalize()))
    return [sentence for section in made.values() for sentence in section]


async def _thought(payer: budget.Payer, asked: Llm, making: Making, hits: Sequence[retrieve.Hit]) -> list[Sentence]:
    """The model's document, once every sentence of it names evidence that was given and could say it."""
    given = {one.number: one for one in prompts.given(hits, making.model.source_query)}
    messages = prompts.modelling(making.bank, making.model.source_query, hits)
    ask = Ask(messages, min(making.model.max_tokens * FRAME, LONGEST_ANSWER), SCHEMA)
    return await budget.checked(payer, asked, ask, lambda reply: _sentences(reply, given))


def _sentences(reply: Reply, given: dict[int, Quoted]) -> list[Sentence]:
    try:
        document = Document.model_validate(parsed(reply.text))
    except ValidationError:
        raise ValueError("it is not of the form {sections: [{title, sentences: [{text, evidence}]}]}.") from None
    made = []
    for section in document.sections:
        for told in section.sentences:
            made += _checked(told, " ".join(section.title.split())[:200], given)
    if not made:
        raise ValueError("no sentence in it says what its evidence says.")
    return made


def _checked(told: Told, section: str, given: dict[int, Quoted]) -> list[Sentence]:
    """The sentence, or nothing where its evidence does not say it; evidence that was not given is an error."""
    if not told.evidence or not set(told.evidence) <= given.keys():
        raise ValueError("a sentence names no evidence, or a number that was not given.")
    said = " ".join(told.text.split())[:LONGEST]
    numbers = dict.fromkeys(told.evidence)
    if not cite.supported(said, " ".join(given[n].text for n in numbers)):
        return []
    rests_on = [ids.parse(given[n].id) for n in numbers]
    return [Sentence(said, tuple(id for id in rests_on if id is not None), section)]


def fitting(sentences: Sequence[Sentence], max_tokens: int) -> tuple[Sentence, ...]:
    """As many sentences as the text has room for."""
    kept = list(sentences)
    while kept and text.cost(rendered(kept)) > max_tokens:
        kept.pop()
    return tuple(kept)


async def _stored(ctx: Ctx, job: jobs.Job, version: Version) -> None:
    """Make it the current version, without what was forgotten meanwhile."""
    rests_on = sorted({id for sentence in version.sentences for id in sentence.memories})

    async def body(tx: Tx) -> Changed[None]:
        # Whoever forgets takes this first as well, so either we see it gone or it sees our sentences.
        await banks.step(tx, job.org, job.bank)
        if not await jobs.keep(tx, job, ctx.now):
            raise Conflict("Someone else makes this model now.")
        present = await memories.fetched(tx, job.org, job.bank, rests_on)
        kept = tuple(one for one in version.sentences if set(one.memories) <= present.keys())
        is_whole = len(kept) == len(version.sentences)
        made = version if is_whole else replace(version, sentences=kept, seq=0, basis="")
        await mental_models.add_version(tx, made)
        return Changed(None, job.bank, [job.id], rendered(kept))

    await ctx.change(body)
