"""REST: every operation at `POST /v1/operations/{id}`, in its own words."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from keepsake import dispatch
from keepsake.context import App, Ctx
from keepsake.core.errors import BadInput
from keepsake.surfaces import bodies, openapi
from keepsake.surfaces.plain import Plain
from keepsake.surfaces.replies import as_json


def routes(app: App) -> list[BaseRoute]:
    """The paths of REST."""
    operations = Route("/v1/operations/{operation}", Rest(app), methods=["POST"])
    document = Route("/openapi.json", lambda _: as_json(openapi.document()), methods=["GET"])
    return [operations, document]


class Rest(Plain):
    """Runs one operation."""

    async def answer(self, ctx: Ctx, request: Request) -> Response:
        """Run it as whoever asks."""
        arguments = _arguments(await bodies.read(request, self.app.settings.body_limit))
        dispatch.admitted(ctx, request.path_params["operation"], arguments)
        allowance = await dispatch.limit(ctx)
        result = await dispatch.call(ctx, request.path_params["operation"], arguments)
        headers = allowance.headers() if allowance else {}
        return Response(result.model_dump_json(), headers=headers, media_type="application/json")


def _arguments(body: bytes) -> dict[str, object]:
    if not body.strip():
        return {}
    arguments = bodies.decoded(body)
    if not isinstance(arguments, dict):
        raise BadInput("The body must be a JSON object of arguments.")
    return arguments
