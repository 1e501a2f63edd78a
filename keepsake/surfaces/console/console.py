"""How the console's pages are reached: who may look is asked anew each time, forms must be ours, errors are pages."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keepsake.auth import verify
from keepsake.context import App
from keepsake.core import roles
from keepsake.core.errors import Broken, Forbidden, KeepsakeError, NotFound, Unauthenticated
from keepsake.core.principal import Principal, local_owner
from keepsake.core.roles import Role
from keepsake.ops import signing_in
from keepsake.ops.signing_in import Signed
from keepsake.surfaces import bearer
from keepsake.surfaces.console import nav, visit
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.oauth import places
from keepsake.surfaces.pages import forms, rendering, signin, words
from keepsake.surfaces.pages.forms import Fields

Show = Callable[[Visit], Awaitable[Response]]
Take = Callable[[Visit, Fields], Awaitable[Response]]
Answer = Callable[[Request], Awaitable[Response]]
#: What each scope opens, as a person is told that it is missing.
RIGHTS = {
    "memory:read": "reading memories",
    "memory:write": "changing memories",
    "memory:delete": "deleting memories for good",
    "bank:admin": "making, changing and syncing banks",
    "watch:read": "reading incidents and checks",
    "watch:write": "adding checks and acknowledging incidents",
    "research:read": "reading the web and GitHub",
    "exec:invoke": "asking for enrolled commands to be run",
    "inference": "using the xerotier endpoint",
    "admin": "managing people, keys and settings",
    "audit": "reading the audit log",
}
#: What programs are told first: which operation refuses.
_OPERATION = re.compile(r"^[a-z_]+\.[a-z_]+: ")
#: How refusals speak of keys, and how people are told the same.
_SAID = (
    (" Use one of the banks it was made for.", ""),
    ("this credential does not", "you do not"),
    ("this credential lacks", "you lack"),
    ("this credential", "you"),
)


@dataclass(frozen=True, slots=True)
class Console:
    """The console of one server."""

    app: App
    #: The pages that there are, by their paths: the navigation names no others.
    known: set[str] = field(default_factory=set)

    def page(self, path: str, show: Show) -> Route:
        """A page at a path below /console; `{bank}` in it must be a bank that whoever looks may see."""

        async def answer(request: Request) -> Response:
            return await self._answered(request, show)

        self.known.add(path)
        return Route(nav.ROOT + path, answer, methods=["GET"])

    def form(self, path: str, take: Take) -> Route:
        """What takes a form of one of our pages."""

        async def answer(request: Request) -> Response:
            async def taken(visit: Visit) -> Response:
                fields = await forms.of_body(request, self.app.settings.body_limit)
                forms.check_own(request, fields, visit.secret, places.base(self.app.settings, request))
                return await take(visit, fields)

            return await self._answered(request, taken)

        return Route(nav.ROOT + path, answer, methods=["POST"])

    async def visit(self, request: Request) -> Visit:
        """Who looks, and at what; Unauthenticated where nobody is known."""
        signed = await signin.signed(self.app, request)
        principal = await self._principal(signed)
        bank = str(request.path_params.get("bank", ""))
        ctx = self.app.ctx(principal, bank or None, surface="web")
        if signed is not None:
            ctx = replace(ctx, signed_in_at=signed.session.recent_login_at)
        secret = signin.form_secret(self.app, request) or ""
        found = Visit(request, ctx, signed, secret, (), bank, frozenset(self.known))
        return replace(found, banks=await visit.bank_names(replace(ctx, bank=None)))

    async def _principal(self, signed: Signed | None) -> Principal:
        if signed is not None:
            return await signing_in.principal(self.app, signed)
        is_near = bearer.is_loopback(self.app.settings.host)
        if is_near and not await verify.credentials_exist(self.app.store, self.app.settings):
            return local_owner()
        raise Unauthenticated("Sign in to see this.")

    async def _answered(self, request: Request, show: Show) -> Response:
        try:
            found = await self.visit(request)
        except Unauthenticated:
            return self._elsewhere(request)
        has_secret = bool(found.secret)
        found = found if has_secret else replace(found, secret=signin.new_secret())
        try:
            found.checked_bank()
            response = await show(found)
        except KeepsakeError as error:
            response = await refusal(found, error)
        if not has_secret:
            signin.keep_secret(self.app, request, response, found.secret)
        return response

    def _elsewhere(self, request: Request) -> Response:
        """To the sign-in page, and back here afterwards; a form that was sent is not sent again."""
        path = places.path(request) if request.method == "GET" else nav.ROOT
        asked = f"?{request.url.query}" if request.url.query and request.method == "GET" else ""
        to = signin.link(path + asked)
        if request.headers.get("hx-request") == "true":
            return Response(status_code=204, headers={**rendering.HEADERS, "HX-Redirect": to})
        return rendering.moved(to)


async def refusal(found: Visit, error: KeepsakeError) -> Response:
    """An error as a page, or as the part of one that was asked for."""
    values = {"title": title(error), "reason": reason(error), "hint": "", "quote": ""}
    if isinstance(error, Forbidden):
        values["reason"], values["hint"] = await _denied(found, error)
    if isinstance(error, Broken):
        values["quote"] = str(error).rpartition(" ")[2].rstrip(".")
    if found.is_part:
        return found.bare("trouble.html", values, status=error.status)
    return await found.page("error.html", values, status=error.status)


def title(error: KeepsakeError) -> str:
    """What happened, in a few words."""
    if isinstance(error, NotFound):
        return "Nothing is here"
    if isinstance(error, Forbidden):
        return "You may not do this"
    return "Something broke on our side" if isinstance(error, Broken) else "That did not work"


def reason(error: KeepsakeError) -> str:
    """Why, without the code that programs read, and as a person is told."""
    if isinstance(error, Broken):
        return "Nothing was changed."
    told = _OPERATION.sub("", str(error).removeprefix("403: "))
    for keys, people in _SAID:
        told = told.replace(keys, people)
    return told[:1].upper() + told[1:]


async def _denied(found: Visit, error: Forbidden) -> tuple[str, str]:
    """Who is refused what, and who can change it."""
    if found.signed is None:
        return reason(error), ""
    who = f"You are signed in as {found.me.name}, {await found.about()}."
    missing = sorted(error.scopes - found.ctx.principal.scopes)
    may = [role for role in roles.NAMES if roles.scopes([role]).issuperset(missing)]
    if not missing or not may:
        return f"{reason(error)} {who}", "An owner can give you another role, under Settings, People."
    told = words.listed([RIGHTS[scope] for scope in missing])
    return f"{who} That does not include {told}.", f"An owner can make you {_either(may)}, under Settings, People."


def _either(names: list[Role]) -> str:
    *some, last = sorted(names)
    return f"{', '.join(some)} or {last}" if some else last
