"""Reflect: an answer made from memories, by the language model where there is one, else by rules; never stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import cite, secrets, text
from keepsake.core.cite import Passage
from keepsake.core.errors import BadInput, KeepsakeError, NotFound
from keepsake.core.models import Budget, InBank, Result, Tags
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean, CleanJson, Filled
from keepsake.ops import banks as bank_ops
from keepsake.ops import budget, handed_out, prompts, retrieve
from keepsake.ops.structured import Shape
from keepsake.services.llm import Ask, Llm, LlmFailed, Reply, parsed
from keepsake.store import banks, directives
from keepsake.store.engine import Tx

NOTHING = "Nothing relevant is known."
#: The least that a result with its frame fits in.
LEAST = 64
#: Endpoints refuse to be asked for more than their model can say.
LONGEST_ANSWER = 8_192


class Reflect(InBank):
    """A question to reflect on."""

    query: Filled = Field(max_length=20_000, description="The question or topic to reflect on.")
    context: Clean = Field("", max_length=20_000, description="Why this reflection is needed.")
    budget: Budget = Field("low", description="How thoroughly to search.")
    max_tokens: int = Field(4096, ge=LEAST, le=100_000, description="Maximum tokens of the whole result.")
    response_schema: dict[Clean, CleanJson] | None = Field(
        None, description="JSON Schema for structured output; needs a language model."
    )
    tags: Tags = Field(default_factory=list, description="Only memories with these tags.")
    tags_match: Literal["any", "all"] = Field("any", description="Whether one of the tags is enough.")


class Source(Result):
    """A memory that the answer rests on."""

    n: int = Field(description="Its number in the answer: [n].")
    id: str = Field(description="Id of the memory.")
    date: str = Field(description="When it happened, else when it was stored; ISO 8601.")


class Reflected(Result):
    """An answer and what it rests on."""

    text: str = Field(description="The answer; [n] names the source of what stands before it.")
    sources: list[Source] = Field(description="The memories it rests on.")
    made_by: str = Field(description="The language model that made it, or `rules`: sentences taken from memories.")
    structured_output: object | None = Field(None, description="The answer in the shape of response_schema.")
    note: str | None = Field(None, description="Said when rules had to do what a language model was meant to.")


@dataclass(frozen=True, slots=True)
class Given:
    """All that an answer is made from."""

    bank: banks.Bank
    rules: Sequence[directives.Directive]
    hits: Sequence[retrieve.Hit]

    def source(self, n: int) -> Source:
        """The memory with a number."""
        memory = self.hits[n - 1].memory
        return Source(n=n, id=memory.id, date=memory.happened_at or memory.learned_at)


@operation("memory.reflect", effect=Effect.READ, scope="memory:read")
async def reflect(ctx: Ctx, given: Reflect) -> Reflected:
    """Answer a question by putting stored memories together, with the sources cited; nothing is stored by it."""
    made = await _reflected(ctx, given)
    handed_out.made(ctx, bank_ops.wanted(ctx, given.bank)[0], made.text)
    return made


async def _reflected(ctx: Ctx, given: Reflect) -> Reflected:
    shape = Shape(given.response_schema) if given.response_schema is not None else None
    asked = budget.model(ctx.app)
    if shape and asked is None:
        raise BadInput("response_schema needs a language model, and none is configured (KEEPSAKE_LLM_BASE_URL).")
    known = await _known(ctx, given)
    if known is None:
        if shape:
            raise NotFound("Nothing relevant is known, so there is nothing to fill response_schema with.")
        return Reflected(text=NOTHING, sources=[], made_by=cite.RULES)
    if asked is None:
        return extracted(given, known)
    payer = budget.payer(ctx, known.bank.id)
    if shape:
        return await _shaped(payer, asked, given, known, shape)
    try:
        return await _thought(payer, asked, given, known)
    except (LlmFailed, budget.Spent, budget.Unusable) as error:
        return extracted(given, known, f"Made by rules: {_why(error)}")


def _why(error: KeepsakeError) -> str:
    # The model's own words stay out of what is said of its mistakes.
    return "the model's answer could not be used." if isinstance(error, budget.Unusable) else str(error)


async def _known(ctx: Ctx, given: Reflect) -> Given | None:
    """The bank, its rules and the memories that answer; None when there are none."""

    async def body(tx: Tx) -> tuple[banks.Bank, list[directives.Directive]] | None:
        bank = await bank_ops.found(tx, ctx, given.bank)
        return (bank, await directives.active(tx, ctx.org, bank.id, given.tags)) if bank else None

    found = await ctx.read(body)
    question = retrieve.Question(
        query=given.query,
        at=ctx.now,
        budget=given.budget,
        tags=tuple(given.tags),
        every_tag=given.tags_match == "all",
    )
    hits = await retrieve.search_bank(ctx, given.bank, question) if found else []
    return Given(*found, hits) if found and hits else None


def extracted(given: Reflect, known: Given, note: str | None = None) -> Reflected:
    """The sentences that answer best, each with its source, as many as fit."""
    passages = [Passage(n, hit.memory.text) for n, hit in enumerate(known.hits, 1)]
    made = Reflected(text="", sources=[], made_by=cite.RULES, note=note)
    kept: list[str] = []
    numbers: set[int] = set()
    for line in cite.extract(given.query, passages):
        more = {*numbers, *line.numbers}
        told = "\n".join(f"- {one}" for one in (*kept, line.cited))
        longer = Reflected(text=told, sources=[known.source(n) for n in sorted(more)], made_by=cite.RULES, note=note)
        if cost(longer) > given.max_tokens:
            break
        made, numbers = longer, more
        kept.append(line.cited)
    return made if kept else Reflected(text="", sources=[], made_by=cite.RULES, note="Raise max_tokens.")


def cost(made: Reflected) -> int:
    """Tokens of a result as delivered; a dialect may call a source's id by a longer name."""
    return text.cost(made.model_dump_json(exclude_none=True)) + 3 * len(made.sources)


