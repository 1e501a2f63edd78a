"""Ask: an answer from what is remembered, as it comes about, with sources that open; and what was asked before."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from markupsafe import Markup
from pydantic import BaseModel, ValidationError
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute

from keepsake.core.errors import BadInput, KeepsakeError
from keepsake.core.words import line
from keepsake.ops import ask, chats, records, usage
from keepsake.ops.ask import Answered, Citation
from keepsake.ops.chats import WholeChat
from keepsake.ops.records import Record
from keepsake.surfaces.console import console as errors
from keepsake.surfaces.console import rendering as reading
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.memories_view import address
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.pages import forms, icons, rendering
from keepsake.surfaces.pages.forms import Fields

#: Conversations and messages of one that a page shows; characters of a question.
CHATS, MESSAGES, LONGEST = 20, 50, 20_000
#: Characters of a memory that name it where it has no title.
TITLE = 160
#: Where an answer ends and its list of sources begins, which the page shows beside it.
SOURCES = "\n### Sources\n"
RULES = "rules"
_BREAK = re.compile(r"\r\n|\r|\n")
#: How a kind of source is called, and its shape, where it is no kind of memory.
KINDS = {
    "pull": ("Pull request", "commit"),
    "issue": ("Issue", "ops"),
    "release": ("Release", "flag"),
    "tag": ("Tag", "flag"),
    "readme": ("README", "doc"),
    "file": ("File", "doc"),
    "note": ("Note", "doc"),
    "tree": ("Folder", "project"),
    "chat": ("Conversation", "ask"),
    "memory": ("Memory", "fact"),
    "commit": ("Commit", "commit"),
}


@dataclass(frozen=True, slots=True)
class Source:
    """What an answer rests on, as the page shows it."""

    n: int
    #: Its place on the page.
    anchor: str
    title: str
    label: str
    icon: str
    bank: str
    told: str
    #: Where it opens: here, and where it came from.
    link: str
    outside: str
    date: str | None


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer."""

    said: "Said"
    answer: Markup
    sources: tuple[Source, ...]
    note: str = ""
    tokens: tuple[int, int] | None = None

    @property
    def maker(self) -> str:
        """Who wrote it, and from what."""
        what = f"{len(self.sources)} source{'' if len(self.sources) == 1 else 's'}" if self.sources else "nothing found"
        if self.said.made_by == RULES:
            return f"Put together by rules from {what}, no model involved"
        return f"Written by {self.said.made_by} from {what}" if self.said.made_by else ""


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [
        console.page("/b/{bank}/ask", show),
        console.form("/b/{bank}/ask", take),
        console.form("/b/{bank}/ask/live", live),
        console.form("/b/{bank}/ask/forget", forget),
    ]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked, of which banks, and in which conversation."""

    question: str
    others: tuple[str, ...]
    chat: str | None

    @classmethod
    def of(cls, visit: Visit, fields: Fields) -> "Wanted":
        """What a form asks."""
        question = forms.typed(fields, "q").replace("\r\n", "\n").strip()
        others = tuple(dict.fromkeys(name for name in fields.all("with") if name != visit.bank))
        return cls(question, others[:19], fields.maybe("chat", 64))

    async def answered(self, visit: Visit) -> Answered:
        """The answer; over one bank it is kept, so that one can come back to it."""
        if not self.question or len(self.question) > LONGEST:
            raise BadInput(f"Write a question first, of at most {LONGEST:,} characters.")
        if self.others:
            return await visit.ask(ask.ask, banks=[visit.bank, *self.others], question=self.question)
        return await visit.ask(ask.ask, question=self.question, keep=True, chat_id=self.chat)


async def show(visit: Visit) -> Response:
    """The form, and a conversation where one is named."""
    chat = await visit.ask(chats.get, id=visit.query("chat"), limit=MESSAGES) if visit.query("chat") else None
    said = await turns(visit, chat) if chat else []
    values: dict[str, object] = {"chat": chat, "turns": said, "question": visit.query("q")[:LONGEST]}
    return await _page(visit, values)


async def _page(visit: Visit, values: Mapping[str, object], status: int = 200) -> Response:
    shared: dict[str, object] = {"chat": None, "turns": [], "question": "", "others": (), "problem": ""}
    return await visit.page("ask.html", {**shared, **await _known(visit), **values}, at="ask", status=status)


async def _known(visit: Visit) -> dict[str, object]:
    """What stands beside every answer: what was asked before, and what may still be spent."""
    offset = visit.number("offset")
    before = await visit.ask(chats.list_, limit=CHATS, offset=offset)
    return {
        "before": before.chats,
        "earlier": visit.to("ask", offset=offset + CHATS) if offset + CHATS < before.total else "",
        "budget": await visit.ask(usage.get, limit=1),
        "has_model": bool(visit.ctx.app.settings.llm_base_url and visit.ctx.app.settings.llm_model),
        "may_forget": visit.may("memory:delete"),
    }


async def turns(visit: Visit, chat: WholeChat) -> list[Turn]:
    """The questions of a conversation with their answers, newest first."""
    made: list[Said] = []
    question = ""
    for one in chat.said:
        if one.role == "user":
            question = one.text
        else:
            cited = _citations(one.citations)
            made.append(Said(one.n, question, one.text, cited, one.made_by or "", one.at))
    made.reverse()
    known = await _cited(visit, [one for said in made for one in said.citations])
    return [_turn(visit, said, known) for said in made]


async def _cited(visit: Visit, cited: Sequence[Citation]) -> Mapping[str, Record]:
    """The memories that are cited, by id, as far as they are still there; of many, the first ones."""
    wanted = list(dict.fromkeys(one.memory for one in cited if one.memory))[:PAGE]
    if not wanted:
        return {}
    # An answer from several banks cites memories of each.
    everywhere = replace(visit, ctx=replace(visit.ctx, bank=None))
    return {one.id: one for one in (await everywhere.ask(records.get, ids=wanted)).records}


def _citations(kept: Sequence[dict[str, object]]) -> list[Citation]:
    """What was cited, as far as it can still be read."""
    found: list[Citation] = []
    for one in kept:
        with suppress(ValidationError):
            found.append(Citation.model_validate(one))
    return found


@dataclass(frozen=True, slots=True)
class Said:
    """A question and its answer as they were said."""

    #: The answer's number in its conversation, 0 where none keeps it.
    n: int
    question: str
    text: str
    citations: Sequence[Citation]
    made_by: str
    at: str | None = None


async def _alone(visit: Visit, question: str, made: Answered) -> Turn:
    """A question with an answer that no conversation keeps."""
    said = Said(0, question, made.text, made.citations, made.made_by)
    return _costing(_turn(visit, said, await _cited(visit, made.citations)), made)


def _costing(turn: Turn, made: Answered) -> Turn:
    """An answer with what it cost, which is told once."""
    return replace(turn, note=made.note or "", tokens=(made.tokens_in, made.tokens_out))


def _turn(visit: Visit, said: Said, memories: Mapping[str, Record]) -> Turn:
    body = said.text.rpartition(SOURCES)[0] or said.text if said.citations else said.text
    sources = tuple(_source(visit, one, f"s{said.n}-{one.n}", memories) for one in said.citations)
    known = reading.Sources(
        {one.n: (f"#{one.anchor}", line(one.title, 80)) for one in sources},
        frozenset(one.outside for one in sources if one.outside),
    )
    return Turn(said, reading.markdown(body, known), sources)


def _source(visit: Visit, one: Citation, anchor: str, memories: Mapping[str, Record]) -> Source:
    found = memories.get(one.memory or "")
    label, icon = KINDS.get(one.kind, (one.kind.capitalize(), "fact"))
    if found is not None and one.kind == "memory":
        label, icon = icons.WORDS.get(found.kind, found.kind.capitalize()), icons.KINDS.get(found.kind, "fact")
    title = one.title or (line(found.text, TITLE) if found is not None else one.key)
    lines = f", lines {one.start_line} to {one.end_line}" if one.start_line and one.end_line else ""
    told = f"{one.path}{lines}" if one.path else _short(one)
    here = visit.to(f"/b/{{bank}}/memories/{one.memory}", one.bank) if one.memory else ""
    return Source(one.n, anchor, title, label, icon, one.bank, told, here, address(one.url or ""), one.date)


def _short(one: Citation) -> str:
    """A name that people would say."""
    if one.kind == "commit":
        return one.key[:10]
    if one.kind in ("pull", "issue"):
        return f"#{one.key.rpartition('/')[2]}"
    return one.author or ""


async def take(visit: Visit, fields: Fields) -> Response:
    """Answer where there is no script: the page comes when the answer is there."""
    wanted = Wanted.of(visit, fields)
    try:
        made = await wanted.answered(visit)
    except BadInput as error:
        values = {"question": wanted.question, "others": wanted.others, "problem": str(error)}
        return await _page(visit, values, 400)
    if made.chat_id is not None:
        return rendering.moved(visit.to("ask", chat=made.chat_id))
    # Nothing keeps what several banks said, for not everyone who sees one of them may see the others.
    return await _page(visit, {"turns": [await _alone(visit, wanted.question, made)], "others": wanted.others})


async def live(visit: Visit, fields: Fields) -> Response:
    """Tell how far the answer is, what of it may be read already, and then the answer."""
    wanted = Wanted.of(visit, fields)
    headers = {**rendering.HEADERS, "X-Accel-Buffering": "no"}
    return StreamingResponse(_told(visit, wanted), headers=headers, media_type="text/event-stream")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an answer is."""

    step: str
    #: What of it may be read already.
    draft: Answered | None = None
    is_withdrawn: bool = False


