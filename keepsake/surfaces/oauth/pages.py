"""Pages for people: rendered here, without a line of script, and never inside another's frame."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import jinja2
from starlette.requests import Request
from starlette.responses import Response

from keepsake.core.errors import KeepsakeError
from keepsake.surfaces.oauth import places

HERE = Path(__file__).parent
KINDS = {"console.css": "text/css", "flower.svg": "image/svg+xml"}
_POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action "
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: then a browser would not say either that a form comes from us.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@cache
def _templates() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(HERE / "templates")
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)


@cache
def _static(name: str) -> tuple[bytes, str]:
    """A file, and a name for these very bytes."""
    body = (HERE / "static" / name).read_bytes()
    return body, hashlib.sha256(body).hexdigest()[:16]


def place(name: str) -> str:
    """Where a file is served, for ever."""
    return f"{places.STATIC}/{_static(name)[1]}/{name}"


def static(request: Request) -> Response:
    """A stylesheet or picture."""
    name, version = request.path_params["name"], request.path_params["version"]
    if name not in KINDS or version != _static(name)[1]:
        return Response(status_code=404, headers=_HEADERS)
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
    return Response(_static(name)[0], headers=headers, media_type=KINDS[name])


def page(template: str, values: Mapping[str, object], status: int = 200, targets: str = "") -> Response:
    """A page; `targets` are places besides ours that its form may lead to."""
    made = _templates().get_template(template).render(place=place, places=places, **values)
    policy = {"Content-Security-Policy": f"{_POLICY}'self' {targets}".strip()}
    return Response(made, status, {**_HEADERS, **policy}, "text/html")


def refused(error: KeepsakeError, status: int | None = None) -> Response:
    """A page that says why not."""
    return page("refused.html", {"reason": str(error)}, status or error.status)


def moved(location: str) -> Response:
    """Send a browser on; where it came from is not told."""
    return Response(status_code=303, headers={**_HEADERS, "Referrer-Policy": "no-referrer", "Location": location})
