"""Every page of the console, a module per group of them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from keepsake.context import App
from keepsake.core.errors import KeepsakeError, NotFound
from keepsake.ops import signing_in
from keepsake.surfaces.console import (
    account,
    approvals,
    artifacts,
    ask,
    audit,
    decisions,
    documents,
    graph,
    health,
    home,
    joining,
    memories,
    models,
    operations,
    projects,
    settings,
    timeline,
    usage,
)
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.oauth import places
from keepsake.surfaces.pages import rendering, signin, static

Handler = Callable[[Request, Exception], Awaitable[Response]]
#: Each has `routes(console)`.
GROUPS = (
    home,
    ask,
    projects,
    approvals,
    account,
    joining,
    memories,
    operations,
    usage,
    health,
    audit,
    settings,
    timeline,
    graph,
    decisions,
    models,
    documents,
    artifacts,
)
_YEAR = 365 * 24 * 3_600


def routes(app: App) -> list[BaseRoute]:
    """Every path below /console."""
    console, signing = Console(app), Signing(app)
    found: list[BaseRoute] = [
        Route(places.STATIC + "/{version}/{name}", _static, methods=["GET"]),
        Route(places.SIGN_IN, signing.enter, methods=["GET", "POST"]),
        Route(places.SIGN_OUT, signing.leave, methods=["POST"]),
        Route(places.THEME, _theme, methods=["GET"]),
    ]
    for group in GROUPS:
        found += group.routes(console)
    return found


def handlers(app: App, missing: Handler, broken: Handler) -> dict[int, Handler]:
    """What answers where nothing is served, and after a fault; below /console it is a page."""
    console = Console(app)
    # So that this page, too, knows where the navigation leads.
    for group in GROUPS:
        group.routes(console)
    absent = console.page("", _missing).endpoint

    async def not_there(request: Request, error: Exception) -> Response:
        is_page = is_ours(request) and request.method == "GET"
        return await absent(request) if is_page else await missing(request, error)

    async def failed(request: Request, error: Exception) -> Response:
        answer = await broken(request, error)
        if not is_ours(request):
            return answer
        quote = bytes(answer.body).decode().rpartition("id ")[2].partition(".")[0]
        return rendering.page("broken.html", {"theme": rendering.theme(request), "quote": quote}, 500)

    return {404: not_there, 500: failed}


def is_ours(request: Request) -> bool:
    """Whether a path is one of the console's pages."""
    path = request.url.path
    return f"{path}/".startswith(f"{places.CONSOLE}/") and not path.startswith(places.STATIC)


async def _static(request: Request) -> Response:
    return static.answer(request)


async def _missing(visit: Visit) -> Response:
    raise NotFound("There is no such page. It may have been moved.")


async def _theme(request: Request) -> Response:
    """Set light or dark for a browser without scripts, and go back."""
    chosen, came = request.query_params.get("set", ""), urlsplit(request.headers.get("referer", ""))
    answer = rendering.moved(signin.onward(f"{came.path}?{came.query}" if came.query else came.path))
    age = _YEAR if chosen in rendering.THEMES else 0
    answer.set_cookie("theme", chosen if age else "", max_age=age, path="/", samesite="lax")
    return answer


@dataclass(frozen=True, slots=True)
class Signing:
    """The pages to sign in and out."""

    app: App

    async def enter(self, request: Request) -> Response:
        """Show the form, or take it."""
        if not await signing_in.people_exist(self.app):
            return rendering.page("nobody.html", {"theme": rendering.theme(request)}, 404)
        try:
            return await (signin.enter if request.method == "POST" else signin.show)(self.app, request)
        except KeepsakeError as error:
            return rendering.refused(error)

    async def leave(self, request: Request) -> Response:
        """End the session."""
        try:
            return await signin.leave(self.app, request)
        except KeepsakeError as error:
            return rendering.refused(error)
