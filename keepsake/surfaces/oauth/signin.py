"""Signing in and out with a browser."""

import secrets
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from keepsake.context import App
from keepsake.core.clock import SECOND
from keepsake.ops import signing_in
from keepsake.ops.signing_in import Denied, Signed
from keepsake.surfaces.oauth import forms, pages, places

#: Seconds for which a sign-in form may stand open.
FORM_TTL = 3_600


def is_secure(app: App, request: Request) -> bool:
    """Whether browsers reach us over TLS."""
    return places.base(app.settings, request).startswith("https:")


def _cookie(app: App, request: Request, name: str) -> str:
    # The prefix makes a browser refuse the cookie from anyone but this very host.
    return f"__Host-{name}" if is_secure(app, request) else name


def session_id(app: App, request: Request) -> str | None:
    """The session that a browser says it has."""
    return request.cookies.get(_cookie(app, request, "keepsake")) or None


async def signed(app: App, request: Request) -> Signed | None:
    """Who is signed in, asked anew on every request."""
    id = session_id(app, request)
    return await signing_in.signed_in(app, id) if id else None


def link(next: str) -> str:
    """The address of the form that leads back here."""
    return f"{places.SIGN_IN}?next={quote(next, safe='')}"


def onward(next: str | None) -> str:
    """Where to go after signing in: only to pages of ours."""
    wanted = next or ""
    is_ours = wanted.startswith((f"{places.AUTHORIZE}?", "/console/")) and wanted.isascii() and wanted.isprintable()
    parts = urlsplit(wanted)
    is_plain = not parts.netloc and not parts.scheme and "\\" not in wanted and ".." not in parts.path
    return wanted if is_ours and is_plain else places.SIGN_IN


async def show(app: App, request: Request) -> Response:
    """The form."""
    next = forms.of_query(request).maybe("next", forms.LONGEST_QUERY * 3)
    return await _form(app, request, onward(next))


async def _form(
    app: App, request: Request, next: str, user: str = "", problem: str = "", status: int = 200
) -> Response:
    secret = request.cookies.get(_cookie(app, request, "keepsake_form")) or secrets.token_urlsafe(32)
    known, id = await signed(app, request), session_id(app, request)
    values = {
        "host": urlsplit(places.base(app.settings, request)).netloc,
        "csrf": forms.token(secret),
        "next": next,
        "user": user,
        "problem": problem,
        "signed": known.name if known else "",
        "sign_out": forms.token(id) if id else "",
    }
    answer = pages.page("signin.html", values, status)
    _set(app, request, answer, "keepsake_form", secret, FORM_TTL)
    return answer


def _set(app: App, request: Request, answer: Response, name: str, value: str, seconds: int | None) -> None:
    answer.set_cookie(
        _cookie(app, request, name),
        value,
        max_age=seconds,
        path="/",
        secure=is_secure(app, request),
        httponly=True,
        samesite="lax",
    )


async def enter(app: App, request: Request) -> Response:
    """Take the form."""
    fields = await forms.of_body(request)
    whole = places.base(app.settings, request)
    forms.check_own(request, fields, request.cookies.get(_cookie(app, request, "keepsake_form")), whole)
    next, user = onward(fields.maybe("next", forms.LARGEST)), fields.maybe("user") or ""
    stay = fields.maybe("stay") == "yes"
    address = request.client.host if request.client else ""
    # As it was typed: a password may hold any character.
    password = _typed(fields)
    outcome = await signing_in.sign_in(app, user, password, address, stay)
    if isinstance(outcome, Denied):
        return await _form(app, request, next, user[:200], *_told(outcome))
    if (old := session_id(app, request)) is not None:
        await signing_in.sign_out(app, old)
    answer = pages.moved(next)
    _set(app, request, answer, "keepsake", outcome.id, outcome.lasts // SECOND if stay else None)
    return answer


def _typed(fields: forms.Fields) -> str:
    """The password that was typed."""
    return next(iter(fields.all("password")), "")


def _told(denied: Denied) -> tuple[str, int]:
    if denied.left <= 0:
        return "Too many tries. Wait ten minutes, then try again.", 429
    tries = "One try" if denied.left == 1 else f"{denied.left} tries"
    return f"That name and password do not match. {tries} left before a ten minute pause.", 403


async def leave(app: App, request: Request) -> Response:
    """Sign out."""
    fields, id = await forms.of_body(request), session_id(app, request)
    forms.check_own(request, fields, id, places.base(app.settings, request))
    if id is not None:
        await signing_in.sign_out(app, id)
    answer = pages.moved(places.SIGN_IN)
    answer.delete_cookie(_cookie(app, request, "keepsake"), path="/", secure=is_secure(app, request), httponly=True)
    return answer
