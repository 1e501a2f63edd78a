"""OAuth as part of the server: its paths, there only where people are, and what it adds to refusals."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepsake.auth import oauth as rules
from keepsake.context import App
from keepsake.core.errors import KeepsakeError, NotFound
from keepsake.ops import clients, signing_in
from keepsake.ops.clients import Fetch
from keepsake.surfaces.oauth import metadata, places, tokens
from keepsake.surfaces.oauth.authorize import Authorize
from keepsake.surfaces.oauth.places import Map
from keepsake.surfaces.oauth.tokens import Programs
from keepsake.surfaces.pages import rendering
from keepsake.surfaces.replies import rest_refusal

Answer = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class OAuth:
    """The paths."""

    app: App
    map: Map
    #: How metadata documents of clients are read.
    fetch: Fetch = clients.fetched

    def routes(self) -> list[BaseRoute]:
        """Every path."""
        programs = Programs(self.app)
        found: list[BaseRoute] = []
        for kind in (places.PROTECTED, places.SERVER):
            for form in (kind, kind + "/{path:path}"):
                found.append(Route(form, self._metadata, methods=["GET"]))
        for path, ask in (
            (places.REGISTER, programs.register),
            (places.TOKEN, programs.token),
            (places.REVOKE, programs.revoke),
            (places.INTROSPECT, programs.introspect),
        ):
            found.append(Route(path, self._when_offered(ask, tokens.refusal), methods=["POST"]))
        authorize = Authorize(self.app, self.map, self.fetch)
        found.append(
            Route(places.AUTHORIZE, self._when_offered(authorize.__call__, rendering.refused), methods=["GET", "POST"])
        )
        return found

    def _when_offered(self, answer: Answer, refusal: Callable[[KeepsakeError], Response]) -> Answer:
        """The same while there is someone who could sign in; a refusal looks as its endpoint's do."""

        async def answered(request: Request) -> Response:
            if not await signing_in.people_exist(self.app):
                return rest_refusal(NotFound(metadata.NOTHING))
            try:
                return await answer(request)
            except KeepsakeError as error:
                return refusal(error)

        return answered

    async def _metadata(self, request: Request) -> Response:
        has_people = await signing_in.people_exist(self.app)
        try:
            return metadata.answer(self.app.settings, self.map, request, has_people=has_people)
        except KeepsakeError as error:
            return rest_refusal(error)


@dataclass(frozen=True, slots=True)
class Challenging:
    """Tells those who are refused for want of a credential or a scope where to get one."""

    inner: ASGIApp
    app: App
    map: Map

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in (401, 403):
                message = await self._told(Request(scope), message)
            await send(message)

        await self.inner(scope, receive, told)

    async def _told(self, request: Request, message: Message) -> Message:
        is_ours = any(name == b"www-authenticate" and text.startswith(b"Bearer") for name, text in message["headers"])
        others = self.map.issuers(self.app.settings, request.scope["path"])
        if not is_ours or not (others or await signing_in.people_exist(self.app)):
            return message
        more = f', resource_metadata="{metadata.challenge(self.app.settings, self.map, request)}"'
        if message["status"] == 401:
            error = ', error="invalid_token"' if "authorization" in request.headers else ""
            more = f'{error}{more}, scope="{" ".join(sorted(rules.OFFERED))}"'
        added = [
            (name, text + more.encode() if name == b"www-authenticate" and text.startswith(b"Bearer") else text)
            for name, text in message["headers"]
        ]
        return {**message, "headers": added}