async def _told(visit: Visit, wanted: Wanted) -> AsyncIterator[str]:
    news: asyncio.Queue[Progress | None] = asyncio.Queue()

    async def report(progress: float, total: float, message: str) -> None:
        news.put_nowait(Progress(message))

    async def follow(made: BaseModel | None) -> None:
        draft = made if isinstance(made, Answered) else None
        news.put_nowait(Progress("Writing", draft) if draft else Progress("Asking again", is_withdrawn=True))

    following = replace(visit, ctx=replace(visit.ctx, report=report, follow=follow))
    asking = asyncio.create_task(wanted.answered(following))
    asking.add_done_callback(lambda _: news.put_nowait(None))
    try:
        yield _event(_part(visit, wanted, progress=Progress("Searching")))
        while (progress := await news.get()) is not None:
            draft = await _alone(visit, wanted.question, progress.draft) if progress.draft else None
            yield _event(_part(visit, wanted, progress=progress, draft=draft))
        yield await _ended(visit, wanted, asking)
    finally:
        # Whoever went away waits for nothing any more.
        asking.cancel()


async def _ended(visit: Visit, wanted: Wanted, asking: "asyncio.Task[Answered]") -> str:
    try:
        made = await asking
    except KeepsakeError as error:
        return _event(_text(await errors.refusal(visit, error))) + _event("stop", "asked")
    values = await _known(visit)
    if made.chat_id is None:
        alone = await _alone(visit, wanted.question, made)
        return _event(_part(visit, wanted, **values, turns=[alone])) + _event("stop", "asked")
    chat = await visit.ask(chats.get, id=made.chat_id, limit=MESSAGES)
    first, *earlier = await turns(visit, chat)
    told = _part(visit, wanted, **values, turns=[_costing(first, made), *earlier], chat=chat)
    return _event(told) + _event(visit.to("ask", chat=made.chat_id), "asked")


def _part(visit: Visit, wanted: Wanted, **values: object) -> str:
    shared: dict[str, object] = {"turns": [], "chat": None, "draft": None}
    return _text(visit.bare("ask_live.html", {**shared, "wanted": wanted, **values}))


def _text(response: Response) -> str:
    return bytes(response.body).decode()


def _event(data: str, name: str = "") -> str:
    """A message of the stream; a line break within it begins another line of data."""
    head = f"event: {name}\n" if name else ""
    return head + "".join(f"data: {one}\n" for one in _BREAK.split(data)) + "\n"


async def forget(visit: Visit, fields: Fields) -> Response:
    """Delete a conversation."""
    await visit.ask(chats.delete, id=fields.one("chat"))
    return rendering.moved(visit.to("ask"))