async def _thought(payer: budget.Payer, asked: Llm, given: Reflect, known: Given) -> Reflected:
    """The model's answer, once every citation in it has been found among the memories."""
    numbers = {one.number for one in prompts.given(known.hits, given.query)}

    def check(reply: Reply) -> Reflected:
        answer = cite.shorter(reply.text) or reply.text if reply.is_cut else reply.text
        cite.check(answer, numbers)
        while answer:
            sources = [known.source(n) for n in cite.cited(answer)]
            made = Reflected(text=answer.strip(), sources=sources, made_by=asked.model)
            if sources and cost(made) <= given.max_tokens:
                return made
            answer = cite.shorter(answer)
        raise ValueError(f"it is longer than {given.max_tokens} tokens.")

    messages = prompts.reflecting(known.bank, known.rules, _question(given), known.hits)
    return await budget.checked(payer, asked, Ask(messages, min(given.max_tokens, LONGEST_ANSWER)), check)


async def _shaped(payer: budget.Payer, asked: Llm, given: Reflect, known: Given, shape: Shape) -> Reflected:
    """The model's answer in the caller's shape; a second wrong one is an error."""

    def check(reply: Reply) -> object:
        value = parsed(reply.text)
        if fault := shape.fault(value):
            raise ValueError(f"it does not keep to the schema {fault}")
        return value

    messages = prompts.shaping(known.bank, known.rules, _question(given), known.hits)
    ask = Ask(messages, min(given.max_tokens, LONGEST_ANSWER), shape.schema)
    value = await budget.checked(payer, asked, ask, check)
    sources = [known.source(n) for n in range(1, len(known.hits) + 1)]
    while True:
        made = Reflected(text="See structured_output.", sources=sources, made_by=asked.model, structured_output=value)
        if cost(made) <= given.max_tokens:
            return made
        if not sources:
            raise BadInput(f"The structured answer does not fit in {given.max_tokens} tokens. Raise max_tokens.")
        sources = sources[:-1]


def _question(given: Reflect) -> prompts.Question:
    # Memories were cleared of secrets when they were stored; what the caller says now was not.
    clean = secrets.redacted
    return prompts.Question(clean(given.query).text, clean(given.context).text)
