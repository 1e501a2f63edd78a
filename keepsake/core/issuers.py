"""Who besides us may vouch for a person: the issuers of bearer tokens that the operator names."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from keepsake.core.loopback import is_loopback

#: What a token may be signed with where its issuer publishes keys; never with a secret, for those keys are public.
ASYMMETRIC = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "EdDSA")
#: The same where the operator shares a secret with the issuer.
SHARED = ("HS256",)
#: Bytes that such a secret must have at least.
SHORTEST = 32
FIELDS = ("issuer", "audience", "jwks_url", "secret", "algorithms", "scopes", "banks", "name")


@dataclass(frozen=True, slots=True)
class Issuer:
    """Whose tokens are taken, and what those who bear them may do."""

    #: `iss` of its tokens, word for word.
    issuer: str
    #: `aud` of the tokens that are meant for us; one of these.
    audience: tuple[str, ...]
    #: Where it publishes its keys, or else the secret that it shares with us.
    jwks_url: str = ""
    secret: str = field(default="", repr=False)
    algorithms: tuple[str, ...] = ASYMMETRIC
    scopes: frozenset[str] = frozenset({"memory:read"})
    #: Names of the banks within reach; None means every bank of the org.
    banks: frozenset[str] | None = None
    #: The claim by which its people are known here.
    name: str = "sub"
    #: What stands before that name.
    label: str = ""


def parsed(text: str) -> tuple[Issuer, ...]:
    """The issuers of a JSON list; ValueError says what it must be."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("must be a JSON list of issuers, or the path of a file that holds one") from None
    if not isinstance(told, list) or not told:
        raise ValueError("must be a list with at least one issuer")
    found = [_issuer(one) for one in told]
    if len({one.issuer for one in found}) < len(found):
        raise ValueError("must name each issuer once")
    hosts = [_host(one.issuer) for one in found]
    # Two realms of one host may both have a person of the same name.
    return tuple(
        replace(one, label=host if hosts.count(host) == 1 else one.issuer.partition("://")[2] or one.issuer)
        for one, host in zip(found, hosts, strict=True)
    )


def _host(issuer: str) -> str:
    try:
        return urlsplit(issuer).hostname or issuer
    except ValueError:
        return issuer


def _issuer(told: object) -> Issuer:
    if not isinstance(told, dict):
        raise ValueError("must be a list of objects")
    if unknown := sorted(set(map(str, told)) - set(FIELDS)):
        raise ValueError(f"must not have the field {unknown[0]!r}; the fields are {', '.join(FIELDS)}")
    url, secret = _text(told, "jwks_url"), _text(told, "secret")
    if bool(url) == bool(secret):
        raise ValueError("must have either `jwks_url` or `secret` for each issuer")
    if url and not _is_safe(url):
        raise ValueError("must have a `jwks_url` that begins with https://, or with http:// on this machine")
    if secret and len(secret.encode()) < SHORTEST:
        raise ValueError(f"must have a `secret` of at least {SHORTEST} bytes")
    possible = ASYMMETRIC if url else SHARED
    algorithms = _texts(told, "algorithms") or possible
    if wrong := [one for one in algorithms if one not in possible]:
        raise ValueError(f"must have `algorithms` among {', '.join(possible)}, not {wrong[0]!r}")
    made = Issuer(_text(told, "issuer"), _texts(told, "audience"), url, secret, tuple(algorithms))
    if not made.issuer or not made.audience:
        raise ValueError("must have `issuer` and `audience` for each issuer")
    return replace(
        made,
        scopes=frozenset(_texts(told, "scopes")) or made.scopes,
        banks=frozenset(_texts(told, "banks")) if "banks" in told else None,
        name=_text(told, "name") or made.name,
    )


def _text(told: Mapping[str, object], field: str) -> str:
    value = told.get(field, "")
    if not isinstance(value, str):
        raise ValueError(f"must have text as `{field}`")
    return value


def _texts(told: Mapping[str, object], field: str) -> tuple[str, ...]:
    value = told.get(field, [])
    several: Sequence[object] = [value] if isinstance(value, str) else value if isinstance(value, list) else [None]
    if not all(isinstance(one, str) and one for one in several):
        raise ValueError(f"must have a list of texts as `{field}`")
    return tuple(str(one) for one in several)


def _is_safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    is_plain = parts.username is None and parts.password is None and not parts.fragment and url.isprintable()
    return bool(host) and is_plain and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))
