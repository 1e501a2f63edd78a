"""`/webhooks/github`: GitHub says that something happened, and signs it; a sync follows, and nothing of it is kept."""

import hashlib
import hmac
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from keepsake.context import App
from keepsake.core.errors import KeepsakeError, Unauthenticated
from keepsake.ops import announced
from keepsake.surfaces import bodies
from keepsake.surfaces.replies import as_json, rest_refusal

#: The events after which there is something to read.
EVENTS = frozenset({"push", "pull_request", "issues", "issue_comment", "pull_request_review", "release"})
#: What happens to an issue that its list no longer shows.
GONE = ("deleted", "transferred")


def routes(app: App) -> list[BaseRoute]:
    """The path of GitHub's webhook; without a secret to check by there is none."""
    return [Route("/webhooks/github", Webhook(app), methods=["POST"])] if app.settings.webhook_secret else []


@dataclass(slots=True)
class Webhook:
    """Takes what GitHub announces."""

    app: App

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except KeepsakeError as error:
            response = rest_refusal(error)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        body = await bodies.read(request, self.app.settings.body_limit)
        if not is_signed(body, request.headers.get("x-hub-signature-256", ""), self.app.settings.webhook_secret):
            raise Unauthenticated("The signature does not fit. KEEPSAKE_WEBHOOK_SECRET must be the webhook's secret.")
        event = request.headers.get("x-github-event", "")
        if event == "ping":
            return as_json({"message": "pong"})
        if event in EVENTS:
            bodies.check_type(request)
            await self._told(event, bodies.decoded(body))
        # The same whether or not anyone here learns from that repository.
        return as_json({"status": "accepted"}, 202)

    async def _told(self, event: str, given: object) -> None:
        repository = given.get("repository") if isinstance(given, dict) else None
        name = repository.get("full_name") if isinstance(repository, dict) else None
        if not isinstance(given, dict) or not isinstance(name, str) or not name:
            return
        is_deletion = event == "issues" and given.get("action") in GONE
        await (announced.deleted if is_deletion else announced.changed)(self.app, name)


def is_signed(body: bytes, signature: str, secret: str) -> bool:
    """Whether the body carries the signature of whoever has the secret; takes as long for every wrong one."""
    made = f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"
    return hmac.compare_digest(made.encode(), signature.encode("utf-8", "replace"))
