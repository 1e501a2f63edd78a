"""The OAuth tab: which programs people let act for them, and which programs are known at all."""

from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.ops import clients, grants
from keepsake.surfaces.console import settings_parts as parts
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.pages import rendering
from keepsake.surfaces.pages.forms import Fields

HERE = "/settings/oauth"


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this tab."""
    return [
        console.page(HERE, show),
        console.form(HERE + "/withdraw", withdraw),
        console.form(HERE + "/shut", shut),
    ]


async def show(visit: Visit) -> Response:
    """What people let programs do, newest first, and the programs."""
    parts.check_owner(visit)
    held = (await visit.ask(grants.list_)).grants
    shown, following = parts.part(visit, held)
    is_manager = parts.is_manager(visit)
    known = (await visit.ask(clients.list_)).clients if is_manager else []
    values = {
        "grants": shown,
        "following": following,
        "held": len(held),
        "known": [(client, hosts(client.redirects)) for client in known[:PAGE]],
        "many": len(known),
        "is_manager": is_manager,
    }
    return await parts.tab(visit, "oauth", "settings_oauth.html", values)


def hosts(redirects: list[str]) -> list[str]:
    """Where a program is answered, without the rest of the address."""
    found = [urlsplit(one) for one in redirects]
    return list(dict.fromkeys(one.netloc or f"{one.scheme}:" for one in found))


async def withdraw(visit: Visit, fields: Fields) -> Response:
    """Take a consent back."""
    await visit.ask(grants.revoke, id=fields.one("id", 64))
    return rendering.moved(visit.to(HERE))


async def shut(visit: Visit, fields: Fields) -> Response:
    """Shut a program out."""
    await visit.ask(clients.revoke, client_id=fields.one("client"))
    return rendering.moved(visit.to(HERE))
