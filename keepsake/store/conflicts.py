"""Conflicts: two memories that cannot both hold, waiting for someone to say which does."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.store.engine import Tx


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two memories at odds."""

    id: int
    older: int
    newer: int
    why: str
    created_at: int
    is_open: bool = True


async def insert(tx: Tx, org: int, bank: int, conflict: Conflict) -> None:
    """Put a conflict into the inbox, once."""
    await tx.run(
        "INSERT INTO conflicts (org, bank, id, older, newer, why, state, settled_by, created_at)"
        " VALUES (:org, :bank, :id, :older, :newer, :why, 'open', '', :created_at)"
        " ON CONFLICT (org, bank, older, newer) DO NOTHING",
        org=org,
        bank=bank,
        id=conflict.id,
        older=conflict.older,
        newer=conflict.newer,
        why=conflict.why,
        created_at=conflict.created_at,
    )


async def listed(tx: Tx, org: int, bank: int, limit: int) -> list[Conflict]:
    """Open conflicts, newest first."""
    rows = await tx.all(
        "SELECT id, older, newer, why, created_at FROM conflicts WHERE org = :org AND bank = :bank AND state = 'open'"
        " ORDER BY id DESC LIMIT :limit",
        org=org,
        bank=bank,
        limit=limit,
    )
    return [Conflict(row["id"], row["older"], row["newer"], row["why"], row["created_at"]) for row in rows]


async def get(tx: Tx, org: int, bank: int, id: int) -> Conflict | None:
    """One conflict, open or not."""
    row = await tx.one(
        "SELECT id, older, newer, why, created_at, state FROM conflicts WHERE org = :org AND bank = :bank AND id = :id",
        org=org,
        bank=bank,
        id=id,
    )
    if row is None:
        return None
    is_open = row["state"] == "open"
    return Conflict(row["id"], row["older"], row["newer"], row["why"], row["created_at"], is_open)


async def close(tx: Tx, org: int, bank: int, id: int, by: str) -> None:
    """Close one conflict; both of its memories hold."""
    await tx.run(
        "UPDATE conflicts SET state = 'settled', settled_by = :by WHERE org = :org AND bank = :bank AND id = :id",
        by=by,
        org=org,
        bank=bank,
        id=id,
    )


async def against(tx: Tx, org: int, bank: int, memory: int) -> list[int]:
    """The other halves of a memory's open conflicts."""
    rows = await tx.all(
        "SELECT CASE WHEN older = :memory THEN newer ELSE older END AS other FROM conflicts"
        " WHERE org = :org AND bank = :bank AND state = 'open' AND (older = :memory OR newer = :memory)",
        org=org,
        bank=bank,
        memory=memory,
    )
    return [row["other"] for row in rows]


async def settle(tx: Tx, org: int, bank: int, memories: Sequence[int], by: str) -> None:
    """Close every conflict that one of these memories is part of."""
    await tx.run(
        "UPDATE conflicts SET state = 'settled', settled_by = :by WHERE org = :org AND bank = :bank"
        " AND state = 'open' AND (older = ANY_INT(:ids) OR newer = ANY_INT(:ids))",
        by=by,
        org=org,
        bank=bank,
        ids=list(memories),
    )


async def forget(tx: Tx, org: int, bank: int, memories: Sequence[int]) -> None:
    """Drop the conflicts of memories that are gone."""
    await tx.run(
        "DELETE FROM conflicts WHERE org = :org AND bank = :bank AND (older = ANY_INT(:ids) OR newer = ANY_INT(:ids))",
        org=org,
        bank=bank,
        ids=list(memories),
    )
