"""The Checks tab: what of a bank's world is watched, and what its first run found."""

from collections.abc import Mapping
from typing import get_args

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core.errors import BadInput, Conflict
from keepsake.core.hysteresis import State
from keepsake.ops import checks
from keepsake.ops.checks import AddedCheck
from keepsake.surfaces.console import settings_parts as parts
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.settings_parts import Typed
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.oauth import places
from keepsake.surfaces.pages import rendering
from keepsake.surfaces.pages.forms import Fields

HERE = "/b/{bank}/settings/checks"
KINDS = (
    ("http", "a page, by its address"),
    ("tcp", "a port, HOST:PORT"),
    ("dns", "a name"),
    ("postgres", "PostgreSQL, HOST:PORT"),
    ("redis", "Redis, HOST:PORT"),
    ("heartbeat", "a heartbeat: you call us"),
    ("self", "Keepsake itself"),
)
EVERY = ((30, "30 seconds"), (60, "minute"), (300, "5 minutes"), (900, "15 minutes"), (3_600, "hour"), (86_400, "day"))
#: Fields that are left out where they are empty, because each is for some kinds only.
_NUMBERS, _TEXTS = ("every_s", "tls_days", "grace_s"), ("name", "kind", "target", "status", "contains")
#: Fields that are called otherwise in the form: there these names are its own, and scripts would find a field instead.
_RENAMED = {"target": "address", "contains": "words"}
_BLANK = Typed({"kind": "http", "every_s": "60"}, {})


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this tab; the short address is where choosing another bank leads."""
    return [
        console.page("/b/{bank}/settings", moved),
        console.page(HERE, show),
        console.form(HERE, add),
        console.form(HERE + "/remove", remove),
    ]


async def moved(visit: Visit) -> Response:
    """To the checks of the bank."""
    return rendering.moved(visit.to(HERE))


async def show(visit: Visit) -> Response:
    """What is watched, what is down first."""
    return await _shown(visit, _BLANK)


async def _shown(visit: Visit, typed: Typed, made: AddedCheck | None = None) -> Response:
    state = visit.query("state") if visit.query("state") in get_args(State) else ""
    held = await visit.ask(checks.list_, state=state or None, limit=PAGE)
    standing = {one.name: one for one in (await visit.ask(checks.status, state=state or None, limit=PAGE)).checks}
    values = {
        "rows": [(check, standing.get(check.name)) for check in held.checks],
        "total": held.total,
        "state": state,
        "states": ("", *get_args(State)),
        "every": dict(EVERY),
        "is_waiting": any(check.state == "new" and check.kind != "heartbeat" for check in held.checks),
        "may_change": visit.may("watch:write"),
    }
    if visit.is_part:
        return visit.bare("settings_checks_rows.html", values)
    base = places.base(visit.ctx.app.settings, visit.request)
    beat = f"{base}/v1/heartbeats/{made.token}" if made is not None and made.token else ""
    values |= {"typed": typed, "made": made, "beat": beat, "kinds": KINDS}
    return await parts.tab(visit, "checks", "settings_checks.html", values, typed.status if typed.problem else 200)


async def add(visit: Visit, fields: Fields) -> Response:
    """Watch something; a heartbeat's address is on the page that answers, and on no other."""
    values = {name: fields.maybe(_RENAMED.get(name, name)) or "" for name in (*_TEXTS, *_NUMBERS)}
    try:
        made = await visit.ask(checks.add, **_given(values))
    except (BadInput, Conflict) as error:
        return await _shown(visit, parts.mistaken(error, values, {}))
    return await _shown(visit, _BLANK, made) if made.token else rendering.moved(visit.to(HERE))


def _given(values: Mapping[str, str]) -> dict[str, object]:
    given: dict[str, object] = {name: values[name] for name in _TEXTS if values[name]}
    for name in _NUMBERS:
        if values[name] and not (values[name].isascii() and values[name].isdecimal() and len(values[name]) < 10):
            raise BadInput(f"`{name}` Type a whole number.")
    return given | {name: int(values[name]) for name in _NUMBERS if values[name]}


async def remove(visit: Visit, fields: Fields) -> Response:
    """Stop watching something."""
    await visit.ask(checks.remove, name=fields.one("name", 500))
    return rendering.moved(visit.to(HERE))
