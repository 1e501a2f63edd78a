"""The language model's answer about projects: it may look into folders and files, and must cite what it says."""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from keepsake.context import Ctx
from keepsake.core import cite, markdown, report, unfinished
from keepsake.core.evidence import DOCUMENTS, Evidence, Findings
from keepsake.core.inquiry import Inquiry
from keepsake.ops import budget, excerpts, live
from keepsake.ops.budget import Payer
from keepsake.ops.live import Project
from keepsake.services.llm import Ask, Heard, Json, Llm, Message, Quoted, Reply, fenced, parsed

#: How often the model is asked in all, and how many folders and files it may look into each time.
ROUNDS, LOOKS = 3, 4
#: Endpoints refuse to be asked for more than their model can say.
LONGEST_ANSWER = 8_192
#: Characters of one piece of evidence, and of all of it, that a model is given.
ONE, ALL = 2_400, 40_000

SYSTEM = (
    "You answer questions about software projects for a developer who is about to change them. Use only the numbered"
    " pieces of evidence that you are given: commits, pull requests, issues, releases, documents and lines of files."
    " Say what they do not tell instead of guessing. After every claim put the number of the evidence it comes from in"
    " square brackets, such as [1] or [2][5]; never cite a number that was not given, and never number 0. Answer in"
    " Markdown, briefly, the direct answer first, with dates and names where they matter; no images, no links, no list"
    " of sources."
)
LOOKING = (
    " You may first look into the projects: set `look` to folders to `list` and files to `read` (lines `start` to"
    " `end`), each with its `bank` and its `path`, and leave `answer` empty; what you asked for is given to you then."
)
_WORDS = re.compile(r"[^\W\d_]{2}")
#: Said when it is the model's last word.
LAST = "Answer now; nothing more can be looked into."
#: An unfinished answer is read again when it has grown by this part of it, or reading would take longer than writing.
GROWTH = 200
#: Given the sentences that may be read already, and what they may cite; none when they are taken back.
Follow = Callable[[str, Findings], Awaitable[None]]


class Look(BaseModel):
    """A folder or a file that the model wants to see."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    action: Literal["list", "read"]
    bank: str = ""
    path: str = Field("", max_length=1_000)
    start: int = 1
    end: int = 0


class Said(BaseModel):
    """What the model says in one round."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    look: list[Look] = Field(default_factory=list)
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Asking:
    """A question on its way to a model."""

    ctx: Ctx
    payer: Payer
    model: Llm
    projects: Sequence[Project]
    inquiry: Inquiry
    max_tokens: int
    follow: Follow | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's words, and all that it was given to cite."""

    text: str
    found: Findings


async def answered(asking: Asking, found: Findings) -> Answer:
    """Ask the model, a few times where it wants to look into files first; Unusable when it answers wrongly twice."""
    evidence = list(_fitting(asking.inquiry, found.evidence))
    messages = [Message("system", SYSTEM + LOOKING), _question(asking, found, evidence)]
    for turn in range(1, ROUNDS + 1):
        is_last = turn == ROUNDS
        await asking.ctx.report(turn, ROUNDS + 1, "Answering")
        heard = _hearing(asking.follow, replace(found, evidence=tuple(evidence))) if asking.follow else None
        ask = Ask(tuple(messages), min(asking.max_tokens, LONGEST_ANSWER), _schema(is_last), heard)
        said = await budget.checked(asking.payer, asking.model, ask, _checked(len(evidence), is_last))
        if said.answer:
            break
        more, told = await _looked(asking, said.look[:LOOKS], evidence)
        evidence += more
        messages += [Message("assistant", said.model_dump_json()), _shown(told, turn)]
    return Answer(said.answer, replace(found, evidence=tuple(evidence)))


def _hearing(follow: Follow, found: Findings) -> Heard:
    """Listens to a reply, and tells what of it may be read already."""
    read, told = 0, ""

    async def heard(reply: str) -> None:
        nonlocal read, told
        if reply and len(reply) - read < len(reply) // GROWTH:
            return
        read, ready = len(reply), unfinished.ready(unfinished.answer(reply), len(found.evidence))
        if ready != told:
            told = ready
            await follow(ready, found)

    return heard


def _schema(is_last: bool) -> Json:
    look = {
        "type": "array",
        "maxItems": 0 if is_last else LOOKS,
        "items": {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["list", "read"]},
                "bank": {"type": "string"},
                "path": {"type": "string"},
                "start": {"type": "integer"},
                "end": {"type": "integer"},
            },
            "required": ["action", "bank", "path"],
        },
    }
    answer = {"type": "string", "description": "The answer in Markdown with its citations."}
    return {"type": "object", "properties": {"look": look, "answer": answer}, "required": ["look", "answer"]}


