"""Analyze: a brief in Markdown over documents, memories, artifacts and recent chats, with its sources checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core.lazy import lazy
from keepsake.core.models import InBank
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import ask, budget, handed_out
from keepsake.ops import banks as bank_ops
from keepsake.ops.ask import Answered, Asked, Draft
from keepsake.services.llm import LlmFailed
from keepsake.store import repos, usage
from keepsake.store.engine import Tx

if TYPE_CHECKING:
    from keepsake.core import cite, inquiry, markdown, report, sectioned
    from keepsake.core.evidence import Evidence, Findings
    from keepsake.ops import gathering, live, prompts
    from keepsake.services import llm
else:
    # A stdio server lists this tool before anyone asks.
    cite = lazy("keepsake.core.cite")
    gathering = lazy("keepsake.ops.gathering")
    inquiry = lazy("keepsake.core.inquiry")
    live = lazy("keepsake.ops.live")
    llm = lazy("keepsake.services.llm")
    markdown = lazy("keepsake.core.markdown")
    prompts = lazy("keepsake.ops.prompts")
    report = lazy("keepsake.core.report")
    sectioned = lazy("keepsake.core.sectioned")

#: Characters of one text, and of all, that a model is given.
ONE, ALL = 2_000, 40_000
#: Endpoints refuse to be asked for more than their model can say.
LONGEST_ANSWER = 8_192


class Analyze(InBank):
    """On what, and how long."""

    topic: Clean = Field("", max_length=20_000, description="What the brief is about; the whole project when left out.")
    max_tokens: int = Field(
        2_000, ge=ask.LEAST, le=100_000, description="Maximum tokens of the brief with its sources."
    )


@dataclass(frozen=True, slots=True)
class Basis:
    """What a brief is made from: evidence in the order of its numbers, and the section each piece belongs to."""

    topic: str
    found: "Findings"
    sections: Mapping[str, str]

    def by_rules(self, asked: Asked, found: "Findings", note: str | None = None) -> Draft:
        """What rules write from it."""
        return Draft(sectioned.written(self.topic, found, self.sections, asked.max_tokens), found, cite.RULES, note)


@operation("brief.analyze", effect=Effect.READ, scope="memory:read")
async def analyze(ctx: Ctx, given: Analyze) -> Answered:
    """Write a cited Markdown brief from documents, memories, artifacts and recent chats, on a topic or on all."""
    project = await ctx.read(lambda tx: _project(tx, ctx, given.bank))
    if project is None:
        return _nothing(bank_ops.wanted(ctx, given.bank)[0])
    topic = given.topic.strip()
    basis = Basis(topic, *await gathering.gathered(ctx, project, topic))
    # Nothing may have been written yet by this process, and the row's id is made before it is.
    await ctx.store.lease()
    payer = replace(budget.payer(ctx, project.bank.id), row=ctx.store.new_id())
    asked = Asked(ctx, [project], inquiry.Inquiry(topic, "other"), given.max_tokens, payer)
    draft = await ask.checked(asked, await _drafted(asked, basis), basis.by_rules)
    spent = await ctx.read(lambda tx: usage.get(tx, ctx.org, payer.bank, payer.row))
    made = ask.shown(asked, draft, (spent.tokens_in, spent.tokens_out) if spent else (0, 0))
    handed_out.made(ctx, project.bank.name, made.text)
    return made


async def _project(tx: Tx, ctx: Ctx, named: str | None) -> "live.Project | None":
    bank = await bank_ops.found(tx, ctx, named)
    return live.Project(bank, await repos.get(tx, ctx.org, bank.id)) if bank else None


def _nothing(bank: str) -> Answered:
    return Answered(text=report.NOTHING, citations=[], made_by=cite.RULES, banks=[bank], tokens_in=0, tokens_out=0)


async def _drafted(asked: Asked, basis: Basis) -> Draft:
    """The model's brief, where there is one and there is something to write about; else that of rules."""
    model = budget.model(asked.ctx.app)
    if model is None or not basis.found.evidence:
        return basis.by_rules(asked, basis.found)
    texts = _quoted(basis)
    numbers = range(1, len(texts) + 1)

    def check(reply: llm.Reply) -> str:
        answer = cite.shorter(reply.text) or reply.text if reply.is_cut else reply.text
        cite.check(markdown.prose(answer), numbers)
        return answer.strip()

    messages = prompts.analysing(basis.topic, texts)
    wanted = llm.Ask(messages, min(asked.max_tokens, LONGEST_ANSWER))
    try:
        text = await budget.checked(asked.payer, model, wanted, check)
    except budget.Unusable:
        # The model's own words stay out of what is said of its mistakes.
        return basis.by_rules(asked, basis.found, "Made by rules: the model's answer could not be used.")
    except (LlmFailed, budget.Spent) as error:
        return basis.by_rules(asked, basis.found, f"Made by rules: {error}")
    return Draft(text, basis.found, model.model)


def _quoted(basis: Basis) -> "Sequence[llm.Quoted]":
    """As many texts, in their order, as a model is given."""
    kept: list[llm.Quoted] = []
    room = ALL
    for n, one in enumerate(basis.found.evidence, 1):
        text = cite.excerpt(basis.topic, one.text, ONE)
        room -= len(text)
        if room < 0 and kept:
            break
        kept.append(llm.Quoted(n, _name(one, basis), text, one.trust, one.date))
    return kept


def _name(one: "Evidence", basis: Basis) -> str:
    return f"{basis.sections.get(one.key, 'Documents')}: {one.name}"
