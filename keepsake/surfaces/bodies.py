"""What comes in over a wire: read once and within the limit, parsed once, played again for the SDK."""

import json

import mcp_types as types
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from keepsake.core.errors import BadInput, KeepsakeError
from keepsake.core.models import BankName

bank_name: TypeAdapter[str] = TypeAdapter(BankName)
#: How many times the limit is still read and thrown away, so that the client gets to see our answer.
_DRAINED = 16
_LONGEST_ID = 200


class TooLarge(KeepsakeError):
    """The body is beyond the limit."""

    code = "too_large"
    status = 413
    rpc = -32600

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The request is larger than {limit:,} bytes. Send less at once, in several calls; whoever runs the server"
            " sets how much it takes with KEEPSAKE_BODY_LIMIT."
        )


class WrongType(BadInput):
    """The body says that it is something else than JSON."""

    status = 415
    rpc = -32600

    def __init__(self) -> None:
        super().__init__("Send the message with the header `Content-Type: application/json`.")


class NotJson(BadInput):
    """The bytes are not JSON."""

    rpc = -32700


class BadMessage(BadInput):
    """A message that JSON-RPC or its place in the exchange does not allow; `id` is the request's, if it can be told."""

    rpc = -32600

    def __init__(self, reason: str, id: str | int | None = None) -> None:
        super().__init__(reason)
        self.id = id


class BadInitialize(BadMessage):
    """An initialize that does not say who is there."""

    status = 200
    rpc = -32602

    def __init__(self, id: str | int) -> None:
        needed = "initialize needs `protocolVersion`, `capabilities` and `clientInfo` with `name` and `version`."
        super().__init__(needed, id)


def check_type(request: Request) -> None:
    """Refuse what a web page could send without being asked: only JSON that says so is read."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise WrongType


async def read(request: Request, limit: int) -> bytes:
    """The whole body; one past the limit is not kept."""
    told = request.headers.get("content-length", "")
    told_too_much = told.isdecimal() and (len(told) > 18 or int(told) > limit)
    if told_too_much and "expect" in request.headers:
        raise TooLarge(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size <= limit:
                parts.append(part)
            elif size > _DRAINED * limit:
                break
    except ClientDisconnect as error:
        raise BadInput("The client went away before its request was complete.") from error
    if size > limit or told_too_much:
        raise TooLarge(limit)
    return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Hand out a body that was read already, then whatever the client still sends."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return pending.pop() if pending else await receive()

    return again


def decoded(body: bytes) -> object:
    """JSON as everyone reads it alike: UTF-8, no lone surrogates, no NaN, no name twice in an object."""
    try:
        from_json(body, allow_inf_nan=False)
        return json.loads(body, object_pairs_hook=_unique)
    except RecursionError as error:
        raise NotJson("This is nested too deeply. Send flatter JSON.") from error
    except ValueError as error:
        raise NotJson(
            f"This is not valid JSON in UTF-8: {error}. Lone surrogates, NaN and Infinity are not JSON either."
        ) from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name appears twice in one object")
    return found


def message(found: object) -> types.JSONRPCMessage:
    """One message of JSON-RPC."""
    if not isinstance(found, dict):
        raise BadMessage("A message must be a JSON object with `jsonrpc`, `method` and, to get an answer, `id`.")
    id = found.get("id")
    is_usable = (isinstance(id, str) and len(id) <= _LONGEST_ID) or (type(id) is int and abs(id) < 2**63)
    is_error = id is None and "error" in found
    if "id" in found and not is_usable and not is_error:
        raise BadMessage(f"`id` must be text of at most {_LONGEST_ID} characters or a whole number.")
    try:
        return types.jsonrpc_message_adapter.validate_python(found, by_name=False)
    except ValidationError as error:
        raise BadMessage(
            'This is not a JSON-RPC 2.0 message: it needs `"jsonrpc": "2.0"`, `method` as text, and `params`, where'
            " given, as an object.",
            id if is_usable else None,
        ) from error


def initialization(request: types.JSONRPCRequest) -> types.InitializeRequestParams:
    """What an initialize says."""
    try:
        return types.InitializeRequestParams.model_validate(request.params, by_name=False)
    except ValidationError as error:
        raise BadInitialize(request.id) from error
