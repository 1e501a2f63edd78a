"""The endpoints that programs ask: registration, tokens, revocation, introspection."""

import base64
import binascii
from dataclasses import dataclass
from urllib.parse import unquote_plus

from starlette.requests import Request
from starlette.responses import Response

from keepsake.auth.oauth import Refused
from keepsake.context import App
from keepsake.core.clock import SECOND
from keepsake.core.errors import KeepsakeError, Unauthenticated
from keepsake.ops import authorizing, clients
from keepsake.ops.authorizing import Redemption, Tokens
from keepsake.ops.clients import Client
from keepsake.surfaces import bearer, bodies
from keepsake.surfaces.oauth import places
from keepsake.surfaces.pages import forms
from keepsake.surfaces.pages.forms import Fields
from keepsake.surfaces.replies import as_json

_HEADERS = {"Cache-Control": "no-store", "Pragma": "no-cache"}


def refusal(error: KeepsakeError, is_basic: bool = False) -> Response:
    """An error as OAuth tells it."""
    headers = dict(_HEADERS)
    if error.status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="keepsake"' if is_basic else 'Bearer realm="keepsake"'
    return as_json(forms.told(error), error.status, headers)


@dataclass(frozen=True, slots=True)
class Programs:
    """The endpoints."""

    app: App

    async def register(self, request: Request) -> Response:
        """RFC 7591: a client describes itself."""
        try:
            bodies.check_type(request)
            told = bodies.decoded(await bodies.read(request, forms.LARGEST))
        except bodies.TooLarge as error:
            reason = f"The metadata is larger than {forms.LARGEST:,} bytes. Say less of the client."
            raise Refused("invalid_client_metadata", reason, 413) from error
        except KeepsakeError as error:
            raise Refused("invalid_client_metadata", str(error)) from error
        made = await clients.register(self.app, told, request.client.host if request.client else "")
        answer: dict[str, object] = {
            "client_id": made.client.client_id,
            "client_id_issued_at": made.client.created_at // SECOND,
            "client_name": made.client.name,
            "redirect_uris": list(made.client.redirects),
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": made.client.method,
        }
        if made.secret:
            # Zero means that it does not expire by itself.
            answer |= {"client_secret": made.secret, "client_secret_expires_at": 0}
        return as_json(answer, 201, _HEADERS)

    async def token(self, request: Request) -> Response:
        """Codes and refresh tokens become tokens."""
        fields = await forms.of_body(request)
        kind = fields.one("grant_type")
        if kind not in ("authorization_code", "refresh_token"):
            raise Refused("unsupported_grant_type", "Only authorization_code and refresh_token are offered.")
        client = await self._client(request, fields)
        resource = fields.maybe("resource")
        if kind == "authorization_code":
            code, redirect, verifier = (fields.one(name) for name in ("code", "redirect_uri", "code_verifier"))
            tokens = await authorizing.redeem(self.app, client, Redemption(code, redirect, verifier, resource))
        else:
            token, scope = fields.one("refresh_token"), fields.maybe("scope")
            tokens = await authorizing.refresh(self.app, client, token, scope, resource)
        return as_json(_told(tokens), headers=_HEADERS)

    async def revoke(self, request: Request) -> Response:
        """RFC 7009: a client gives a token back."""
        fields = await forms.of_body(request)
        client = await self._client(request, fields)
        await authorizing.revoke(self.app, client, fields.one("token"))
        return Response(status_code=200, headers=_HEADERS)

    async def introspect(self, request: Request) -> Response:
        """RFC 7662: what a token is worth now, for its client, and for who manages the org."""
        fields = await forms.of_body(request)
        client: Client | None = None
        if request.headers.get("authorization", "").lower().startswith("bearer "):
            who = await bearer.principal(self.app, request)
            if not who.is_manager:
                raise Unauthenticated("Only who manages the org may look at tokens of others.")
        else:
            client = await self._client(request, fields)
        whole = places.base(self.app.settings, request)
        told = await authorizing.introspect(self.app, fields.one("token"), client, whole)
        return as_json(told, headers=_HEADERS)

    async def _client(self, request: Request, fields: Fields) -> Client:
        """Who asks, by one way of saying so."""
        id, secret = fields.maybe("client_id"), fields.maybe("client_secret")
        header = request.headers.get("authorization")
        if header is not None:
            if secret is not None:
                raise Refused("invalid_request", "A client proves who it is in one way, not two.")
            told, secret = _basic(header)
            if id not in (None, told):
                raise Refused("invalid_request", "Two clients are named.")
            id = told
        if id is None:
            raise Refused("invalid_client", "`client_id` is missing.", 401)
        return await clients.authenticated(self.app, id, secret)


def _basic(header: str) -> tuple[str, str]:
    scheme, _, told = header.partition(" ")
    try:
        name, colon, secret = base64.b64decode(told.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeError):
        scheme = ""
    if scheme.lower() != "basic" or not colon or "\0" in unquote_plus(name):
        raise Refused("invalid_client", "The Authorization header is not one of a client.", 401)
    return unquote_plus(name), unquote_plus(secret)


def _told(tokens: Tokens) -> dict[str, object]:
    return {
        "access_token": tokens.access,
        "token_type": "Bearer",
        "expires_in": tokens.lasts,
        "refresh_token": tokens.refresh,
        "scope": " ".join(sorted(tokens.scopes)),
    }
