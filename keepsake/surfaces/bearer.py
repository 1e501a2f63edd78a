"""The bearer of an HTTP request becomes a Principal."""

from starlette.requests import Request

from keepsake.auth import verify
from keepsake.auth.external import Issuers
from keepsake.context import App
from keepsake.core.errors import Unauthenticated
from keepsake.core.loopback import is_loopback
from keepsake.core.principal import Principal
from keepsake.surfaces.oauth import places

__all__ = ["is_loopback", "principal"]


async def principal(app: App, request: Request, issuers: Issuers | None = None) -> Principal:
    """Who sent this request; the open door exists on loopback only, and tokens of others count where they are named."""
    sent = request.headers.getlist("authorization")
    token: str | None = None
    if len(sent) > 1:
        # A proxy in between may have checked the other.
        raise Unauthenticated("Send one Authorization header, not several.")
    if sent:
        scheme, _, token = sent[0].partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or not token.isascii():
            raise Unauthenticated("The Authorization header must be `Bearer <key>`.")
    is_open, settings = is_loopback(app.settings.host), app.settings
    return await verify.principal(
        app.store,
        settings,
        token,
        open_door=is_open,
        issuers=issuers,
        # Few requests carry a token that must be for this address.
        resources=lambda: places.resources(settings, request),
    )
