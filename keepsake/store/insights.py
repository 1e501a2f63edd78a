"""Insights: what several memories show together, and the evidence that each rests on."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.store import memories
from keepsake.store.engine import Tx
from keepsake.store.filters import HELD
from keepsake.store.memories import Memory

KIND = "insight"
#: The kind of the job that makes them; there is one for a bank.
JOB = "consolidate"


@dataclass(frozen=True, slots=True)
class Place:
    """How far a bank has been consolidated."""

    seq: int = 0
    id: int = 0


async def reached(tx: Tx, org: int, bank: int) -> Place:
    """How far the last run came."""
    row = await tx.one("SELECT seen_seq, seen_id FROM bank_seq WHERE org = :org AND bank = :bank", org=org, bank=bank)
    return Place(row["seen_seq"], row["seen_id"]) if row else Place()


async def mark(tx: Tx, org: int, bank: int, place: Place) -> None:
    """Note how far this run has come; jobs are cleared away, so it stands with the bank."""
    await tx.run(
        "UPDATE bank_seq SET seen_seq = :seq, seen_id = :id WHERE org = :org AND bank = :bank",
        seq=place.seq,
        id=place.id,
        org=org,
        bank=bank,
    )


async def fresh(tx: Tx, org: int, bank: int, after: Place, now: int, limit: int) -> list[Memory]:
    """Memories that no run has looked at yet, oldest first; insights are never among them."""
    rows = await tx.all(
        "SELECT m.id AS id FROM memories m WHERE m.org = :org AND m.bank = :bank"
        " AND m.kind NOT IN ('insight', 'chunk', 'artifact')"
        f" AND (m.seq > :seq OR (m.seq = :seq AND m.id > :id)) AND {HELD} ORDER BY m.seq, m.id LIMIT :limit",
        org=org,
        bank=bank,
        seq=after.seq,
        id=after.id,
        at=now,
        limit=limit,
    )
    found = await memories.fetched(tx, org, bank, [row["id"] for row in rows])
    return [found[row["id"]] for row in rows]


async def link(tx: Tx, org: int, bank: int, insight: int, evidence: Sequence[int]) -> None:
    """Say what an insight rests on."""
    await tx.many(
        "INSERT INTO memory_links (org, bank, origin, target, why) VALUES (:org, :bank, :origin, :target, :why)"
        " ON CONFLICT (org, bank, origin, target, why) DO NOTHING",
        [
            {"org": org, "bank": bank, "origin": insight, "target": target, "why": why}
            for target in evidence
            for why in ("evidence", "derived_from")
        ],
    )


async def resting_on(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> dict[int, set[int]]:
    """The insights that rest on any of these memories, with all that each rests on; forgetting takes them along."""
    rows = await tx.all(
        "SELECT l.origin AS origin, l.target AS target FROM memory_links l WHERE l.org = :org AND l.bank = :bank"
        " AND l.why = 'evidence' AND l.origin IN (SELECT origin FROM memory_links WHERE org = :org AND bank = :bank"
        " AND why = 'evidence' AND target = ANY_INT(:ids))",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    found: dict[int, set[int]] = {}
    for row in rows:
        found.setdefault(row["origin"], set()).add(row["target"])
    return found
