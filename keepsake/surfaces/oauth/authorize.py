"""The authorization endpoint: what a client asks for becomes a person's consent, or is refused."""

from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from keepsake.auth import oauth as rules
from keepsake.auth.oauth import Refused
from keepsake.context import App, Ctx
from keepsake.core.operation import SCOPES
from keepsake.ops import authorizing, clients, signing_in
from keepsake.ops.authorizing import Asked
from keepsake.ops.clients import Client, Fetch
from keepsake.ops.signing_in import Signed
from keepsake.surfaces.oauth import places
from keepsake.surfaces.oauth.places import Map
from keepsake.surfaces.pages import forms, rendering, signin
from keepsake.surfaces.pages.forms import Fields

#: What consenting to a scope means, in a person's words.
WORDS = {
    "memory:read": "Find and read memories",
    "memory:write": "Remember and correct, in your name",
    "memory:delete": "Forget for good, without asking anyone",
    "bank:admin": "Make, change and sync banks",
    "watch:read": "Read incidents and checks",
    "watch:write": "Add checks and acknowledge incidents",
    "research:read": "Read the web and GitHub",
    "exec:invoke": "Ask for enrolled commands to be run",
    "inference": "Use the xerotier endpoint",
}
#: Never ticked for anyone.
UNTICKED = frozenset({"memory:delete"})
#: Banks that are shown to choose from.
MOST_BANKS = 200
# After the form a browser follows the redirect only to what the page's policy names; the client may lead on from there.
_TARGETS = "https: http://127.0.0.1:* http://localhost:*"


class Told(Exception):
    """A refusal that the client is told, at the place it is answered."""

    def __init__(self, redirect: str, state: str | None, error: Refused) -> None:
        super().__init__()
        self.redirect, self.state, self.error = redirect, state, error