def _checked(known: int, is_last: bool) -> Callable[[Reply], Said]:
    def check(reply: Reply) -> Said:
        said = _said(reply)
        if not said.answer.strip():
            if is_last or not said.look:
                raise ValueError("it has no answer; answer now, and cite.")
            return said
        answer = cite.shorter(said.answer) or said.answer if reply.is_cut else said.answer
        cite.check(markdown.prose(answer), range(1, known + 1))
        if not _WORDS.search(answer):
            raise ValueError("it says nothing.")
        return Said(answer=answer.strip())

    return check


def _said(reply: Reply) -> Said:
    """What was said, in the shape that was asked for; plain prose is taken for an answer."""
    text = reply.text.strip()
    if not text.startswith(unfinished.JSON):
        return Said(answer=text)
    try:
        return Said.model_validate(parsed(text))
    except ValidationError as error:
        raise ValueError("it does not keep to the schema.") from error


def _question(asking: Asking, found: Findings, evidence: Sequence[Evidence]) -> Message:
    quoted = [_quoted(n, one, asking.inquiry) for n, one in enumerate(evidence, 1)]
    if direct := report.direct(asking.inquiry, found):
        quoted.append(Quoted(0, "lookup", direct, "outside"))
    banks = ", ".join(json.dumps(project.bank.name) for project in asking.projects)
    return Message("user", f"{fenced(quoted)}\n\nProjects (banks): {banks}\nQuestion: {asking.inquiry.question}")


def _fitting(inquiry: Inquiry, evidence: Sequence[Evidence]) -> Sequence[Evidence]:
    """As much evidence, best first, as a model is given."""
    room = ALL
    for n, one in enumerate(evidence):
        room -= len(_told(one, inquiry))
        if room < 0 and n:
            return evidence[:n]
    return evidence


def _quoted(number: int, one: Evidence, inquiry: Inquiry) -> Quoted:
    return Quoted(number, f"{one.bank}: {one.name}", _told(one, inquiry), one.trust, one.date)


def _told(one: Evidence, inquiry: Inquiry) -> str:
    """A piece of evidence as a model reads it."""
    if one.kind in DOCUMENTS and not one.memory:
        return one.text[: 2 * ONE]
    parts = [cite.excerpt(inquiry.question, one.text, ONE)]
    if one.author:
        parts.append(f"By: {one.author}")
    if one.changes:
        parts.append(f"Changed: {'; '.join(one.changes[:20])}")
    return "\n".join(parts)


async def _looked(
    asking: Asking, looks: Sequence[Look], known: Sequence[Evidence]
) -> tuple[list[Evidence], list[Quoted]]:
    """What the model asked to see: new evidence with its numbers, listings, and why something is not shown."""
    more: list[Evidence] = []
    told: list[Quoted] = []
    for look in looks:
        try:
            one = await _seen(asking, look)
        except live.Unreadable as error:
            told.append(Quoted(0, "not shown", str(error), "outside"))
            continue
        if isinstance(one, Evidence):
            more.append(one)
            told.append(_quoted(len(known) + len(more), one, asking.inquiry))
        else:
            told.append(Quoted(0, f"folder {one.under or '/'}", _listing(one), "outside"))
    return more, told


async def _seen(asking: Asking, look: Look) -> Evidence | live.Listing:
    path = look.path.strip().removeprefix("./").strip("/")
    project = _project(asking.projects, look.bank)
    if look.action == "list":
        return await live.tree(asking.ctx, project, "" if path == "." else path)
    read = await live.read(asking.ctx, project, path, look.start, look.end)
    return excerpts.evidence(asking.ctx, project, read, read.start, read.end)


def _project(projects: Sequence[Project], named: str) -> Project:
    if len(projects) == 1 and not named:
        return projects[0]
    found = next((project for project in projects if project.bank.name == named), None)
    if found is None:
        raise live.Unreadable(f"There is no project {named!r} in this question.")
    return found


def _listing(found: live.Listing) -> str:
    lines = [f"{one.name}/ ({one.size} files)" if one.kind == "folder" else one.name for one in found.entries]
    return "\n".join([*lines, f"… and {found.more} more"] if found.more else lines)


def _shown(told: Sequence[Quoted], turn: int) -> Message:
    left = ROUNDS - turn - 1
    more = f"You may look {left} more time{'s' if left > 1 else ''}, or answer." if left else LAST
    return Message("user", f"{fenced(told)}\n\n{more}")
