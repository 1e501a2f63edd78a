"""Health, readiness and metrics."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from keepsake import __version__
from keepsake.context import App
from keepsake.core.errors import KeepsakeError
from keepsake.ops import health
from keepsake.surfaces import metrics
from keepsake.surfaces.replies import as_json


def routes(app: App) -> list[BaseRoute]:
    """The paths that watchers ask."""

    async def alive(_: Request) -> Response:
        return as_json({"status": "ok", "version": __version__})

    async def ready(_: Request) -> Response:
        try:
            await health.ready(app)
        except KeepsakeError as error:
            return as_json({"status": "unavailable", "reason": str(error)}, 503)
        return as_json({"status": "ready", "store": app.store.engine.name})

    async def measured(_: Request) -> Response:
        return PlainTextResponse(await metrics.exposition(app), media_type="text/plain; version=0.0.4; charset=utf-8")

    return [Route("/healthz", alive), Route("/readyz", ready), Route("/metrics", measured)]
