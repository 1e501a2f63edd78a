"""Signing in and out with a browser."""

import secrets
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from keepsake.context import App
from keepsake.core.clock import SECOND
from keepsake.ops import signing_in
from keepsake.ops.signing_in import Denied, Entered, Signed
from keepsake.surfaces.oauth import places
from keepsake.surfaces.pages import forms, rendering

#: What is in a browser's own words, in the order in which it tells; most say that they are each other.
_BROWSERS = (("Edg", "Edge"), ("OPR/", "Opera"), ("Firefox", "Firefox"), ("Chrom", "Chrome"), ("Safari", "Safari"))
_SYSTEMS = (
    *(("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad")),
    *(("Windows", "Windows"), ("Macintosh", "macOS"), ("Linux", "Linux")),
)
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


def form_secret(app: App, request: Request) -> str | None:
    """What forms of this browser are signed with: its session, else what it was given with a page."""
    return session_id(app, request) or request.cookies.get(_cookie(app, request, "keepsake_form")) or None


def new_secret() -> str:
    """What forms of a browser without a session are to be signed with."""
    return secrets.token_urlsafe(32)


def keep_secret(app: App, request: Request, answer: Response, secret: str) -> None:
    """Give a browser without a session what its forms are signed with."""
    _set(app, request, answer, "keepsake_form", secret, FORM_TTL)


def keep(app: App, request: Request, answer: Response, name: str, value: str) -> None:
    """Give a browser something to bring back for as long as it is open."""
    _set(app, request, answer, name, value, None)


def kept(app: App, request: Request, name: str) -> str:
    """What a browser brings back; nothing where it has none."""
    return request.cookies.get(_cookie(app, request, name), "")


def link(next: str) -> str:
    """The address of the form that leads back here."""
    return f"{places.SIGN_IN}?next={quote(next, safe='')}"


def onward(next: str | None) -> str:
    """Where to go after signing in: only to pages of ours."""
    wanted = next or ""
    is_ours = wanted.startswith((f"{places.AUTHORIZE}?", f"{places.CONSOLE}/", f"{places.CONSOLE}?"))
    parts = urlsplit(wanted)
    is_plain = not parts.netloc and not parts.scheme and "\\" not in wanted and ".." not in parts.path
    is_ours = is_ours and is_plain and wanted.isascii() and wanted.isprintable()
    return wanted if is_ours else places.CONSOLE


async def show(app: App, request: Request) -> Response:
    """The form."""
    next = forms.of_query(request).maybe("next", forms.LONGEST_QUERY * 3)
    return await _form(app, request, onward(next))


async def _form(
    app: App, request: Request, next: str, user: str = "", problem: str = "", status: int = 200
) -> Response:
    secret = request.cookies.get(_cookie(app, request, "keepsake_form")) or new_secret()
    known, id = await signed(app, request), session_id(app, request)
    values = {
        "host": urlsplit(places.base(app.settings, request)).netloc,
        "theme": rendering.theme(request),
        "csrf": forms.token(secret),
        "next": next,
        "user": user,
        "problem": problem,
        "signed": known.name if known else "",
        "sign_out": forms.token(id) if id else "",
    }
    answer = rendering.page("signin.html", values, status)
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
    password = forms.typed(fields, "password")
    outcome = await signing_in.sign_in(app, user, password, address, stay, browser_of(request))
    if isinstance(outcome, Denied):
        return await _form(app, request, next, user[:200], *_told(outcome))
    return await entered(app, request, outcome, next, outcome.lasts // SECOND if stay else None)


async def entered(app: App, request: Request, outcome: Entered, next: str, seconds: int | None = None) -> Response:
    """Send someone on who has signed in, with a session of their own in place of any that the browser had."""
    if (old := session_id(app, request)) is not None:
        await signing_in.sign_out(app, old)
    answer = rendering.moved(next)
    _set(app, request, answer, "keepsake", outcome.id, seconds)
    return answer


def browser_of(request: Request) -> str:
    """Which browser it says to be, in two words that its owner knows it by."""
    told = request.headers.get("user-agent", "")
    name = next((name for mark, name in _BROWSERS if mark in told), "A browser")
    system = next((name for mark, name in _SYSTEMS if mark in told), "")
    return f"{name} on {system}" if system else name


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
    answer = rendering.moved(places.SIGN_IN)
    answer.delete_cookie(_cookie(app, request, "keepsake"), path="/", secure=is_secure(app, request), httponly=True)
    return answer
