"""Suppressions: keyed hashes of forgotten content, so that nothing brings it back by itself."""

from collections.abc import Sequence

from keepsake.store.engine import Tx


async def add(tx: Tx, org: int, bank: int, digests: Sequence[str], at: int) -> None:
    """Remember that texts were forgotten."""
    await tx.many(
        "INSERT INTO suppressions (org, bank, digest, created_at) VALUES (:org, :bank, :digest, :at)"
        " ON CONFLICT (org, bank, digest) DO NOTHING",
        [{"org": org, "bank": bank, "digest": digest, "at": at} for digest in digests],
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


async def exist(tx: Tx, org: int, bank: int) -> bool:
    """Whether anything was ever forgotten here."""
    row = await tx.one(
        "SELECT 1 AS one FROM suppressions WHERE org = :org AND bank = :bank LIMIT 1", org=org, bank=bank
    )
    return row is not None


async def among(tx: Tx, org: int, bank: int, digests: Sequence[str]) -> set[str]:
    """Which of these texts were forgotten."""
    rows = await tx.all(
        "SELECT digest FROM suppressions WHERE org = :org AND bank = :bank AND digest = ANY_TEXT(:digests)",
        org=org,
        bank=bank,
        digests=list(digests),
    )
    return {row["digest"] for row in rows}


async def count(tx: Tx, org: int, bank: int) -> int:
    """How many texts were ever forgotten here."""
    row = await tx.one(
        "SELECT count(*) AS held FROM suppressions WHERE org = :org AND bank = :bank", org=org, bank=bank
    )
    return int(row["held"]) if row else 0
