"""Batches of revision 2025-03-26 over HTTP: every message runs by itself, the answers go together."""

import json

import mcp_types as types
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import Message

from keepsake.surfaces import bodies
from keepsake.surfaces.bodies import BadMessage
from keepsake.surfaces.replies import rpc_error

VERSION = "2025-03-26"
REFUSED = "Batches exist in revision 2025-03-26 only. Send one message at a time."
#: Headers that speak of the whole batch.
_OF_THE_WHOLE = (b"accept", b"content-length", b"mcp-session-id")

Part = types.JSONRPCMessage | BadMessage


def parts(found: list[object], version: str) -> list[Part]:
    """The messages of a batch; what is none is kept as its error."""
    if version != VERSION:
        raise BadMessage(REFUSED)
    if not found:
        raise BadMessage("The batch is empty. Put at least one message into it.")
    messages = [_part(one) for one in found]
    if any(isinstance(one, types.JSONRPCRequest) and one.method == "initialize" for one in messages):
        raise BadMessage("initialize must not be part of a batch. Send it first, by itself.")
    return messages


def _part(found: object) -> Part:
    try:
        return bodies.message(found)
    except BadMessage as error:
        return error


async def answer(manager: StreamableHTTPSessionManager, request: Request, part: Part) -> object | None:
    """Run one message of a batch, in JSON; None when nothing is said to it."""
    if isinstance(part, BadMessage):
        return rpc_error(part.rpc, str(part), part.id)
    body = part.model_dump_json(by_alias=True, exclude_unset=True).encode()
    kept = [(name, value) for name, value in request.scope["headers"] if name not in _OF_THE_WHOLE]
    headers = [*kept, (b"accept", b"application/json"), (b"content-length", str(len(body)).encode())]
    told: list[bytes] = []

    async def collect(sent: Message) -> None:
        if sent["type"] == "http.response.body":
            told.append(sent.get("body", b""))

    scope = {**request.scope, "headers": headers}
    await manager.handle_request(scope, bodies.replayed(body, request.receive), collect)
    return json.loads(b"".join(told)) if any(told) else None
