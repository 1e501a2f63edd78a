"""The HTTP application: which path is whose, and what is asked of every request."""

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from keepsake import worker
from keepsake.auth import external
from keepsake.context import App
from keepsake.core import log
from keepsake.core.errors import Broken, KeepsakeError, NotFound, WrongHost, WrongOrigin
from keepsake.ops import clients
from keepsake.ops.clients import Fetch
from keepsake.settings import Settings
from keepsake.surfaces import bearer, health, heartbeats, hooks, rest, webhooks
from keepsake.surfaces.console import site as console
from keepsake.surfaces.front import Endpoint, bank_of, checked_bank
from keepsake.surfaces.oauth.places import Map
from keepsake.surfaces.oauth.site import Challenging, OAuth
from keepsake.surfaces.replies import rest_refusal, rpc_refusal
from keepsake.surfaces.sessions import Sessions
from keepsake.tools import catalog


@dataclass(slots=True)
class Site:
    """Everything that one server serves."""

    app: App
    sessions: Sessions = field(init=False)
    keepsake: Endpoint = field(init=False)
    multi: Endpoint = field(init=False)
    single: Endpoint = field(init=False)
    kiro: Endpoint = field(init=False)
    keystone: Endpoint = field(init=False)
    checkstack: Endpoint = field(init=False)
    xerotier: Endpoint = field(init=False)
    more: list[tuple[str, Endpoint]] = field(default_factory=list)
    #: How metadata documents of OAuth clients are read.
    fetch: Fetch = clients.fetched

    def __post_init__(self) -> None:
        self.sessions = Sessions(self.app)
        self.keepsake = Endpoint(self.app, catalog.DIALECTS["keepsake"], self.sessions)
        self.multi = Endpoint(self.app, catalog.DIALECTS["hindsight"], self.sessions)
        self.single = Endpoint(self.app, catalog.BOUND["hindsight"], self.sessions)
        self.kiro = Endpoint(self.app, catalog.DIALECTS["kiro"], self.sessions)
        self.checkstack = Endpoint(self.app, catalog.DIALECTS["checkstack"], self.sessions)
        streams = self.app.settings.xerotier_transport != "legacy"
        self.xerotier = Endpoint(self.app, catalog.DIALECTS["xerotier"], self.sessions, streams=streams)
        issuers = external.Issuers(self.app.settings.jwt_issuers)
        self.keystone = Endpoint(self.app, catalog.DIALECTS["keystone"], self.sessions, issuers=issuers)

    def routes(self) -> list[BaseRoute]:
        """Every path."""
        routes: list[BaseRoute] = [*health.routes(self.app), *rest.routes(self.app), *hooks.routes(self.app)]
        routes += [*webhooks.routes(self.app), *heartbeats.routes(self.app)]
        for path, endpoint in self.more:
            routes.append(Route(path, Mcp(endpoint)))
        if self.app.settings.mcp_enabled:
            routes.append(Route("/keepsake/mcp", Mcp(self.keepsake)))
            routes.append(Route("/kiro/mcp", Mcp(self.kiro)))
            routes.append(Route("/api/mcp", Mcp(self.keystone)))
            routes.append(Route("/api/ai/mcp", Mcp(self.checkstack)))
            for path in ("/mcp", "/mcp/"):
                routes.append(Route(path, Mcp(self.multi)))
            # A path and not a name, so that a bank with a slash in it is refused in words that say so.
            routes.append(Route("/mcp/{bank_id:path}", Mcp(self.single)))
        if self.app.settings.mcp_enabled and self.app.settings.xerotier_enabled:
            for path in ("/v1/mcp", "/{project}/v1/mcp"):
                routes.append(Route(path, Mcp(self.xerotier)))
        return routes

    @asynccontextmanager
    async def running(self, _: Starlette) -> AsyncIterator[None]:
        """Keep endpoints and worker alive while the server runs."""
        async with worker.beside(self.app), AsyncExitStack() as stack:
            ours = (self.keepsake, self.multi, self.single, self.kiro, self.keystone, self.checkstack, self.xerotier)
            for endpoint in (*ours, *(endpoint for _, endpoint in self.more)):
                await stack.enter_async_context(endpoint.running())
            yield

    def asgi(self) -> ASGIApp:
        """The application that a server runs."""
        routes = self.routes()
        served = [
            (route.path_regex, route.app.endpoint)
            for route in routes
            if isinstance(route, Route) and isinstance(route.app, Mcp)
        ]
        map = Map(
            lambda path: any(pattern.match(path) for pattern, _ in served),
            lambda path: any(pattern.match(path) and endpoint.issuers is not None for pattern, endpoint in served),
        )
        starlette = Starlette(
            routes=[*routes, *OAuth(self.app, map, self.fetch).routes(), *console.routes(self.app)],
            lifespan=self.running,
            exception_handlers=console.handlers(self.app, _no_path, _broken),
        )
        starlette.router.redirect_slashes = False
        return Guard(Challenging(starlette, self.app, map), self.app.settings)


async def _no_path(request: Request, _: Exception) -> Response:
    told = "Nothing is served at this path. MCP is at /keepsake/mcp, and /openapi.json lists the rest."
    return rest_refusal(NotFound(told))


async def _broken(request: Request, error: Exception) -> Response:
    request_id = secrets.token_hex(8)
    log.error("failed", path=request.url.path, request=request_id, error=type(error).__name__, trace=log.trace(error))
    return rest_refusal(Broken(request_id))


@dataclass(slots=True)
class Mcp:
    """An MCP endpoint as a route."""

    endpoint: Endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if self.endpoint.dialect.workspace:
            # Nothing but its own header and a session chooses a bank here.
            await self.endpoint.serve(scope, receive, send, None)
            return
        named = scope["path_params"].get("bank_id", "").removesuffix("/") or bank_of(request)
        try:
            bank = checked_bank(named) if named is not None else None
        except KeepsakeError as error:
            await rpc_refusal(error)(scope, receive, send)
            return
        await self.endpoint.serve(scope, receive, send, bank)


@dataclass(slots=True)
class Guard:
    """Refuses what reached us under another name, or from a web page of another site."""

    inner: ASGIApp
    settings: Settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._refusal(Request(scope))) is not None:
            await refusal(scope, receive, send)
            return
        await self.inner(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        if not self._knows(_hostname(request.headers.get("host", ""))):
            return rest_refusal(
                WrongHost(
                    "This server does not answer under that name. Add it to KEEPSAKE_ALLOWED_HOSTS if it is yours."
                )
            )
        origin = request.headers.get("origin")
        if origin is None or origin in self.settings.allowed_origins or self._knows(urlsplit(origin).hostname or ""):
            return None
        return rest_refusal(
            WrongOrigin(
                "Pages of that origin may not call this server. Add it to KEEPSAKE_ALLOWED_ORIGINS if it is yours."
            )
        )

    def _knows(self, host: str) -> bool:
        known = (self.settings.host, urlsplit(self.settings.public_url).hostname, *self.settings.allowed_hosts)
        return bearer.is_loopback(host) or host in known


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
