"""REST: every operation at `POST /v1/operations/{id}`, in its own words."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.errors import BadInput, KeepsakeError
from keepsake.surfaces import bearer, bodies, openapi
from keepsake.surfaces.front import bank_of, checked_bank
from keepsake.surfaces.replies import as_json, rest_refusal


def routes(app: App) -> list[BaseRoute]:
    """The paths of REST."""
    operations = Route("/v1/operations/{operation}", Rest(app), methods=["POST"])
    document = Route("/openapi.json", lambda _: as_json(openapi.document()), methods=["GET"])
    return [operations, document]


@dataclass(slots=True)
class Rest:
    """Runs one operation."""

    app: App

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except KeepsakeError as error:
            response = rest_refusal(error)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        principal = await bearer.principal(self.app, request)
        named = bank_of(request)
        ctx = self.app.ctx(principal, checked_bank(named) if named else None)
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
