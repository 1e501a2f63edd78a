"""Mental models: documents that agents keep current, what each sentence rests on, and every version."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core import linediff
from keepsake.core.errors import BadInput, Conflict, KeepsakeError
from keepsake.ops import mental_models, records
from keepsake.ops.mental_models import ModelText
from keepsake.ops.records import MOST, Record
from keepsake.surfaces.console.console import Console, reason
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.pages import forms, rendering, words
from keepsake.surfaces.pages.forms import Fields

ONE = "/b/{bank}/models/{id}"
#: Memories that a sentence names, and lines of a difference.
NAMED, LINES = 6, 2_000


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and the memories it rests on that still hold."""

    text: str
    memories: list[Record]
    more: int


@dataclass(frozen=True, slots=True)
class Typed:
    """What someone typed into the form."""

    name: str = ""
    query: str = ""
    is_kept: bool = True


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [
        console.page("/b/{bank}/models", listed),
        console.page("/b/{bank}/models/new", new),
        console.form("/b/{bank}/models/new", create),
        console.page(ONE, show),
        console.page(f"{ONE}/changes", changes),
        console.page(f"{ONE}/edit", editing),
        console.form(f"{ONE}/edit", edit),
        console.form(f"{ONE}/refresh", refresh),
        console.page(f"{ONE}/delete", confirming),
        console.form(f"{ONE}/delete", delete),
    ]


async def listed(visit: Visit) -> Response:
    """Every model of the bank."""
    found = (await visit.ask(mental_models.list_)).models
    return await visit.page("models.html", {"models": found, "may_write": visit.may("memory:write")}, at="models")


async def show(visit: Visit) -> Response:
    """One model, as it is now or was."""
    id, number = visit.path("id"), visit.number("version")
    asked = visit.ask(mental_models.version, id=id, version=number) if number else visit.ask(mental_models.get, id=id)
    found = await asked
    known = await visit.ask(mental_models.versions, id=found.id)
    values = {
        "model": found,
        "sentences": await _sentences(visit, found),
        "versions": known.versions,
        "is_current": not known.versions or found.version == known.versions[0].version,
        "is_asked": visit.query("asked") == "yes",
        "may_write": visit.may("memory:write"),
        "may_delete": visit.may("memory:delete"),
    }
    return await visit.page("model.html", values, at="models")


async def _sentences(visit: Visit, found: ModelText) -> list[Sentence]:
    """What it says, with the evidence of each sentence; the first fifty memories are told in words."""
    named = list(dict.fromkeys(id for one in found.evidence for id in one.memories[:NAMED]))[:MOST]
    known = {one.id: one for one in (await visit.ask(records.get, ids=named)).records} if named else {}
    told = []
    for one in found.evidence:
        shown = [known[id] for id in one.memories[:NAMED] if id in known]
        told.append(Sentence(one.sentence, shown, len(one.memories) - len(shown)))
    return told


async def changes(visit: Visit) -> Response:
    """What changed from one version to another."""
    id = visit.path("id")
    known = [one.version for one in (await visit.ask(mental_models.versions, id=id)).versions]
    later = visit.number("to", known[0] if known else 1)
    earlier = visit.number("from", max([one for one in known if one < later], default=later))
    new, old = [await visit.ask(mental_models.version, id=id, version=number or 1) for number in (later, earlier)]
    told = await asyncio.to_thread(lines, old.content, new.content)
    values = {"model": new, "old": old, "lines": told, "versions": known}
    return await visit.page("model_changes.html", values, at="models")


def lines(old: str, new: str) -> list[tuple[str, str]]:
    """A difference as a page shows it."""
    return marked(linediff.unified(old.splitlines(), new.splitlines()))


def marked(told: Iterable[str]) -> list[tuple[str, str]]:
    """Lines of a unified difference, each with its mark."""
    return [_marked(line) for line in islice(told, LINES)]


def _marked(line: str) -> tuple[str, str]:
    if line.startswith("@@"):
        return "", f"… from line {line.partition('+')[2].partition(',')[0]}"
    return line[:1].strip(), line[1:] or "\u00a0"


async def new(visit: Visit) -> Response:
    """The form of a new model."""
    return await _form(visit, Typed(), "")


async def create(visit: Visit, fields: Fields) -> Response:
    """Take it; its text is made in the background."""
    typed = _typed(fields)
    try:
        made = await visit.ask(
            mental_models.create,
            name=typed.name,
            source_query=typed.query,
            refresh_after_consolidation=typed.is_kept,
        )
    except (BadInput, Conflict) as error:
        return await _form(visit, typed, "", error)
    return rendering.moved(visit.to(f"/b/{{bank}}/models/{made.id}", asked="yes"))


async def editing(visit: Visit) -> Response:
    """The form of one that is there."""
    found = await visit.ask(mental_models.get, id=visit.path("id"))
    return await _form(visit, Typed(found.name, found.source_query, found.refresh_after_consolidation), found.id)


async def edit(visit: Visit, fields: Fields) -> Response:
    """Take what was changed."""
    typed, id = _typed(fields), visit.path("id")
    try:
        await visit.ask(
            mental_models.update,
            id=id,
            name=typed.name,
            source_query=typed.query,
            refresh_after_consolidation=typed.is_kept,
        )
    except (BadInput, Conflict) as error:
        return await _form(visit, typed, id, error)
    return rendering.moved(visit.to(f"/b/{{bank}}/models/{id}"))


def _typed(fields: Fields) -> Typed:
    name, query = (forms.typed(fields, name).replace("\r\n", "\n").strip() for name in ("name", "query"))
    return Typed(name, query, forms.typed(fields, "kept") == "yes")


async def _form(visit: Visit, typed: Typed, id: str, error: KeepsakeError | None = None) -> Response:
    values = {
        "typed": typed,
        "id": id,
        "problem": reason(error) if error else "",
        "may_write": visit.may("memory:write"),
    }
    return await visit.page("model_form.html", values, at="models", status=error.status if error else 200)


async def refresh(visit: Visit, fields: Fields) -> Response:
    """Have its text made anew."""
    made = await visit.ask(mental_models.refresh, id=visit.path("id"))
    return rendering.moved(visit.to(f"/b/{{bank}}/models/{made.id}", asked="yes"))


async def confirming(visit: Visit) -> Response:
    """What goes when it goes."""
    found = await visit.ask(mental_models.get, id=visit.path("id"))
    values = {
        "title": f"Delete the model {found.name}",
        "said": found.content or "It has no text yet.",
        "about": f"{_versions(found.versions)} of its text. The memories that it rests on stay.",
        "action": visit.to(f"/b/{{bank}}/models/{found.id}/delete"),
        "back": visit.to(f"/b/{{bank}}/models/{found.id}"),
        "button": "Delete the model for good",
        "may_delete": visit.may("memory:delete"),
        "hidden": {},
    }
    return await visit.page("knowledge_delete.html", values, at="models")


async def delete(visit: Visit, fields: Fields) -> Response:
    """Delete it."""
    await visit.ask(mental_models.delete, id=visit.path("id"))
    return rendering.moved(visit.to("models"))


def _versions(kept: int) -> str:
    return f"With it {'goes' if kept == 1 else 'go'} {words.count(kept, 'kept version')}"
