"""Artifacts: what agents wrote, every version of it, what changed between two, and the form that writes the next."""

import asyncio

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core.errors import BadInput, Conflict, KeepsakeError
from keepsake.ops import artifacts
from keepsake.ops.artifacts import Whole
from keepsake.surfaces.console.console import Console, reason
from keepsake.surfaces.console.models import lines, marked
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.pages import forms, rendering
from keepsake.surfaces.pages.forms import Fields

ONE = "/b/{bank}/artifacts/{id}"
#: Characters of a text that a page shows, that can be changed in a form, and that a confirmation quotes.
SHOWN, CHANGED, QUOTED = 200_000, 100_000, 2_000


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [
        console.page("/b/{bank}/artifacts", listed),
        console.page(ONE, show),
        console.page(f"{ONE}/file", download),
        console.page(f"{ONE}/changes", changes),
        console.page(f"{ONE}/edit", editing),
        console.form(f"{ONE}/edit", edit),
        console.page(f"{ONE}/delete", confirming),
        console.form(f"{ONE}/delete", delete),
    ]


async def listed(visit: Visit) -> Response:
    """The artifacts, the last changed first."""
    type, offset = visit.query("type")[:64], visit.number("offset")
    found = await visit.ask(artifacts.list_, artifact_type=type or None, limit=PAGE, offset=offset)
    values = {
        "artifacts": found.artifacts,
        "total": found.total,
        "type": type,
        "types": sorted({one.artifact_type for one in found.artifacts} | ({type} if type else set())),
        "next": offset + PAGE if found.total > offset + PAGE else 0,
        "tab": "artifacts",
    }
    return await visit.page("artifacts.html", values, at="documents")


async def _found(visit: Visit) -> Whole:
    return await visit.ask(artifacts.get, id=visit.path("id"), version=visit.number("version") or None)


async def show(visit: Visit) -> Response:
    """One artifact, as it is now or was."""
    found = await _found(visit)
    content = found.content or ""
    values = {
        "artifact": found,
        "text": content[:SHOWN],
        "is_cut": found.content_truncated or len(content) > SHOWN,
        "is_current": found.shown_version == found.version,
        "may_write": visit.may("memory:write") and len(content) <= CHANGED and not found.content_truncated,
        "may_delete": visit.may("memory:delete"),
    }
    return await visit.page("artifact.html", values, at="documents")


async def download(visit: Visit) -> Response:
    """A version as a file; never as a page, whatever it holds."""
    found = await _found(visit)
    if found.content is None:
        raise BadInput("This version has more than 1 MiB. Read it with the command line: keepsake call artifact.get.")
    name = f"{found.identifier}-{found.shown_version}.txt".encode("ascii", "replace").decode().replace('"', "_")
    headers = {**rendering.HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(found.content, headers=headers, media_type="text/plain; charset=utf-8")


async def changes(visit: Visit) -> Response:
    """What changed between two versions."""
    found = await visit.ask(
        artifacts.diff,
        id=visit.path("id"),
        from_version=visit.number("from") or None,
        to_version=visit.number("to") or None,
    )
    known = await visit.ask(artifacts.get, id=found.artifact_id)
    # The first two lines name what is compared, which the page says in words.
    told = marked(found.diff.splitlines()[2:])
    values = {"found": found, "artifact": known, "lines": told}
    return await visit.page("artifact_changes.html", values, at="documents")


async def editing(visit: Visit) -> Response:
    """The form of the next version."""
    found = await visit.ask(artifacts.get, id=visit.path("id"))
    if found.content is None or len(found.content) > CHANGED:
        raise BadInput("This artifact is too large for a form. Write its next version with a client or the terminal.")
    return await _form(visit, found, found.content, "")


async def _form(visit: Visit, found: Whole, content: str, note: str, error: KeepsakeError | None = None) -> Response:
    is_stale = isinstance(error, Conflict)
    told = await asyncio.to_thread(lines, found.content or "", content) if is_stale else []
    values = {
        "artifact": found,
        "content": content,
        "remark": note,
        "lines": told,
        "is_stale": is_stale,
        "by": found.versions[0].author if found.versions else "Someone",
        "problem": reason(error) if error and not is_stale else "",
        "may_write": visit.may("memory:write"),
    }
    return await visit.page("artifact_edit.html", values, at="documents", status=error.status if error else 200)


async def edit(visit: Visit, fields: Fields) -> Response:
    """Write the next version, unless someone wrote one since."""
    id, content = visit.path("id"), forms.typed(fields, "content").replace("\r\n", "\n")
    note, version = forms.typed(fields, "note").strip(), forms.typed(fields, "version")
    if not (version.isascii() and version.isdecimal() and len(version) < 10):
        raise BadInput("The form does not say which version it changes. Open it again.")
    try:
        made = await visit.ask(artifacts.update, id=id, content=content, note=note, expected_version=int(version))
    except (BadInput, Conflict) as error:
        return await _form(visit, await visit.ask(artifacts.get, id=id), content, note, error)
    return rendering.moved(visit.to(f"/b/{{bank}}/artifacts/{made.artifact_id}"))


async def confirming(visit: Visit) -> Response:
    """What goes when an artifact goes."""
    found = await visit.ask(artifacts.get, id=visit.path("id"))
    values = {
        "title": f"Delete the artifact {found.title}",
        "said": (found.content or "It has more than 1 MiB.")[:QUOTED],
        "about": f"With it go all {found.version} versions and every memory of them, in the index and as vectors too.",
        "action": visit.to(f"/b/{{bank}}/artifacts/{found.artifact_id}/delete"),
        "back": visit.to(f"/b/{{bank}}/artifacts/{found.artifact_id}"),
        "button": "Delete the artifact for good",
        "may_delete": visit.may("memory:delete"),
        "hidden": {},
    }
    return await visit.page("knowledge_delete.html", values, at="documents")


async def delete(visit: Visit, fields: Fields) -> Response:
    """Delete an artifact."""
    await visit.ask(artifacts.delete, id=visit.path("id"))
    return rendering.moved(visit.to("/b/{bank}/artifacts"))
