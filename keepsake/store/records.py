"""Records: where memories are, what stands beside them in time, and the sessions they came from."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.store.engine import Tx
from keepsake.store.memories import SAID_AT


async def sessions(tx: Tx, org: int, bank: int, sources: Sequence[int]) -> dict[int, str]:
    """The client's own ids of those sources that are sessions."""
    rows = await tx.all(
        "SELECT id, key FROM sessions WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(sources),
    )
    return {row["id"]: row["key"] for row in rows}


async def places(tx: Tx, org: int, ids: Sequence[int]) -> dict[int, int]:
    """The bank of each memory; ids are unique in the org, and unknown ones are left out."""
    rows = await tx.all("SELECT id, bank FROM memories WHERE org = :org AND id = ANY_INT(:ids)", org=org, ids=list(ids))
    return {row["id"]: row["bank"] for row in rows}


async def summed_up(tx: Tx, org: int, banks: Sequence[int]) -> set[int]:
    """The banks that hold summaries."""
    rows = await tx.all(
        "SELECT b.bank AS bank FROM banks b WHERE b.org = :org AND b.bank = ANY_INT(:banks) AND EXISTS"
        " (SELECT 1 FROM memories m WHERE m.org = b.org AND m.bank = b.bank AND m.kind = 'summary')",
        org=org,
        banks=list(banks),
    )
    return {row["bank"] for row in rows}


@dataclass(frozen=True, slots=True)
class Anchor:
    """A memory as a point in its bank's time."""

    org: int
    bank: int
    id: int
    at: int


async def before(tx: Tx, anchor: Anchor, limit: int) -> list[int]:
    """The memories that came last before it, the nearest first."""
    return await _beside(tx, anchor, "<", "DESC", limit)


async def after(tx: Tx, anchor: Anchor, limit: int) -> list[int]:
    """The memories that came first after it, the nearest first."""
    return await _beside(tx, anchor, ">", "ASC", limit)


async def _beside(tx: Tx, anchor: Anchor, side: str, order: str, limit: int) -> list[int]:
    rows = await tx.all(
        f"SELECT m.id AS id FROM memories m WHERE m.org = :org AND m.bank = :bank AND {SAID_AT} {side}= :at"
        f" AND ({SAID_AT} {side} :at OR m.id {side} :id) AND m.kind <> 'summary' AND m.state = 'live'"
        f" AND m.superseded_at IS NULL ORDER BY {SAID_AT} {order}, m.id {order} LIMIT :limit",
        org=anchor.org,
        bank=anchor.bank,
        at=anchor.at,
        id=anchor.id,
        limit=limit,
    )
    return [row["id"] for row in rows]
