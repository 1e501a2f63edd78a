"""`/v1/heartbeats/{token}`: whoever has a heartbeat's token says that all is well; no other credential is asked for."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from keepsake.context import App
from keepsake.core.errors import KeepsakeError
from keepsake.ops import checks, watching
from keepsake.surfaces.replies import as_json, rest_refusal


def routes(app: App) -> list[BaseRoute]:
    """The path of heartbeats."""

    async def heard(request: Request) -> Response:
        try:
            await watching.beat(app, checks.hashed(request.path_params["token"]))
        except KeepsakeError as error:
            return rest_refusal(error)
        return as_json({"status": "ok"})

    return [Route("/v1/heartbeats/{token}", heard, methods=["POST"])]
