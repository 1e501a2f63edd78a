"""Tokens that others issue: a JWT of a configured issuer becomes a Principal, or nothing at all."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from keepsake.core import log
from keepsake.core.errors import Misconfigured, Unauthenticated, Unavailable
from keepsake.core.issuers import Issuer
from keepsake.core.lazy import lazy
from keepsake.core.operation import SCOPES
from keepsake.core.principal import LOCAL_ORG, Principal

if TYPE_CHECKING:
    import jwt

    from keepsake.services import jwks
    from keepsake.services.jwks import Jwk
else:
    jwt = lazy("jwt")
    jwks = lazy("keepsake.services.jwks")

Claims = dict[str, Any]
#: The longest token that is looked at, and the longest name in one.
LONGEST, LONGEST_NAME = 16_384, 255
#: Seconds for which published keys are believed, for how long when no new ones can be had, and between two attempts.
FRESH_S, STALE_S, PAUSE_S = 600.0, 3_600.0, 60.0
#: Seconds by which two clocks may differ.
LEEWAY_S = 30
REQUIRED = ("exp", "iss", "aud", "sub")
#: The kind of key that each family of algorithms needs.
KINDS = {"RS": "RSA", "ES": "EC", "Ed": "OKP"}


class Refused(Exception):
    """Why a token is not taken; for our log, never for whoever sent it."""


@dataclass(slots=True)
class Keys:
    """The published keys of one issuer, as far as they are known."""

    issuer: Issuer
    fetch: "Callable[[str], Awaitable[list[Jwk]]]"
    now: Callable[[], float]
    known: "list[Jwk]" = field(default_factory=list)
    read_at: float = float("-inf")
    tried_at: float = float("-inf")
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def signing(self, kid: object, algorithm: str) -> "Jwk":
        """The key that a token names; an unknown one may be new, so the issuer is asked, but not often."""
        if self.now() - self.read_at > FRESH_S or not self._fitting(kid, algorithm):
            async with self.turn:
                await self._read(kid, algorithm)
        found = self._fitting(kid, algorithm)
        if self.now() - self.read_at > STALE_S or len(found) != 1:
            raise Refused("no such key")
        return found[0]

    async def _read(self, kid: object, algorithm: str) -> None:
        is_known = self.now() - self.read_at <= FRESH_S and self._fitting(kid, algorithm)
        if is_known or self.now() - self.tried_at < PAUSE_S:
            return
        try:
            self.known, self.read_at = await self.fetch(self.issuer.jwks_url), self.now()
        except Unavailable as error:
            log.warning("no keys from an issuer", issuer=self.issuer.label, reason=str(error))
        self.tried_at = self.now()

    def _fitting(self, kid: object, algorithm: str) -> "list[Jwk]":
        """The keys that may have signed such a token; without a name in the token there must be one only."""
        return [
            key
            for key in self.known
            if key.get("kty") == KINDS[algorithm[:2]]
            and key.get("use", "sig") == "sig"
            and key.get("alg", algorithm) == algorithm
            and (kid is None or key.get("kid") == kid)
        ]


async def _fetched(url: str) -> "list[Jwk]":
    return await jwks.fetched(url)


class Issuers:
    """Those whose tokens are taken, and the keys that they have published."""

    def __init__(
        self,
        issuers: Sequence[Issuer],
        fetch: "Callable[[str], Awaitable[list[Jwk]]]" = _fetched,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        for issuer in issuers:
            if unknown := sorted(issuer.scopes - SCOPES.keys()):
                known = ", ".join(SCOPES)
                raise Misconfigured(f"KEEPSAKE_JWT_ISSUERS: there is no scope {unknown[0]!r}; the scopes are {known}.")
        self._keys = {issuer.issuer: Keys(issuer, fetch, now) for issuer in issuers}
        self._is_ready = False

    def may_know(self, token: str) -> bool:
        """Whether a token looks like one of theirs; nothing of it is believed yet."""
        return bool(self._keys) and token.count(".") == 2

    async def principal(self, token: str) -> Principal:
        """Whoever bears a valid token."""
        if not self._is_ready:
            # Loading what checks signatures takes 0.1 s, which the event loop cannot spare.
            await asyncio.to_thread(getattr, jwt, "PyJWK")
            self._is_ready = True
        try:
            return await self._verified(token)
        except (Refused, jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            reason = str(error) if isinstance(error, Refused) else type(error).__name__
            log.info("refused a token", reason=reason)
            raise Unauthenticated("The credential is not valid. Sign in again, or use a key.") from None

    async def _verified(self, token: str) -> Principal:
        if len(token) > LONGEST:
            raise Refused("too long")
        header, keys = jwt.get_unverified_header(token), self._claimed(token)
        issuer, algorithm = keys.issuer, header.get("alg")
        if algorithm not in issuer.algorithms or "crit" in header:
            raise Refused("an algorithm or extension that is not allowed")
        key = issuer.secret or jwt.PyJWK(await keys.signing(header.get("kid"), algorithm), algorithm)
        claims: Claims = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=issuer.audience,
            issuer=issuer.issuer,
            leeway=LEEWAY_S,
            options={"require": list(REQUIRED), "enforce_minimum_key_length": True},
        )
        return _bearer(issuer, claims)

    def _claimed(self, token: str) -> Keys:
        """The keys of whoever a token says it is from, which is not proven yet."""
        claims: Claims = jwt.decode(token, options={"verify_signature": False})
        keys = self._keys.get(claims["iss"]) if isinstance(claims.get("iss"), str) else None
        if keys is None:
            raise Refused("another issuer")
        return keys


def _bearer(issuer: Issuer, claims: Claims) -> Principal:
    """The principal of verified claims; each person of an issuer is counted apart."""
    subject, name = claims["sub"], claims.get(issuer.name)
    for told in (subject, name):
        if not isinstance(told, str) or not 0 < len(told) <= LONGEST_NAME or not told.isprintable():
            raise Refused("a name that is none")
    return Principal(
        org=LOCAL_ORG,
        name=f"{issuer.label}:{name}",
        scopes=issuer.scopes,
        banks=issuer.banks,
        key=_counted_as(issuer, subject),
    )


def _counted_as(issuer: Issuer, subject: str) -> int:
    """A number below zero, where no stored key and no tenant is."""
    digest = hashlib.sha256(f"{issuer.issuer}\0{subject}".encode()).digest()
    return -1 - (int.from_bytes(digest[:8]) >> 2)
