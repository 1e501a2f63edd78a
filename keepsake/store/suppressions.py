"""Suppressions: keyed hashes of forgotten content, so that nothing brings it back by itself."""

from keepsake.store.engine import Tx


async def add(tx: Tx, org: int, bank: int, digest: str, at: int) -> None:
    """Remember that a text was forgotten."""
    await tx.run(
        "INSERT INTO suppressions (org, bank, digest, created_at) VALUES (:org, :bank, :digest, :at)"
        " ON CONFLICT (org, bank, digest) DO NOTHING",
        org=org,
        bank=bank,
        digest=digest,
        at=at,
    )


async def has(tx: Tx, org: int, bank: int, digest: str) -> bool:
    """Whether a text was forgotten and must not come back."""
    row = await tx.one(
        "SELECT 1 AS one FROM suppressions WHERE org = :org AND bank = :bank AND digest = :digest",
        org=org,
        bank=bank,
        digest=digest,
    )
    return row is not None
