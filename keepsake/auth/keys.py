"""Making API keys; the secret is shown once and only its hash is kept."""

import hashlib
import secrets
from dataclasses import dataclass

PREFIX = "ks_live_"
#: How much of a key is kept to recognise it by.
SHOWN = len(PREFIX) + 4
TIERS = ("core", "exec", "intel", "all")


@dataclass(frozen=True, slots=True)
class Secret:
    """A new key, the only time its text exists here."""

    text: str
    sha256: str
    prefix: str


def made() -> Secret:
    """Make a key of 256 random bits."""
    text = PREFIX + secrets.token_hex(32)
    return Secret(text, hashlib.sha256(text.encode()).hexdigest(), text[:SHOWN])
