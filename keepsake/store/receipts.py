"""Receipts: proof that something was forgotten, without what it said."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from keepsake.store.engine import Tx


@dataclass(frozen=True, slots=True)
class Receipt:
    """One deletion."""

    org: int
    bank: int
    id: int
    at: int
    principal: str
    operation: str
    memories: tuple[int, ...]
    counts: Mapping[str, int]
    digest: str


async def insert(tx: Tx, receipt: Receipt) -> None:
    """Write a receipt."""
    await tx.run(
        "INSERT INTO receipts (org, bank, id, at, principal, operation, memories, counts, digest)"
        " VALUES (:org, :bank, :id, :at, :principal, :operation, :memories, :counts, :digest)",
        org=receipt.org,
        bank=receipt.bank,
        id=receipt.id,
        at=receipt.at,
        principal=receipt.principal,
        operation=receipt.operation,
        memories=json.dumps(receipt.memories),
        counts=json.dumps(dict(receipt.counts)),
        digest=receipt.digest,
    )


async def get(tx: Tx, org: int, bank: int, id: int) -> Receipt | None:
    """One receipt of a bank."""
    row = await tx.one(
        "SELECT org, bank, id, at, principal, operation, memories, counts, digest FROM receipts"
        " WHERE org = :org AND bank = :bank AND id = :id",
        org=org,
        bank=bank,
        id=id,
    )
    if row is None:
        return None
    told = {**row, "memories": tuple(json.loads(row["memories"])), "counts": json.loads(row["counts"])}
    return Receipt(**told)
