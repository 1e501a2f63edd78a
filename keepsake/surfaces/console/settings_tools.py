"""The Enrolled tools tab: which commands and calls agents may ask for, and who must agree."""

import json
from collections.abc import Mapping

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core import template
from keepsake.core.enrolment import Enrolment
from keepsake.core.errors import BadInput, Conflict, NotFound
from keepsake.ops import enrolment
from keepsake.ops.enrolment import Enrolled
from keepsake.surfaces.console import settings_parts as parts
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.settings_parts import Typed
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.pages import forms, rendering
from keepsake.surfaces.pages.forms import Fields

HERE = "/settings/tools"
EFFECTS = (
    ("read", "read: changes nothing"),
    ("mutate", "mutate: can be undone"),
    ("destructive", "destructive: cannot be undone"),
)
POLICIES = (
    ("person", "a person"),
    ("other-person", "a person other than whoever asked"),
    ("two-persons", "two persons"),
    ("elicitation", "whoever sits at the client"),
    ("sampling", "the client’s own model"),
    ("none", "nobody: only for what reads"),
)
METHODS = ("POST", "GET", "PUT", "PATCH", "DELETE")
_BLANK = Typed({"runs": "command", "effect": "mutate", "approval": "person", "verb": "POST"}, {})


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this tab."""
    return [
        console.page(HERE, show),
        console.form(HERE, enrol),
        console.page(HERE + "/{name}", one),
        console.form(HERE + "/{name}/change", change),
        console.form(HERE + "/{name}/remove", remove),
    ]


async def show(visit: Visit) -> Response:
    """What is enrolled."""
    return await _shown(visit, _BLANK)


async def _shown(visit: Visit, typed: Typed) -> Response:
    held = await _held(visit)
    tools, following = parts.part(visit, held)
    values = {
        "tools": [(tool, runs(tool)) for tool in tools],
        "following": following,
        "many": len(held),
        "typed": typed,
        "effects": EFFECTS,
        "policies": POLICIES,
        "agrees": dict(POLICIES),
        "methods": METHODS,
    }
    return await parts.tab(visit, "tools", "settings_tools.html", values, typed.status if typed.problem else 200)


def runs(tool: Enrolled) -> str:
    """What a tool runs, in a line."""
    known = Enrolment.model_validate(tool.definition)
    return " ".join(known.argv or ()) if known.http is None else f"{known.http.method} {known.http.url}"


async def enrol(visit: Visit, fields: Fields) -> Response:
    """Enrol a command or call; each `{name}` in it becomes an argument that must be given, as text."""
    names = ("name", "description", "runs", "argv", "verb", "url", "effect", "approval", "network")
    values = {name: forms.typed(fields, name) for name in names}
    try:
        made = await visit.ask(enrolment.enrol, **await _wanted(visit, values))
    except (BadInput, Conflict) as error:
        return await _shown(visit, parts.mistaken(error, values, {}))
    return rendering.moved(visit.to(f"{HERE}/{made.name}"))


async def _wanted(visit: Visit, values: Mapping[str, str]) -> dict[str, object]:
    """A form as the operation takes it; a name that is taken is not changed by accident."""
    if any(tool.name == values["name"] for tool in await _held(visit)):
        raise Conflict("`name` A tool of this name is enrolled. Open it in the list to change it.")
    words = [line.strip() for line in values["argv"].splitlines() if line.strip()]
    is_call = values["runs"] == "http"
    try:
        places = list(
            dict.fromkeys(name for text in ([values["url"]] if is_call else words) for name in template.names(text))
        )
    except ValueError as error:
        raise BadInput(f"`{'url' if is_call else 'argv'}` {error}") from error
    return {
        "name": values["name"],
        "description": values["description"],
        "argv": None if is_call else words,
        "http": {"method": values["verb"] or "POST", "url": values["url"]} if is_call else None,
        "parameters": {"properties": {name: {"type": "string"} for name in places}, "required": places},
        "effect": values["effect"],
        "approval": values["approval"],
        "sandbox": {"network": values["network"] == "yes"},
    }


async def one(visit: Visit) -> Response:
    """All that was said of a tool."""
    return await _one(visit, await _known(visit))


async def _held(visit: Visit) -> list[Enrolled]:
    parts.check_manager(visit)
    return (await visit.ask(enrolment.list_)).tools


async def _known(visit: Visit) -> Enrolled:
    held = await _held(visit)
    found = next((tool for tool in held if tool.name == visit.path("name")), None)
    if found is None:
        raise NotFound("No tool of this name is enrolled. It may have been struck off.")
    return found


async def _one(visit: Visit, tool: Enrolled, typed: Typed | None = None) -> Response:
    text = json.dumps(tool.definition, ensure_ascii=False, indent=2)
    values = {
        "tool": tool,
        "runs": runs(tool),
        "agrees": dict(POLICIES),
        "text": text,
        "typed": typed or Typed({"definition": text}, {}),
    }
    status = typed.status if typed is not None else 200
    return await parts.tab(visit, "tools", "settings_tool.html", values, status)


async def change(visit: Visit, fields: Fields) -> Response:
    """Enrol a tool anew, as its whole definition says; refused where someone else did so in between."""
    tool, text = await _known(visit), forms.typed(fields, "definition")
    try:
        wanted = _definition(text, tool)
        if fields.maybe("version") != tool.version:
            raise Conflict(
                "`stale` Someone changed this tool since you opened it. Both are here: write what is to hold."
            )
        await visit.ask(enrolment.enrol, **wanted)
    except (BadInput, Conflict) as error:
        return await _one(visit, tool, parts.mistaken(error, {"definition": text}, {}))
    return rendering.moved(visit.to(f"{HERE}/{tool.name}"))


def _definition(text: str, tool: Enrolled) -> dict[str, object]:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"`definition` This is not JSON: {error}.") from error
    if not isinstance(told, dict) or told.get("name", tool.name) != tool.name:
        raise BadInput("`definition` It must be one object, and the name stays. Enrol another tool for another name.")
    return {**told, "name": tool.name}


async def remove(visit: Visit, fields: Fields) -> Response:
    """Strike a tool off."""
    parts.check_manager(visit)
    await visit.ask(enrolment.remove, name=visit.path("name"))
    return rendering.moved(visit.to(HERE))
