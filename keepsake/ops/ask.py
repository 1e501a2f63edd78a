"""Ask: an answer about one or several projects, with the commits, pull requests, issues and files that prove it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import Field

from keepsake.context import Ctx, Follow
from keepsake.core.lazy import lazy
from keepsake.core.models import BankName, InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean, Filled, cost
from keepsake.ops import banks as bank_ops
from keepsake.ops import budget, handed_out
from keepsake.store import repos, usage
from keepsake.store.engine import Tx

if TYPE_CHECKING:
    from keepsake.core import cite, inquiry, markdown, report, unfinished
    from keepsake.core.evidence import Evidence, Findings
    from keepsake.core.inquiry import Inquiry
    from keepsake.ops import answering, chats, citations, finding, live
    from keepsake.services import llm
else:
    # A stdio server lists this tool before anyone asks.
    answering = lazy("keepsake.ops.answering")
    chats = lazy("keepsake.ops.chats")
    citations = lazy("keepsake.ops.citations")
    cite = lazy("keepsake.core.cite")
    finding = lazy("keepsake.ops.finding")
    inquiry = lazy("keepsake.core.inquiry")
    live = lazy("keepsake.ops.live")
    llm = lazy("keepsake.services.llm")
    markdown = lazy("keepsake.core.markdown")
    report = lazy("keepsake.core.report")
    unfinished = lazy("keepsake.core.unfinished")

#: The least that an answer with its sources fits in.
LEAST = 256


class AskProjects(InBank):
    """A question about a project, or about several."""

    banks: list[BankName] | None = Field(
        None, min_length=1, max_length=20, description="Names of the projects' banks; `bank` alone when left out."
    )
    question: Filled = Field(max_length=20_000, description="What you want to know.")
    max_tokens: int = Field(4096, ge=LEAST, le=100_000, description="Maximum tokens of the answer with its sources.")
    chat_id: Clean | None = Field(
        None, min_length=1, max_length=64, description="A chat to go on with; the question may lean on earlier ones."
    )
    keep: bool = Field(False, description="Begin a chat with this question, to go on with later.")


class Citation(Result):
    """One thing that the answer rests on; it was checked to exist."""

    n: int = Field(description="Its number in the answer: [n].")
    kind: str = Field(description="commit, pull, issue, release, tag, readme, file, note, tree, chat or memory.")
    bank: str = Field(description="The project that it belongs to.")
    key: str = Field(
        description="The commit's full name, pr/12, issue/7, release/v1.0, a path, chat/n, or a memory's id."
    )
    title: str = Field(description="Its subject, title or heading.")
    date: str | None = Field(None, description="When it happened, ISO 8601.")
    author: str | None = Field(None, description="Who did it.")
    path: str | None = Field(None, description="The file, from the top of the repository.")
    start_line: int | None = Field(None, description="First line, counted from 1.")
    end_line: int | None = Field(None, description="Last line.")
    revision: str | None = Field(None, description="The commit at which the lines are these.")
    url: str | None = Field(None, description="Where it can be looked at, for what is on GitHub.")
    memory: str | None = Field(None, description="Id of the memory that tells it, where one does.")


class Answered(Result):
    """An answer and what it rests on."""

    text: str = Field(description="The answer in Markdown; [n] names the source of what stands before it.")
    citations: list[Citation] = Field(description="What it rests on, by number.")
    made_by: str = Field(description="The language model that made it, or `rules`: sentences taken from the sources.")
    banks: list[str] = Field(description="The projects that were looked through.")
    note: str | None = Field(None, description="Said when something was left out, or rules did what a model should.")
    tokens_in: int = Field(description="Tokens that the language model was given.")
    tokens_out: int = Field(description="Tokens that it answered with.")
    chat_id: str | None = Field(None, description="The chat that keeps it, where one was asked for.")


def with_maker(answer: Answered) -> str:
    """An answer to be read, with who made it."""
    maker = "rules, without a language model" if answer.made_by == cite.RULES else answer.made_by
    notes = [answer.note] if answer.note else []
    return "\n\n".join([answer.text, *notes, f"_Answered by {maker}._"])


@dataclass(frozen=True, slots=True)
class Asked:
    """A question on its way to an answer."""

    ctx: Ctx
    projects: "Sequence[live.Project]"
    inquiry: "Inquiry"
    max_tokens: int
    payer: budget.Payer


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer before its citations were checked."""

    text: str
    found: "Findings"
    made_by: str
    note: str | None = None


@operation("memory.ask", effect=Effect.READ, scope="memory:read")
async def ask(ctx: Ctx, given: AskProjects) -> Answered:
    """Answer a question from memories, commits, pull requests, issues and files, citing what was checked."""
    projects = await ctx.read(lambda tx: _projects(tx, ctx, given))
    talk = await chats.opened(ctx, given.chat_id, projects) if given.keep or given.chat_id else None
    # Nothing may have been written yet by this process, and the row's id is made before it is.
    await ctx.store.lease()
    payer = replace(budget.payer(ctx, projects[0].bank.id if projects else 0), row=ctx.store.new_id())
    meant = talk.read(given.question) if talk else inquiry.read(given.question, ctx.now)
    asked = Asked(ctx, projects, meant, given.max_tokens, payer)
    found = await finding.found(ctx, projects, asked.inquiry)
    draft = await checked(asked, await _drafted(asked, found), _by_rules)
    spent = await ctx.read(lambda tx: usage.get(tx, ctx.org, payer.bank, payer.row))
    if spent is None:
        await budget.noted(payer, cite.RULES, 0)
    made = shown(asked, draft, (spent.tokens_in, spent.tokens_out) if spent else (0, 0))
    for name in made.banks:
        handed_out.made(ctx, name, made.text)
    return await _kept(talk, given.question, made, draft) if talk else made


