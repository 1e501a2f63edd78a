"""The rules of OAuth: redirects, proof of possession, scopes, resources, and what a client may say of itself."""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from keepsake.core.clock import DAY, HOUR, MINUTE, SECOND
from keepsake.core.errors import KeepsakeError
from keepsake.core.principal import DEFAULT_SCOPES, EVERY_SCOPE
from keepsake.store.oauth import Kind

PREFIX = "ks_oauth_"
#: How long a code, an access token and a consent hold.
CODE_TTL, ACCESS_TTL, GRANT_TTL = 2 * MINUTE, HOUR, 30 * DAY
#: Parallel processes of one client race for the same refresh; for so long they are told the same answer.
LEEWAY = 60 * SECOND
#: What a client may be given; managing the org is for people and keys.
GRANTABLE = EVERY_SCOPE - {"admin"}
#: What a client that asks for nothing in particular is offered.
OFFERED = DEFAULT_SCOPES
METHODS = ("none", "client_secret_post", "client_secret_basic")
#: Custom schemes belong to whoever registers them on a machine, so only these are known to lead to the right program.
CUSTOM = frozenset({"cursor://anysphere.cursor-mcp/oauth/callback"})
LONGEST, MOST_REDIRECTS, LONGEST_NAME = 2_048, 10, 200

_REST = r"(?P<rest>/[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]*)?"
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_WEB = re.compile(rf"https://(?P<host>{_LABEL}(?:\.{_LABEL})*)(?::(?P<port>[1-9]\d{{0,4}}))?{_REST}")
_LOOPBACK = re.compile(rf"http://(?P<host>127\.0\.0\.1|localhost|\[::1\])(?::(?P<port>[1-9]\d{{0,4}}))?{_REST}")
_VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_SCOPE = re.compile(r"[!#-\[\]-~]+")


