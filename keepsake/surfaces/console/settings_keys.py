"""The API keys tab: keys are made, shown once, and revoked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core import clock
from keepsake.core.clock import DAY
from keepsake.core.errors import BadInput, Conflict
from keepsake.core.operation import SCOPES
from keepsake.core.principal import DEFAULT_SCOPES
from keepsake.ops import keys
from keepsake.ops.keys import Key, NewKey
from keepsake.surfaces.console import settings_parts as parts
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.settings_clients import TIERS
from keepsake.surfaces.console.settings_parts import Typed
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.pages import rendering
from keepsake.surfaces.pages.forms import Fields

HERE = "/settings/keys"
LASTS = (("30d", "in 30 days"), ("90d", "in 90 days"), ("365d", "in a year"), ("", "no end"))
#: What is marked because it ends within this time.
SOON = 14 * DAY


@dataclass(frozen=True, slots=True)
class Row:
    """A key as the list shows it."""

    key: Key
    state: str


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this tab."""
    return [console.page(HERE, show), console.form(HERE, create), console.form(HERE + "/revoke", revoke)]


async def show(visit: Visit) -> Response:
    """The keys, those in use first."""
    return await _shown(visit, _blank(visit))


def _blank(visit: Visit) -> Typed:
    return Typed({"tier": "all", "expires": "90d"}, {"scopes": sorted(DEFAULT_SCOPES)})


async def _shown(visit: Visit, typed: Typed, made: NewKey | None = None) -> Response:
    parts.check_owner(visit)
    rows = [Row(key, _state(key, clock.now())) for key in (await visit.ask(keys.list_, revoked=True)).keys]
    rows.sort(key=lambda row: row.state == "revoked")
    shown, following = parts.part(visit, rows)
    revoked = sum(row.state == "revoked" for row in rows)
    values = {
        "rows": shown,
        "following": following,
        "in_use": len(rows) - revoked,
        "revoked": revoked,
        "typed": typed,
        "made": made,
        "tiers": TIERS,
        "lasts": LASTS,
        "banks": parts.owned(visit),
        "scopes": [(name, told) for name, told in SCOPES.items() if name in visit.ctx.principal.scopes],
        "may_destroy": visit.ctx.principal.may_destroy and visit.may("memory:delete"),
        "is_manager": parts.is_manager(visit),
    }
    return await parts.tab(visit, "keys", "settings_keys.html", values, typed.status if typed.problem else 200)


def _state(key: Key, now: int) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is None:
        return ""
    ends = clock.parse(key.expires_at)
    return "expired" if ends <= now else "soon" if ends - now < SOON else ""


async def create(visit: Visit, fields: Fields) -> Response:
    """Make a key; its secret is on the page that answers, and on no other."""
    parts.check_account(visit)
    values = {name: fields.maybe(name, 500) or "" for name in ("name", "tier", "expires", "reach", "destroy")}
    chosen = {"banks": fields.all("banks"), "scopes": fields.all("scopes")}
    try:
        _check_ticked(values, chosen)
        made = await visit.ask(
            keys.create,
            name=values["name"],
            tier=values["tier"] or "all",
            banks=None if values["reach"] == "all" else list(chosen["banks"]),
            scopes=list(chosen["scopes"]),
            allow_destructive=values["destroy"] == "yes",
            expires=values["expires"] or None,
        )
    except (BadInput, Conflict) as error:
        return await _shown(visit, parts.mistaken(error, values, chosen))
    return await _shown(visit, _blank(visit), made)


def _check_ticked(values: Mapping[str, str], chosen: Mapping[str, Sequence[str]]) -> None:
    if values["reach"] != "all" and not chosen["banks"]:
        raise BadInput("`banks`: tick the banks that the key is to reach.")
    if not chosen["scopes"]:
        raise BadInput("`scopes`: tick what the key is to do.")


async def revoke(visit: Visit, fields: Fields) -> Response:
    """End a key."""
    await visit.ask(keys.revoke, name=fields.one("name", 500))
    return rendering.moved(visit.to(HERE))