async def _kept(talk: "chats.Talk", question: str, made: Answered, draft: Draft) -> Answered:
    """The answer, noted in its chat."""
    cited = [one.model_dump(mode="json", exclude_none=True) for one in made.citations]
    answer = chats.Answer(made.text, made.made_by, cited, draft.found.evidence)
    return made.model_copy(update={"chat_id": await talk.noted(question, answer)})


async def _projects(tx: Tx, ctx: Ctx, given: AskProjects) -> "list[live.Project]":
    """The banks that are meant, each with its repository."""
    if given.banks:
        found = list((await bank_ops.several(tx, ctx, given.banks)).values())
    else:
        own = await bank_ops.found(tx, ctx, given.bank)
        found = [own] if own else []
    return [live.Project(bank, await repos.get(tx, ctx.org, bank.id)) for bank in found]


async def _drafted(asked: Asked, found: "Findings") -> Draft:
    """The model's answer, where there is one and there is something to answer from; else that of rules."""
    model = budget.model(asked.ctx.app)
    if model is None or not found.evidence:
        return _by_rules(asked, found)
    follow = _following(asked, asked.ctx.follow, model.model) if asked.ctx.follow else None
    asking = answering.Asking(asked.ctx, asked.payer, model, asked.projects, asked.inquiry, asked.max_tokens, follow)
    try:
        answer = await answering.answered(asking, found)
    except llm.LlmFailed as error:
        return _by_rules(asked, found, f"Made by rules: {error}")
    except budget.Unusable:
        # The model's own words stay out of what is said of its mistakes.
        return _by_rules(asked, found, "Made by rules: the model's answer could not be used.")
    return Draft(answer.text, answer.found, model.model)


def _following(asked: Asked, follow: Follow, model: str) -> "answering.Follow":
    """Tells who reads along what they may see already, checked and made harmless like the whole."""
    seen: dict[int, bool] = {}
    last: Answered | None = None

    async def told(text: str, found: "Findings") -> None:
        nonlocal last
        new = {n: found.evidence[n - 1] for n in markdown.cited(text) if n not in seen}
        lost = await citations.gone(asked.ctx, asked.projects, list(new.values()))
        seen.update({n: one not in lost for n, one in new.items()})
        left = markdown.without(text, [n for n, is_there in seen.items() if not is_there])
        body = unfinished.ready(f"{left}\n", len(found.evidence))
        made = shown(asked, Draft(body, found, model), (0, 0)) if body else None
        if made != last:
            last = made
            await follow(made)

    return told


def _by_rules(asked: Asked, found: "Findings", note: str | None = None) -> Draft:
    return Draft(report.extracted(asked.inquiry, found, asked.max_tokens), found, cite.RULES, note)


Again = Callable[[Asked, "Findings", str | None], Draft]


async def checked(asked: Asked, draft: Draft, by_rules: Again) -> Draft:
    """The answer without citations of what does not exist, and without what rests on them alone."""
    evidence = draft.found.evidence
    numbers = [n for n in markdown.cited(draft.text) if 0 < n <= len(evidence)]
    lost = await citations.gone(asked.ctx, asked.projects, [evidence[n - 1] for n in numbers])
    if not lost:
        return draft
    told = ", ".join(one.name for one in lost[:5])
    note = " ".join((*([draft.note] if draft.note else []), f"Left out, because no longer there: {told}."))
    left = draft.found.without(lost)
    text = markdown.without(draft.text, {draft.found.number(one) for one in lost})
    if draft.made_by != cite.RULES and markdown.cited(text):
        return replace(draft, text=text, note=note)
    return await checked(asked, by_rules(asked, left, note), by_rules)


def shown(asked: Asked, draft: Draft, tokens: tuple[int, int]) -> Answered:
    """The answer with its sources, numbered in the order in which they are cited, within the tokens allowed."""
    known = {one.url for one in draft.found.evidence if one.url}
    body = markdown.harmless(draft.text, known) if draft.made_by != cite.RULES else draft.text
    while body and cost(whole := _whole(draft.found, body)) > asked.max_tokens and cite.shorter(body):
        body = cite.shorter(body)
    numbers = markdown.cited(body)
    names = [project.bank.name for project in asked.projects]
    return Answered(
        text=whole if numbers else report.NOTHING,
        citations=[_citation(n, draft.found.evidence[number - 1]) for n, number in enumerate(numbers, 1)],
        made_by=draft.made_by,
        banks=names,
        note=draft.note,
        tokens_in=tokens[0],
        tokens_out=tokens[1],
    )


def _whole(found: "Findings", body: str) -> str:
    """An answer and its sources, numbered from 1."""
    numbers = markdown.cited(body)
    cited = [found.evidence[number - 1] for number in numbers]
    text = markdown.renumbered(body, {number: n for n, number in enumerate(numbers, 1)})
    sources = report.listed(cited, range(1, len(cited) + 1))
    return "\n".join((text.strip(), "\n### Sources\n", *sources))


def _citation(n: int, one: "Evidence") -> Citation:
    return Citation(
        n=n,
        kind=one.kind,
        bank=one.bank,
        key=one.key,
        title=one.title,
        date=one.date or None,
        author=one.author or None,
        path=one.path or None,
        start_line=one.start or None,
        end_line=one.end or None,
        revision=one.revision or None,
        url=one.url or None,
        memory=one.memory or None,
    )
