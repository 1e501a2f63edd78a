"""Where the server is, as whoever asks knows it, and what is where."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from starlette.requests import HTTPConnection

from keepsake.auth import oauth as rules
from keepsake.auth.oauth import Refused
from keepsake.settings import Settings

PROTECTED = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"
AUTHORIZE = "/api/auth/mcp/authorize"
TOKEN = "/api/auth/mcp/token"
REGISTER = "/api/auth/mcp/register"
REVOKE = "/api/auth/mcp/revoke"
INTROSPECT = "/api/auth/mcp/introspect"
SIGN_IN, SIGN_OUT, STATIC = "/console/signin", "/console/signout", "/console/static"
CONSOLE, THEME = "/console", "/console/theme"
_HOST = re.compile(r"[a-z0-9.-]+|[0-9a-f:.]+")


def base(settings: Settings, request: HTTPConnection) -> str:
    """The address of this server, without a slash at its end: the issuer of tokens, and the whole as a resource."""
    if settings.public_url:
        return settings.public_url
    # Built from its parts, because the header may hold more than a name; the guard has checked that one alone.
    told = urlsplit(f"//{request.headers.get('host', '')}")
    name = told.hostname or "localhost"
    if not _HOST.fullmatch(name):
        name = "localhost"
    host = f"[{name}]" if ":" in name else name
    return f"{request.url.scheme}://{host}:{told.port}" if told.port else f"{request.url.scheme}://{host}"


def path(request: HTTPConnection) -> str:
    """The path as it was sent."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    return raw.partition(b"?")[0].decode("ascii", "replace")


def resources(settings: Settings, request: HTTPConnection) -> frozenset[str]:
    """As what the server is addressed by a request: a token must be for this path, or for the whole server."""
    whole = base(settings, request)
    return frozenset({whole, whole + path(request)})


@dataclass(frozen=True, slots=True)
class Map:
    """Which paths are MCP endpoints."""

    is_endpoint: Callable[[str], bool]
    #: Whether tokens of other issuers are taken at a path.
    takes_others: Callable[[str], bool] = lambda _: False

    def issuers(self, settings: Settings, path: str) -> list[str]:
        """Who besides us gives tokens for an endpoint, as far as that can be asked at an address."""
        named = [one.issuer for one in settings.jwt_issuers if one.issuer.startswith(("https://", "http://"))]
        return named if self.takes_others(path) else []

    def resource(self, whole: str, wanted: str | None) -> str:
        """A resource that a client may ask for: an MCP endpoint of ours, or all of them."""
        if wanted is None or rules.trimmed(wanted) == whole:
            return whole
        is_ours = wanted.startswith(f"{whole}/") and len(wanted) <= rules.LONGEST and not re.search(r"[?#\s\\]", wanted)
        if not is_ours or not self.is_endpoint(unquote(wanted.removeprefix(whole))):
            raise Refused("invalid_target", "The resource is no MCP endpoint of this server.")
        return wanted
