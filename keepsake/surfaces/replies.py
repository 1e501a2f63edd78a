"""Answers over HTTP, in the shape that MCP or REST wants."""

import json
from collections.abc import Mapping

from starlette.responses import Response

from keepsake.core.errors import Forbidden, KeepsakeError, RateLimited, Unauthenticated

INVALID_REQUEST, INVALID_PARAMS = -32600, -32602


def refusal_headers(error: KeepsakeError) -> dict[str, str]:
    """What a status must be accompanied by."""
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": 'Bearer realm="keepsake"'}
    if isinstance(error, Forbidden) and error.scopes:
        scopes = " ".join(sorted(error.scopes))
        return {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scopes}"'}
    if isinstance(error, RateLimited):
        return {
            "Retry-After": str(error.wait),
            "X-RateLimit-Limit": str(error.limit),
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(error.reset),
        }
    return {}


def as_json(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status, dict(headers or {}), "application/json")


def rpc_error(code: int, message: str, id: object = None) -> dict[str, object]:
    """A JSON-RPC error message."""
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def rpc_refusal(error: KeepsakeError, id: object = None) -> Response:
    """An error as a JSON-RPC answer with its status."""
    code = error.rpc if error.rpc is not None else INVALID_PARAMS
    return as_json(rpc_error(code, str(error), id), error.status, refusal_headers(error))


def rest_refusal(error: KeepsakeError) -> Response:
    """An error as REST tells it."""
    return as_json({"error": {"code": error.code, "message": str(error)}}, error.status, refusal_headers(error))
