"""Stylesheet, script and pictures: each under a name for its very bytes, so that a browser may keep it for ever."""

import gzip
import hashlib
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from keepsake.surfaces.oauth import places

HERE = Path(__file__).parent / "static"
KINDS = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "flower.svg": "image/svg+xml",
    # Brought in when the package is built; without them the pages are plain links and forms.
    "htmx.js": "text/javascript",
    "htmx-sse.js": "text/javascript",
}
_NOSNIFF = {"X-Content-Type-Options": "nosniff"}


@cache
def _file(name: str) -> tuple[bytes, bytes, str]:
    """A file, the same compressed, and a name for these very bytes."""
    body = (HERE / name).read_bytes()
    return body, gzip.compress(body, 9, mtime=0), hashlib.sha256(body).hexdigest()[:16]


@cache
def exists(name: str) -> bool:
    """Whether a file was brought in."""
    return (HERE / name).is_file()


def place(name: str) -> str:
    """Where a file is served, for ever."""
    return f"{places.STATIC}/{_file(name)[2]}/{name}"


def answer(request: Request) -> Response:
    """A file."""
    name, version = request.path_params["name"], request.path_params["version"]
    if name not in KINDS or not exists(name) or version != _file(name)[2]:
        return Response(status_code=404, headers=_NOSNIFF)
    body, packed, _ = _file(name)
    is_packed = "gzip" in request.headers.get("accept-encoding", "") and name != "flower.svg"
    headers = {**_NOSNIFF, "Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if is_packed:
        headers["Content-Encoding"] = "gzip"
    return Response(packed if is_packed else body, headers=headers, media_type=KINDS[name])
