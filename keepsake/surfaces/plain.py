"""An endpoint that takes one plain request and answers in JSON, as REST and hooks do."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from keepsake.context import App, Ctx
from keepsake.core.errors import KeepsakeError
from keepsake.surfaces import bearer
from keepsake.surfaces.front import bank_of, checked_bank
from keepsake.surfaces.replies import rest_refusal


@dataclass(slots=True)
class Plain(ABC):
    """Knows who asks and which bank is meant, and tells refusals; what is answered stands in its heirs."""

    app: App

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            principal = await bearer.principal(self.app, request)
            named = bank_of(request)
            ctx = self.app.ctx(principal, checked_bank(named) if named else None, surface="web")
            response = await self.answer(ctx, request)
        except KeepsakeError as error:
            response = rest_refusal(error)
        await response(scope, receive, send)

    @abstractmethod
    async def answer(self, ctx: Ctx, request: Request) -> Response:
        """Answer a request that was let in."""
