"""Readings: what came from outside and was handed to someone lately, with the counters."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.core.clock import HOUR
from keepsake.store.engine import Tx

#: How long it counts as lately.
KEPT_FOR = HOUR


@dataclass(frozen=True, slots=True)
class Reading:
    """Something from outside: a memory by its id, or a page by its address."""

    kind: str
    what: str
    at: int


async def put(tx: Tx, found: Sequence[tuple[str, Reading]]) -> None:
    """Note what readers were handed."""
    rows = {(reader, one.kind, one.what): one.at for reader, one in found}
    await tx.many(
        "INSERT INTO readings (reader, kind, what, at) VALUES (:reader, :kind, :what, :at)"
        " ON CONFLICT (reader, kind, what) DO UPDATE SET at = excluded.at",
        # In one order, so that two who note the same do not wait for each other.
        [{"reader": key[0], "kind": key[1], "what": key[2], "at": rows[key]} for key in sorted(rows)],
    )


async def lately(tx: Tx, reader: str, now: int, limit: int) -> list[Reading]:
    """What a reader was handed lately, newest first; what is older goes."""
    await tx.run("DELETE FROM readings WHERE at < :before", before=now - KEPT_FOR)
    rows = await tx.all(
        "SELECT kind, what, at FROM readings WHERE reader = :reader ORDER BY at DESC, what LIMIT :limit",
        reader=reader,
        limit=limit,
    )
    return [Reading(row["kind"], row["what"], row["at"]) for row in rows]
