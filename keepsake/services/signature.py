"""Ed25519: sign a text, and tell whether a signature fits."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def public_key(seed: bytes) -> str:
    """What others check a signature with, in hex."""
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw().hex()


def signed(seed: bytes, text: str) -> str:
    """The signature of a text, in hex."""
    return Ed25519PrivateKey.from_private_bytes(seed).sign(text.encode()).hex()


def fits(public_key: str, text: str, signature: str) -> bool:
    """Whether a text was signed by the key that belongs to this one."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(signature), text.encode())
    except (InvalidSignature, ValueError):
        return False
    return True
