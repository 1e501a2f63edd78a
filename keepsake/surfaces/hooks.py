"""`/hooks/{client}`: the events of coding clients over HTTP; they are not rate limited."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from keepsake.context import App, Ctx
from keepsake.core.errors import BadInput, NotFound
from keepsake.hooks import clients
from keepsake.ops import capture
from keepsake.surfaces import bearer, bodies
from keepsake.surfaces.plain import Plain
from keepsake.surfaces.replies import as_json

#: Our own hooks and plugins send events that they have read already, one a line.
OURS = "keepsake"


def routes(app: App) -> list[BaseRoute]:
    """The paths of hooks."""
    return [Route("/hooks/{client}", Hooks(app), methods=["POST"])]


class Hooks(Plain):
    """Takes what one client tells."""

    async def answer(self, ctx: Ctx, request: Request) -> Response:
        """Keep it, and say what the client should know now."""
        body = await bodies.read(request, self.app.settings.body_limit)
        asked = request.path_params["client"]
        if asked == OURS:
            return await _ours(ctx, body)
        client = clients.named(asked)
        if client is None:
            raise NotFound(f"There is no client {asked!r}; the clients are {', '.join(clients.CLIENTS)}.")
        _check_place(ctx, request)
        return await _theirs(ctx, client, request.query_params.get("event", ""), body)


def _check_place(ctx: Ctx, request: Request) -> None:
    """Refuse a folder of another machine: what lies there, and so whose project it is, cannot be known here."""
    reach = ctx.principal.banks
    is_near = request.client is None or bearer.is_loopback(request.client.host)
    if not is_near and ctx.bank is None and (reach is None or len(reach) != 1):
        raise BadInput("From another machine, name the bank in X-Bank-Id, or let `keepsake hook` send it.")


async def _ours(ctx: Ctx, body: bytes) -> Response:
    try:
        found = [capture.parsed(line) for line in body.decode().splitlines() if line.strip()]
    except ValueError as error:
        raise BadInput("The body must be events, one a line, as `keepsake hook` writes them.") from error
    kept = await capture.keep(ctx, found)
    text = await capture.context_of(ctx, kept[-1]) if kept else ""
    return as_json({"taken": len(kept), "context": text})


async def _theirs(ctx: Ctx, client: str, event: str, body: bytes) -> Response:
    given = bodies.decoded(body)
    if not isinstance(given, dict):
        raise BadInput("The body must be a JSON object, as the client hands it to its hooks.")
    found = capture.told(client, event, given, ctx.now)
    kept = await capture.keep(ctx, found) if found else []
    takes = clients.CLIENTS[clients.sender(client, given)].takes
    text = await capture.context_of(ctx, kept[-1]) if kept and kept[-1].envelope.event in takes else ""
    said = clients.CLIENTS[client].answer(clients.event_of(given, event), text)
    kind = "application/json" if said.startswith("{") else "text/plain"
    return Response(said, media_type=kind)
