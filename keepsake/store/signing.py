"""The key that signs what leaves the server: made once, kept with its other secrets."""

import secrets

from keepsake.store.engine import Engine, Tx

_KEY = "signing_key"


async def seed(engine: Engine) -> bytes:
    """The 32 bytes that the key is made from, in every process the same."""
    found = await engine.look(_stored)
    return bytes.fromhex(found if found is not None else await engine.claim(_made))


async def _stored(tx: Tx) -> str | None:
    row = await tx.one("SELECT value FROM meta WHERE key = :key", key=_KEY)
    return str(row["value"]) if row else None


async def _made(tx: Tx) -> str:
    await tx.run(
        "INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO NOTHING",
        key=_KEY,
        value=secrets.token_hex(32),
    )
    if (found := await _stored(tx)) is None:
        raise RuntimeError("The server's signing key could not be stored.")
    return found
