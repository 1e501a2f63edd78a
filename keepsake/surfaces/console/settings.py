"""Settings: the pages where keys, clients, people, tools and checks are made and ended, one tab each."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core.errors import Forbidden
from keepsake.surfaces.console import (
    settings_checks,
    settings_clients,
    settings_keys,
    settings_oauth,
    settings_people,
    settings_tools,
)
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.pages import rendering

TABS = (settings_keys, settings_clients, settings_oauth, settings_people, settings_tools, settings_checks)


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    found: list[BaseRoute] = [console.page("/settings", first)]
    for tab in TABS:
        found += tab.routes(console)
    return found


async def first(visit: Visit) -> Response:
    """The first tab that whoever looks may open."""
    if visit.may("admin"):
        return rendering.moved(visit.to(settings_keys.HERE))
    if visit.may("watch:read") and visit.banks:
        return rendering.moved(visit.to(settings_checks.HERE))
    if visit.signed is not None:
        return rendering.moved(visit.to("/account"))
    raise Forbidden("nothing here is yours to set.")
