"""Endpoints where every request belongs to a session, as checkstack's seed wants it."""

from urllib.parse import urlsplit

import mcp_types as types
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request

from keepsake.core.errors import Forbidden, NoSession
from keepsake.settings import Settings

#: What is spoken with a client that names no revision, or one we do not know.
VERSION = "2025-06-18"
#: Who a client is that does not say.
_UNNAMED = {"name": "unknown", "version": "0"}


def check_origin(request: Request, settings: Settings) -> None:
    """Refuse a web page of another site; programs send no Origin."""
    origin = request.headers.get("origin")
    if origin is None or origin in settings.allowed_origins:
        return
    if urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower():
        raise Forbidden("pages of another site may not call this endpoint. Programs leave the Origin header out.")


def missing() -> NoSession:
    """What is said to a request without a session of ours."""
    return NoSession("This endpoint needs a session. Send `initialize`, then its Mcp-Session-Id with every request.")


def completed(message: types.JSONRPCRequest) -> types.JSONRPCRequest:
    """An initialize with what it leaves out, and a revision that we speak."""
    params = dict(message.params or {})
    if params.get("protocolVersion") not in HANDSHAKE_PROTOCOL_VERSIONS:
        params["protocolVersion"] = VERSION
    whole = {"capabilities": {}, "clientInfo": _UNNAMED, **params}
    return message.model_copy(update={"params": whole})
