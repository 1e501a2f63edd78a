"""Pages for people: rendered here, without a line of inline script or style, and never inside another's frame."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import jinja2
from starlette.requests import Request
from starlette.responses import Response

from keepsake.core.errors import KeepsakeError
from keepsake.surfaces.oauth import places
from keepsake.surfaces.pages import charts, icons, static, words

HERE = Path(__file__).parent
FOLDERS = (HERE / "templates", HERE.parent / "console" / "templates")
_POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action "
_SCRIPTS = "script-src 'self'; connect-src 'self'; "
#: How a reader wants it; the script sets it too, so that nothing flashes.
THEMES = ("light", "dark")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: then a browser would not say either that a form comes from us.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@cache
def templates() -> jinja2.Environment:
    """Every template, with what all of them may use."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDERS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(place=static.place, has=static.exists, places=places, theme="")
    made.globals.update(icon=icons.icon, flower=icons.flower, kind=icons.kind, **charts.DRAWN)
    made.filters.update(words.FILTERS)
    return made


def theme(request: Request) -> str:
    """Light or dark where the reader chose, else nothing."""
    chosen = request.cookies.get("theme", "")
    return chosen if chosen in THEMES else ""


def page(template: str, values: Mapping[str, object], status: int = 200, targets: str = "") -> Response:
    """A page that runs no script; `targets` are places besides ours that its form may lead to."""
    return _made(template, values, status, f"{_POLICY}'self' {targets}".strip())


def scripted(template: str, values: Mapping[str, object], status: int = 200) -> Response:
    """A page that may run our own scripts."""
    return _made(template, values, status, f"{_SCRIPTS}{_POLICY}'self'")


def _made(template: str, values: Mapping[str, object], status: int, policy: str) -> Response:
    made = templates().get_template(template).render(**values)
    return Response(made, status, {**HEADERS, "Content-Security-Policy": policy}, "text/html")


def refused(error: KeepsakeError, status: int | None = None) -> Response:
    """A page that says why not."""
    return page("refused.html", {"reason": str(error)}, status or error.status)


def moved(location: str) -> Response:
    """Send a browser on; where it came from is not told."""
    return Response(status_code=303, headers={**HEADERS, "Referrer-Policy": "no-referrer", "Location": location})
