"""What a check is pointed at: an address, read once and strictly, without credentials."""

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

LONGEST = 2_000
#: The port where an address names none.
PORTS = {"http": 80, "https": 443, "postgresql": 5432, "postgres": 5432, "redis": 6379}
#: The schemes that each kind of check understands; the first one is meant where none is written.
SCHEMES = {
    "http": ("http", "https"),
    "tcp": ("tcp",),
    "postgres": ("postgresql", "postgres"),
    "redis": ("redis",),
    "dns": ("dns",),
}
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\.?", re.IGNORECASE)
#: Tab, newline and their like vanish from an address when it is read, so they must not be there; a backslash is a
#: slash to some.
_UNCLEAN = re.compile(r"[\x00-\x20\x7f-\x9f\\]|\s")


@dataclass(frozen=True, slots=True)
class Target:
    """An address."""

    scheme: str
    host: str
    port: int
    #: Path and query as they are sent; a database's name.
    path: str = ""

    @property
    def authority(self) -> str:
        """Host and port as a Host header names them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if PORTS.get(self.scheme) == self.port else f"{host}:{self.port}"


@lru_cache(maxsize=4096)
def parsed(kind: str, text: str) -> Target:
    """Read an address; ValueError says what it must be."""
    if len(text) > LONGEST or _UNCLEAN.search(text):
        raise ValueError(f"must be an address of at most {LONGEST:,} characters without spaces or backslashes")
    if kind == "dns":
        return Target("dns", _host(text), 0)
    parts = _split(kind, text)
    if "@" in parts.netloc:
        raise ValueError("must not hold a user or a password; a check needs none")
    if parts.fragment or (parts.query and kind != "http"):
        raise ValueError("must not have a fragment, nor a query where it is no web address")
    try:
        host, port = parts.hostname or "", PORTS.get(parts.scheme, 0) if parts.port is None else parts.port
    except ValueError:
        raise ValueError("must have a port from 1 to 65535") from None
    if not port:
        raise ValueError("must name a port, such as db.example:5432")
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}" if kind == "http" else parts.path.strip("/")
    # What stands in brackets is an address and nothing else.
    return Target(parts.scheme, _host(f"[{host}]" if "[" in parts.netloc else host), port, path)


def _split(kind: str, text: str) -> SplitResult:
    schemes = SCHEMES[kind]
    if "://" not in text and kind != "http":
        text = f"{schemes[0]}://{text}"
    try:
        parts = urlsplit(text)
    except ValueError:
        raise ValueError("must be an address such as https://shop.example/health") from None
    if parts.scheme not in schemes or "://" not in text:
        raise ValueError(f"must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    return parts


def _host(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        pass
    try:
        name = text.encode("idna").decode() if not text.isascii() else text
    except UnicodeError:
        name = ""
    if not name or len(name) > 253 or not _NAME.fullmatch(name):
        raise ValueError("must name a host, such as shop.example or 203.0.113.7")
    return name.lower().rstrip(".")
