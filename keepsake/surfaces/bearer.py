"""The bearer of an HTTP request becomes a Principal."""

import ipaddress

from starlette.requests import Request

from keepsake.auth import verify
from keepsake.context import App
from keepsake.core.errors import Unauthenticated
from keepsake.core.principal import Principal


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        # A name that merely begins like an address may lead anywhere.
        return False


async def principal(app: App, request: Request) -> Principal:
    """Who sent this request; the open door exists on loopback only."""
    header = request.headers.get("authorization")
    token: str | None = None
    if header is not None:
        scheme, _, token = header.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or not token.isascii():
            raise Unauthenticated("The Authorization header must be `Bearer <key>`.")
    return await verify.principal(app.store, app.settings, token, open_door=is_loopback(app.settings.host))