class Refused(KeepsakeError):
    """A request that OAuth has a word for."""

    def __init__(self, kind: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.kind, self.status = kind, status


@dataclass(frozen=True, slots=True)
class Secret:
    """A new code or token, the only time its text exists here."""

    text: str
    sha256: str


def made(kind: Kind) -> Secret:
    """Make one of 256 random bits."""
    return named(kind, secrets.token_hex(32))


def named(kind: Kind, digits: str) -> Secret:
    """The code or token of these digits."""
    text = f"{PREFIX}{kind[0]}{digits}"
    return Secret(text, hashed(text))


def hashed(text: str) -> str:
    """What is kept of a code, token or secret."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_access(token: str) -> bool:
    """Whether a bearer looks like an access token of ours."""
    return token.startswith(f"{PREFIX}a")


def is_secret(client_hash: str, given: str) -> bool:
    """Whether a client told its secret."""
    return bool(client_hash) and hmac.compare_digest(client_hash, hashed(given))


def check_redirect(uri: str) -> None:
    """Refuse a place that a code must never be sent to."""
    found = _WEB.fullmatch(uri) or _LOOPBACK.fullmatch(uri)
    is_known = len(uri) <= LONGEST and (uri in CUSTOM or (found is not None and int(found["port"] or 1) < 65_536))
    if not is_known:
        raise Refused(
            "invalid_redirect_uri",
            "A redirect URI must be https, or http on 127.0.0.1, [::1] or localhost, without user or fragment.",
        )


def may_redirect(known: Collection[str], uri: str) -> bool:
    """Whether a client may be answered there: at exactly a place it named, or on another port of loopback."""
    if uri in known:
        return True
    asked = _LOOPBACK.fullmatch(uri)
    if asked is None or int(asked["port"] or 1) > 65_535:
        return False
    places = (_LOOPBACK.fullmatch(one) for one in known)
    return any(
        one and one["host"] == asked["host"] and (one["rest"] or "/") == (asked["rest"] or "/") for one in places
    )


def is_loopback_redirect(uri: str) -> bool:
    """Whether a redirect stays on the computer of whoever consents."""
    return _LOOPBACK.fullmatch(uri) is not None


def is_challenge(text: str) -> bool:
    """Whether it can be the S256 of a verifier."""
    return _CHALLENGE.fullmatch(text) is not None


def is_proven(challenge: str, verifier: str) -> bool:
    """Whether a verifier is the one that a code was asked for with."""
    if not _VERIFIER.fullmatch(verifier):
        return False
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    return hmac.compare_digest(digest, challenge)


def wanted_scopes(text: str | None) -> frozenset[str]:
    """The scopes that a request asks for."""
    if text is None or not text.strip(" "):
        return OFFERED
    asked = [one for one in text.split(" ") if one]
    if len(text) > LONGEST or not all(_SCOPE.fullmatch(one) for one in asked):
        raise Refused("invalid_scope", "The scope is not a list of words.")
    # Every client gets a refresh token, so who asks for one by this word asks for nothing more.
    found = frozenset(asked) - {"offline_access"}
    if unknown := sorted(found - GRANTABLE):
        raise Refused("invalid_scope", f"There is no scope {unknown[0][:100]} for clients.")
    return found or OFFERED


def trimmed(resource: str) -> str:
    """A resource without the one slash that some clients add."""
    return resource.removesuffix("/")


def is_document(client_id: str) -> bool:
    """Whether a client's id is the address of its metadata document."""
    found = _WEB.fullmatch(client_id)
    if found is None or len(client_id) > LONGEST or found["port"] not in (None, "443"):
        return False
    parts = urlsplit(client_id)
    is_dotted = any(part in (".", "..") for part in parts.path.lower().replace("%2e", ".").split("/"))
    return len(parts.path) > 1 and not is_dotted and not parts.query


@dataclass(frozen=True, slots=True)
class Described:
    """What a client says of itself."""

    name: str
    redirects: tuple[str, ...]
    method: str


def registered(told: object) -> Described:
    """What a registration says, if it can be taken."""
    return _described(told, "client_secret_basic", METHODS)


def documented(told: object, client_id: str) -> Described:
    """What a metadata document says, if it is that client's."""
    if not isinstance(told, dict) or told.get("client_id") != client_id:
        raise Refused("invalid_client", "The client's metadata document does not name the client it stands for.")
    if "client_secret" in told or "client_secret_expires_at" in told:
        raise Refused("invalid_client", "The client's metadata document holds a secret, which everyone can read.")
    return _described(told, "none", ("none",))


def _described(told: object, method: str, methods: tuple[str, ...]) -> Described:
    if not isinstance(told, dict):
        raise _bad("The metadata must be a JSON object.")
    redirects, chosen = told.get("redirect_uris"), told.get("token_endpoint_auth_method", method)
    if not isinstance(redirects, list) or not 0 < len(redirects) <= MOST_REDIRECTS:
        raise Refused("invalid_redirect_uri", f"`redirect_uris` must be a list of 1 to {MOST_REDIRECTS}.")
    for uri in redirects:
        check_redirect(uri if isinstance(uri, str) else "")
    if chosen not in methods:
        raise _bad(f"`token_endpoint_auth_method` must be one of {', '.join(methods)}.")
    if "authorization_code" not in _words(told, "grant_types", "authorization_code"):
        raise _bad("`grant_types` must hold authorization_code.")
    if "code" not in _words(told, "response_types", "code"):
        raise _bad("`response_types` must hold code.")
    if not isinstance(told.get("scope", ""), str) or len(told.get("scope", "")) > LONGEST:
        raise _bad("`scope` must be text.")
    return Described(_name(told), tuple(dict.fromkeys(redirects)), chosen)


def _name(told: Mapping[str, object]) -> str:
    name = told.get("client_name", "A client without a name")
    # What is not printable includes the marks that turn text around, which could make one name look like another.
    if not isinstance(name, str) or not 0 < len(name.strip()) <= LONGEST_NAME or not name.isprintable():
        raise _bad(f"`client_name` must be printable text of at most {LONGEST_NAME} characters.")
    return name.strip()


def _words(told: Mapping[str, object], field: str, default: str) -> list[str]:
    found = told.get(field, [default])
    if not isinstance(found, list) or len(found) > 20 or not all(isinstance(one, str) for one in found):
        raise _bad(f"`{field}` must be a list of words.")
    return found


def _bad(reason: str) -> Refused:
    return Refused("invalid_client_metadata", reason)
