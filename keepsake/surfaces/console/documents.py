"""Documents that were taken in, and the directives that answers follow."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core.errors import BadInput, Conflict, KeepsakeError, NotFound
from keepsake.ops import directives, documents
from keepsake.surfaces.console.console import Console, reason
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.pages import forms, rendering, words
from keepsake.surfaces.pages.forms import Fields

#: Characters of a text that a page shows.
SHOWN = 200_000
#: Characters of a text that a confirmation quotes.
QUOTED = 2_000
#: The fields of a new directive.
TYPED = ("name", "content", "priority", "tags")


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [
        console.page("/b/{bank}/documents", listed),
        console.page("/b/{bank}/documents/one", show),
        console.page("/b/{bank}/documents/delete", confirming),
        console.form("/b/{bank}/documents/delete", delete),
        console.page("/b/{bank}/directives", told),
        console.form("/b/{bank}/directives", tell),
        console.page("/b/{bank}/directives/{id}/delete", confirming_directive),
        console.form("/b/{bank}/directives/{id}/delete", delete_directive),
    ]


async def listed(visit: Visit) -> Response:
    """The documents, newest first."""
    sought, offset = visit.query("q").strip()[:1_000], visit.number("offset")
    found = await visit.ask(documents.list_, contains=sought or None, limit=PAGE + 1, offset=offset)
    values = {
        "documents": found.documents[:PAGE],
        "next": offset + PAGE if len(found.documents) > PAGE else 0,
        "sought": sought,
        "tab": "documents",
    }
    return await visit.page("documents.html", values, at="documents")


async def show(visit: Visit) -> Response:
    """One document with its text; its id may hold anything, so it is no part of the path."""
    found = await visit.ask(documents.get, id=visit.query("id")[:500])
    values = {
        "document": found,
        "text": found.text[:SHOWN],
        "is_cut": len(found.text) > SHOWN,
        "facts": [(str(name)[:100], str(value)[:500]) for name, value in list(found.metadata.items())[:30]],
        "may_delete": visit.may("memory:delete"),
    }
    return await visit.page("document_one.html", values, at="documents")


async def confirming(visit: Visit) -> Response:
    """What goes when a document goes."""
    found = await visit.ask(documents.get, id=visit.query("id")[:500])
    held = words.count(found.memories, "memory", "memories")
    values = {
        "title": f"Delete the document {found.id}",
        "said": found.text[:QUOTED],
        "about": f"With it go every revision of it and what rests on it: {held}, in the index and as vectors too.",
        "action": visit.to("/b/{bank}/documents/delete"),
        "back": visit.to("/b/{bank}/documents/one", id=found.id),
        "button": f"Delete it and {held} for good",
        "may_delete": visit.may("memory:delete"),
        "hidden": {"id": found.id},
    }
    return await visit.page("knowledge_delete.html", values, at="documents")


async def delete(visit: Visit, fields: Fields) -> Response:
    """Delete a document."""
    await visit.ask(documents.delete, id=forms.typed(fields, "id"))
    return rendering.moved(visit.to("documents"))


async def told(visit: Visit) -> Response:
    """The directives, the most important first."""
    return await _directives(visit, dict.fromkeys(TYPED, ""))


async def _directives(visit: Visit, typed: dict[str, str], error: KeepsakeError | None = None) -> Response:
    found = await visit.ask(directives.list_, active_only=False)
    values = {
        "directives": found.directives,
        "typed": typed,
        "problem": reason(error) if error else "",
        "tab": "directives",
        "may_write": visit.may("memory:write"),
        "may_delete": visit.may("memory:delete"),
    }
    return await visit.page("directives.html", values, at="documents", status=error.status if error else 200)


async def tell(visit: Visit, fields: Fields) -> Response:
    """Make a directive."""
    typed = {name: forms.typed(fields, name).replace("\r\n", "\n").strip() for name in TYPED}
    try:
        await visit.ask(
            directives.create,
            name=typed["name"],
            content=typed["content"],
            priority=_number(typed["priority"]),
            tags=[tag.strip() for tag in typed["tags"].split(",") if tag.strip()],
        )
    except (BadInput, Conflict) as error:
        return await _directives(visit, typed, error)
    return rendering.moved(visit.to("/b/{bank}/directives"))


def _number(told: str) -> int:
    if not told:
        return 0
    digits = told.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 8):
        raise BadInput("Give the priority as a whole number, such as 10.")
    return int(told)


async def confirming_directive(visit: Visit) -> Response:
    """What is followed no more when a directive goes."""
    id = visit.path("id")
    found = next(
        (one for one in (await visit.ask(directives.list_, active_only=False)).directives if one.id == id), None
    )
    if found is None:
        raise NotFound("There is no such directive. Someone may have deleted it.")
    values = {
        "title": f"Delete the directive {found.name}",
        "said": found.content,
        "about": "Answers no longer follow it. Memories stay as they are.",
        "action": visit.to(f"/b/{{bank}}/directives/{found.id}/delete"),
        "back": visit.to("/b/{bank}/directives"),
        "button": "Delete the directive for good",
        "may_delete": visit.may("memory:delete"),
        "hidden": {},
    }
    return await visit.page("knowledge_delete.html", values, at="documents")


async def delete_directive(visit: Visit, fields: Fields) -> Response:
    """Delete a directive."""
    await visit.ask(directives.delete, id=visit.path("id"))
    return rendering.moved(visit.to("/b/{bank}/directives"))
