"""Recalls: who was handed which memory, with the counters."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.core.clock import DAY
from keepsake.store.engine import Tx

#: How long it is known that someone recalled a memory.
KEPT_FOR = 90 * DAY


@dataclass(frozen=True, slots=True)
class Recall:
    """Someone who was handed a memory, how often and when last."""

    org: int
    memory: int
    principal: str
    last_at: int
    times: int = 1
    score: float = 0.0


async def put(tx: Tx, found: Sequence[Recall]) -> None:
    """Count memories that were handed out."""
    told: dict[tuple[int, int, str], Recall] = {}
    for one in found:
        key = (one.org, one.memory, one.principal)
        times = told[key].times if key in told else 0
        told[key] = Recall(*key, one.last_at, times + one.times, one.score)
    await tx.many(
        "INSERT INTO recalls (org_id, memory, principal, times, last_at, score)"
        " VALUES (:org, :memory, :principal, :times, :last_at, :score) ON CONFLICT (org_id, memory, principal)"
        " DO UPDATE SET times = recalls.times + excluded.times, last_at = excluded.last_at, score = excluded.score",
        # In one order, so that two who note the same do not wait for each other.
        [{name: getattr(told[key], name) for name in Recall.__dataclass_fields__} for key in sorted(told)],
    )


async def of(tx: Tx, org: int, memory: int, limit: int) -> list[Recall]:
    """Who was handed a memory, the last ones first."""
    rows = await tx.all(
        "SELECT org_id AS org, memory, principal, last_at, times, score FROM recalls"
        " WHERE org_id = :org AND memory = :memory ORDER BY last_at DESC, principal LIMIT :limit",
        org=org,
        memory=memory,
        limit=limit,
    )
    return [Recall(**row) for row in rows]


async def expire(tx: Tx, now: int) -> int:
    """Drop what was recalled too long ago; tells how many."""
    return await tx.run("DELETE FROM recalls WHERE last_at <= :before", before=now - KEPT_FOR)