@dataclass(frozen=True, slots=True)
class Authorize:
    """The endpoint."""

    app: App
    map: Map
    fetch: Fetch

    async def __call__(self, request: Request) -> Response:
        """Show the page, or take what was chosen on it."""
        forms.of_query(request)
        signed = await signin.signed(self.app, request)
        if signed is None:
            # First of all, so that no stranger can make us read documents.
            return rendering.moved(signin.link(f"{places.AUTHORIZE}?{request.url.query}"))
        whole = places.base(self.app.settings, request)
        try:
            asked = await self._asked(request, whole)
        except Told as told:
            return rendering.moved(_back(told.redirect, {**forms.told(told.error), "state": told.state, "iss": whole}))
        ctx = self.app.ctx(await signing_in.principal(self.app, signed), surface="web")
        if request.method != "POST":
            return await self._page(request, ctx, asked, signed)
        return await self._decide(request, ctx, asked, signed)

    async def _asked(self, request: Request, whole: str) -> Asked:
        """What is asked, with a client and a place to answer that are beyond doubt first."""
        fields = forms.of_query(request)
        client = await clients.met(self.app, fields.one("client_id", rules.LONGEST), self.fetch)
        redirect = fields.one("redirect_uri", rules.LONGEST)
        if not rules.may_redirect(client.redirects, redirect):
            raise Refused("invalid_request", "The client asked to be answered at a place that it has not registered.")
        state: str | None = None
        try:
            state = fields.maybe("state")
            return self._checked(fields, client, redirect, whole)
        except Refused as error:
            raise Told(redirect, state, error) from error

    def _checked(self, fields: Fields, client: Client, redirect: str, whole: str) -> Asked:
        if fields.one("response_type") != "code":
            raise Refused("unsupported_response_type", "Only `code` is offered.")
        challenge = fields.one("code_challenge")
        if fields.maybe("code_challenge_method") != "S256" or not rules.is_challenge(challenge):
            raise Refused("invalid_request", "`code_challenge_method` must be S256, with a challenge of 43 characters.")
        if fields.maybe("request") or fields.maybe("request_uri"):
            raise Refused("request_not_supported", "Send what is asked as fields.")
        if fields.maybe("response_mode") not in (None, "query"):
            raise Refused("invalid_request", "Only the response mode `query` is offered.")
        scopes = rules.wanted_scopes(fields.maybe("scope"))
        try:
            resource = self.map.resource(whole, fields.maybe("resource"))
        except Refused as error:
            raise Refused("invalid_target", str(error)) from error
        return Asked(client, redirect, challenge, scopes, resource, fields.maybe("state"))

    async def _page(self, request: Request, ctx: Ctx, asked: Asked, signed: Signed, problem: str = "") -> Response:
        id = signin.session_id(self.app, request) or ""
        here = f"{places.AUTHORIZE}?{request.url.query}"
        client, offered = asked.client, sorted(_offered(ctx, asked), key=list(SCOPES).index)
        held = (await authorizing.reachable(ctx))[:MOST_BANKS]
        own = _bank_of(asked.resource)
        chosen = {bank.id for bank in held if bank.name == own} or {bank.id for bank in held}
        values = {
            "client": client.name,
            "document": urlsplit(client.client_id).netloc if client.kind == "document" else "",
            "returns": _place(asked.redirect),
            "is_near": rules.is_loopback_redirect(asked.redirect),
            "action": here,
            "again": signin.link(here),
            "csrf": forms.token(id),
            "problem": problem,
            "scopes": [{"name": one, "words": WORDS[one], "ticked": one not in UNTICKED} for one in offered],
            "banks": [{"id": bank.id, "name": bank.name, "ticked": bank.id in chosen} for bank in held],
            "later": len(chosen) == len(held),
            "signed": signed.name,
        }
        return rendering.page("consent.html", values, 400 if problem else 200, _targets(asked.redirect))

    async def _decide(self, request: Request, ctx: Ctx, asked: Asked, signed: Signed) -> Response:
        fields = await forms.of_body(request, self.app.settings.body_limit)
        whole = places.base(self.app.settings, request)
        forms.check_own(request, fields, signin.session_id(self.app, request), whole)
        if fields.maybe("allow") != "yes":
            denied = forms.told(Refused("access_denied", "The person did not allow it."))
            return rendering.moved(_back(asked.redirect, {**denied, "state": asked.state, "iss": whole}))
        scopes = frozenset(fields.all("scope")) & _offered(ctx, asked)
        held = (await authorizing.reachable(ctx))[:MOST_BANKS]
        chosen = tuple(bank.id for bank in held if str(bank.id) in fields.all("bank"))
        is_every = "*" in fields.all("bank") and len(chosen) == len(held)
        if not scopes or not (chosen or is_every):
            return await self._page(
                request, ctx, asked, signed, "Tick at least one thing that it may do, and one bank."
            )
        code = await authorizing.consent(ctx, asked, scopes, None if is_every else chosen)
        return rendering.moved(_back(asked.redirect, {"code": code, "state": asked.state, "iss": whole}))


def _offered(ctx: Ctx, asked: Asked) -> frozenset[str]:
    """What the person can give of what is asked."""
    rights = ctx.principal.rights
    return asked.scopes & (rights.anywhere if rights else frozenset())


def _bank_of(resource: str) -> str:
    """The bank whose own endpoint is asked for."""
    return urlsplit(resource).path.removeprefix("/mcp/").strip("/") if "/mcp/" in resource else ""


def _targets(redirect: str) -> str:
    parts = urlsplit(redirect)
    # A policy has no words for an address of IPv6, nor for a custom scheme but the scheme.
    is_named = parts.scheme == "https" or parts.hostname in ("127.0.0.1", "localhost")
    return _TARGETS if is_named else f"{_TARGETS} {parts.scheme}:"


def _place(redirect: str) -> str:
    """Where a client is answered, as a person reads it."""
    parts = urlsplit(redirect)
    return f"{parts.scheme}://{parts.netloc}"


def _back(redirect: str, fields: dict[str, str | None]) -> str:
    """The address of an answer."""
    told = urlencode({name: value for name, value in fields.items() if value is not None})
    return f"{redirect}{'&' if '?' in redirect else '?'}{told}"
