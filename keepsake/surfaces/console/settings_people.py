"""The People tab: who may come in and as what, invitations, and who is shut out."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core import roles
from keepsake.core.errors import BadInput, Conflict, KeepsakeError, NotFound
from keepsake.ops import invitations, users
from keepsake.ops.invitations import NewInvitation
from keepsake.ops.users import Person
from keepsake.surfaces.console import settings_parts as parts
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.settings_parts import Typed
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.pages import rendering
from keepsake.surfaces.pages.forms import Fields

HERE = "/settings/people"
LASTS = (("12h", "for 12 hours"), ("3d", "for 3 days"), ("30d", "for 30 days"))
_BLANK = Typed({"role": "editor", "expires": "3d"}, {})


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this tab."""
    return [
        console.page(HERE, show),
        console.form(HERE + "/invite", invite),
        console.form(HERE + "/uninvite", uninvite),
        console.form(HERE + "/role", role),
        console.form(HERE + "/shut", shut),
    ]


async def show(visit: Visit) -> Response:
    """Everyone, or one of them beside the others."""
    return await _shown(visit, _BLANK)


async def _shown(visit: Visit, typed: Typed, made: NewInvitation | None = None) -> Response:
    parts.check_owner(visit)
    values: dict[str, object] = {
        "people": None,
        "following": 0,
        "one": None,
        "waiting": [],
        "typed": typed,
        "made": made,
        "roles": [(name, roles.MEANING[name]) for name in roles.NAMES],
        "banks": parts.owned(visit),
        "lasts": LASTS,
        "is_manager": parts.is_manager(visit),
    }
    if parts.is_manager(visit):
        found = (await visit.ask(users.list_)).users
        people, following = parts.part(visit, found)
        waiting = (await visit.ask(invitations.list_)).invitations
        values |= {"people": people, "following": following, "waiting": waiting, "one": _one(visit, found)}
    return await parts.tab(visit, "people", "settings_people.html", values, typed.status if typed.problem else 200)


def _one(visit: Visit, found: list[Person]) -> Person | None:
    """The person that the address names."""
    name = visit.query("name")
    one = next((person for person in found if person.name == name), None)
    if name and one is None:
        raise NotFound("There is nobody of this name. They may have been invited and not come yet.")
    return one


async def invite(visit: Visit, fields: Fields) -> Response:
    """Make a one-time link; it is on the page that answers, and on no other."""
    parts.check_account(visit)
    values = {name: fields.maybe(name, 500) or "" for name in ("name", "role", "bank", "expires")}
    try:
        made = await visit.ask(
            invitations.invite,
            name=values["name"],
            role=values["role"] or None,
            bank=values["bank"] or None,
            expires=values["expires"] or "3d",
        )
    except (BadInput, Conflict) as error:
        return await _shown(visit, parts.mistaken(_plain(error), values, {}))
    return await _shown(visit, _BLANK, made)


def _plain(error: KeepsakeError) -> KeepsakeError:
    """The same, for someone who does not sit at a terminal."""
    if isinstance(error, Conflict):
        return Conflict("`name` Someone has this name already. Open them in the list to change what they may do.")
    return error


async def uninvite(visit: Visit, fields: Fields) -> Response:
    """Take a link back."""
    await visit.ask(invitations.uninvite, id=fields.one("id", 64))
    return rendering.moved(visit.to(HERE))


async def role(visit: Visit, fields: Fields) -> Response:
    """Give a role, or take it away."""
    name = fields.one("name", 500)
    await visit.ask(
        users.role,
        name=name,
        role=fields.one("role", 50),
        bank=fields.maybe("bank", 500),
        remove=fields.maybe("remove") == "yes",
    )
    return rendering.moved(_back(visit, name))


async def shut(visit: Visit, fields: Fields) -> Response:
    """Shut someone out, or let them in again."""
    name = fields.one("name", 500)
    await visit.ask(users.disable, name=name, enable=fields.maybe("enable") == "yes")
    return rendering.moved(_back(visit, name))


def _back(visit: Visit, name: str) -> str:
    return visit.to(HERE, name=name if parts.is_manager(visit) else "")
