"""Changing memories: remember, correct, pin and retag, one or several; a stale correction shows both versions."""

from dataclasses import dataclass
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core.errors import BadInput, Conflict
from keepsake.core.models import Memory
from keepsake.ops import memory, pinning, provenance, truth
from keepsake.surfaces.console.console import Console, reason
from keepsake.surfaces.console.memories_view import Said, compared, tags_of
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.pages import forms, rendering, signin
from keepsake.surfaces.pages.forms import Fields
from keepsake.surfaces.pages.words import who

#: Characters that a form takes; what is longer is a document.
LONGEST = 20_000
ONE = "/b/{bank}/memories/{id}"


def routes(console: Console) -> list[BaseRoute]:
    """The pages and forms of this group."""
    return [
        console.page("/b/{bank}/memories/new", new),
        console.form("/b/{bank}/memories/new", remember),
        console.form("/b/{bank}/memories/chosen", mark),
        console.page(f"{ONE}/correct", correcting),
        console.form(f"{ONE}/correct", correct),
        console.page(f"{ONE}/tags", tagging),
        console.form(f"{ONE}/tags", tag),
        console.form(f"{ONE}/pin", pin),
    ]


def place(id: str) -> str:
    """The path of a memory below /console."""
    return f"/b/{{bank}}/memories/{quote(id, safe='')}"


async def new(visit: Visit) -> Response:
    """Something to remember."""
    return await _new(visit, "", "")


async def _new(visit: Visit, content: str, tags: str, problem: str = "") -> Response:
    values = {"content": content, "tags": tags, "problem": problem}
    return await visit.page("memory_new.html", values, at="memories", status=400 if problem else 200)


async def remember(visit: Visit, fields: Fields) -> Response:
    """Keep what was typed."""
    content, tags = forms.typed(fields, "content"), forms.typed(fields, "tags")
    if not content.strip():
        return await _new(visit, content, tags, "Type what is to be remembered.")
    try:
        kept = await visit.ask(memory.retain, content=content, tags=tags_of(tags))
    except BadInput as error:
        return await _new(visit, content, tags, reason(error))
    if kept.id is None:
        return await _new(visit, content, tags, kept.note or "Nothing was stored.")
    return rendering.moved(visit.to(place(kept.id)))


async def correcting(visit: Visit) -> Response:
    """The words to be corrected."""
    told = await visit.ask(provenance.get, id=visit.path("id"))
    if told.later:
        return await _stale(visit, told.later[0], told.record.text)
    return await _correcting(visit, told.record, told.record.text)


async def _correcting(visit: Visit, one: Memory, content: str, problem: str = "") -> Response:
    values = {"one": one, "content": content, "problem": problem}
    return await visit.page("memory_correct.html", values, at="memories", status=400 if problem else 200)


async def correct(visit: Visit, fields: Fields) -> Response:
    """Let what was typed take the place of the memory, unless someone was there first."""
    id, keep = visit.path("id"), fields.maybe("keep") or "typed"
    if keep == "theirs":
        return rendering.moved(visit.to(place(id)))
    content = forms.typed(fields, "mine" if keep == "mine" else "content")
    if not content.strip() or len(content) > LONGEST:
        told = await visit.ask(provenance.get, id=id)
        problem = f"Type what is true, in at most {LONGEST:,} characters. To remove it instead, forget it."
        return await _correcting(visit, told.record, content, problem)
    try:
        made = await visit.ask(truth.correct, id=id, content=content, if_current=True)
    except Conflict:
        told = await visit.ask(provenance.get, id=id)
        if not told.later:
            raise
        return await _stale(visit, told.later[0], content, 409)
    return rendering.moved(visit.to(place(made.id)))


@dataclass(frozen=True, slots=True)
class Versions:
    """What holds now and what someone typed, each with what the other says otherwise."""

    theirs: Said
    mine: Said


async def _stale(visit: Visit, current: Memory, mine: str, status: int = 200) -> Response:
    """Both versions, to choose from or to write a third."""
    both = Versions(*compared(current.text, mine))
    values = {"current": current, "mine": mine, "both": both, "by": who(current.author), "is_typed": status == 409}
    return await visit.page("memory_stale.html", values, at="memories", status=status)


async def tagging(visit: Visit) -> Response:
    """The tags of a memory."""
    one = await visit.ask(memory.get, id=visit.path("id"))
    return await _tagging(visit, one, ", ".join(one.tags))


async def _tagging(visit: Visit, one: Memory, typed: str, problem: str = "") -> Response:
    values = {"one": one, "typed": typed, "problem": problem}
    return await visit.page("memory_tags.html", values, at="memories", status=400 if problem else 200)


async def tag(visit: Visit, fields: Fields) -> Response:
    """Give a memory the tags that were typed; what others changed meanwhile stays."""
    id, had, typed = visit.path("id"), fields.all("had"), forms.typed(fields, "tags")
    wanted = tags_of(typed)
    add, remove = [one for one in wanted if one not in had], [one for one in had if one not in wanted]
    try:
        await visit.ask(pinning.tag, ids=[id], add=add, remove=remove)
    except BadInput as error:
        return await _tagging(visit, await visit.ask(memory.get, id=id), typed, reason(error))
    return rendering.moved(visit.to(place(id)))


async def pin(visit: Visit, fields: Fields) -> Response:
    """Pin a memory, or take the pin out."""
    id = visit.path("id")
    await visit.ask(pinning.pin, ids=[id], pinned=fields.maybe("pinned") == "yes")
    return rendering.moved(visit.to(place(id)))


async def mark(visit: Visit, fields: Fields) -> Response:
    """Do something with several memories."""
    ids, what = list(fields.all("id")), fields.maybe("do") or ""
    back = signin.onward(fields.maybe("back"))
    if not ids:
        return rendering.moved(f"{back}{'&' if '?' in back else '?'}select=none")
    if what == "forget":
        return rendering.moved(visit.to("/b/{bank}/memories/forget", id=ids))
    if what in ("tag", "untag"):
        tags = tags_of(forms.typed(fields, "tags"))
        await visit.ask(pinning.tag, ids=ids, **{"add" if what == "tag" else "remove": tags})
    elif what in ("pin", "unpin"):
        await visit.ask(pinning.pin, ids=ids, pinned=what == "pin")
    else:
        raise BadInput("Choose what to do with them: pin, tag or forget.")
    return rendering.moved(back)
