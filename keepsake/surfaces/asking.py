"""Asking the client something in the middle of its call: by a request of ours, or by having it send the call again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from keepsake.core import log
from keepsake.core.errors import KeepsakeError

R = TypeVar("R", bound=BaseModel)
#: How long a person, or a model, may think about it.
PATIENCE_S = 300.0
_CHOICE = "choice"
_WORDS = 16


class InputNeeded(KeepsakeError):
    """The call cannot go on before the client has answered; it is told what, and sends the call again."""

    def __init__(self, requests: types.InputRequests) -> None:
        super().__init__("The client is asked first.")
        self.requests = requests


@dataclass(frozen=True, slots=True)
class Client:
    """The client of one call."""

    #: What the SDK hands to a handler.
    incoming: Any
    #: What it answered, where the call was sent before.
    answers: types.InputResponses | None = None

    @property
    def session(self) -> Any:
        """The SDK's session."""
        return self.incoming.session

    async def choose(self, about: str, message: str, options: Sequence[str]) -> str | None:
        """What the person chose among a few; empty when they would not, None when the client asks nobody."""
        declared = self.session.client_capabilities
        if declared is None or declared.elicitation is None:
            return None
        wanted = {"type": "string", "enum": list(options), "description": "Your choice"}
        form = types.ElicitRequestFormParams(
            message=message,
            requested_schema={"type": "object", "properties": {_CHOICE: wanted}, "required": [_CHOICE]},
        )
        answer = await self._asked(about, types.ElicitRequest(params=form), types.ElicitResult)
        if answer is None:
            return None
        chosen = (answer.content or {}).get(_CHOICE) if answer.action == "accept" else ""
        return chosen if isinstance(chosen, str) and chosen in options else ""

    async def sample(self, about: str, message: str) -> str | None:
        """What the client's model replies, in a few words; None when it has none for us."""
        declared = self.session.client_capabilities
        if declared is None or declared.sampling is None:
            return None
        said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=message))
        params = types.CreateMessageRequestParams(messages=[said], max_tokens=_WORDS)
        answer = await self._asked(about, types.CreateMessageRequest(params=params), types.CreateMessageResult)
        if answer is None:
            return None
        return answer.content.text if isinstance(answer.content, types.TextContent) else ""

    async def _asked(self, about: str, request: types.InputRequest, result: type[R]) -> R | None:
        if self.incoming.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return self._answered(about, request, result)
        if not self.session.can_send_request:
            return None
        try:
            related = ServerMessageMetadata(related_request_id=self.incoming.request_id)
            answer: R = await self.session.send_request(request, result, PATIENCE_S, related)
        except (MCPError, ValidationError) as error:
            log.info("the client gave no answer", about=about, error=type(error).__name__)
            return None
        return answer

    def _answered(self, about: str, request: types.InputRequest, result: type[R]) -> R | None:
        """The answer that came with the call; without one, the client is asked to send it."""
        answer = (self.answers or {}).get(about)
        if answer is None:
            raise InputNeeded({about: request})
        return answer if isinstance(answer, result) else None
