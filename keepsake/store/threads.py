"""Threads: which memories stand next to each other, and what each lends its neighbours.

A memory's vector is made from the one before it and itself; a second, lighter search field holds both neighbours.
What is shown and cited is always the memory alone.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.core.clock import HOUR
from keepsake.store.engine import Tx
from keepsake.store.filters import SAID_AT

#: Characters that the models read; a memory's own words come first.
ROOM = 1_600


@dataclass(frozen=True, slots=True)
class Place:
    """Where a new memory stands."""

    thread: str
    before: int | None = None
    #: What the memory before it says.
    lent: str = ""


def stream(category: str, tags: Sequence[str]) -> str:
    """What memories that may follow each other have in common."""
    return hashlib.sha256(json.dumps([category, sorted(tags)]).encode()).hexdigest()[:12]


async def place(tx: Tx, org: int, bank: int, of: str, id: int, at: int) -> Place:
    """After the newest memory of the same stream, unless an hour or more lies between them."""
    row = await tx.one(
        f"SELECT id, thread, text, {SAID_AT} AS at FROM memories"
        " WHERE org = :org AND bank = :bank AND thread > :low AND thread < :high ORDER BY thread DESC, id DESC LIMIT 1",
        org=org,
        bank=bank,
        low=f"{of}:",
        high=f"{of};",
    )
    if row is None or abs(at - row["at"]) >= HOUR:
        return Place(f"{of}:{id:016}")
    return Place(row["thread"], row["id"], row["text"])


def embedded(lent: str, own: str) -> str:
    """The text that a memory's vector is made from."""
    room = ROOM - len(own)
    return f"{lent[-room:]}\n{own}" if lent and room > 0 else own


async def neighbours(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> dict[int, list[str]]:
    """What the memories before and after each of these say."""
    rows = await tx.all(
        "SELECT m.id AS id, n.text AS text FROM memories m JOIN memories n ON n.org = m.org AND n.bank = m.bank"
        " AND n.id = m.before WHERE m.org = :org AND m.bank = :bank AND m.id = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    rows += await tx.all(
        "SELECT before AS id, text FROM memories WHERE org = :org AND bank = :bank AND before = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    lent: dict[int, list[str]] = {}
    for row in rows:
        lent.setdefault(row["id"], []).append(row["text"])
    return lent


async def after(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> list[int]:
    """The memories that follow these."""
    rows = await tx.all(
        "SELECT id FROM memories WHERE org = :org AND bank = :bank AND before = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    return [row["id"] for row in rows]


async def close_gap(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> list[int]:
    """Take memories out of their threads; returns the neighbours that carried something of them."""
    touched: set[int] = set()
    for id in ids:
        row = await tx.one(
            "SELECT before FROM memories WHERE org = :org AND bank = :bank AND id = :id", org=org, bank=bank, id=id
        )
        before = row["before"] if row else None
        touched |= {*await after(tx, org, bank, [id]), *([before] if before else [])}
        await tx.run(
            "UPDATE memories SET before = :before WHERE org = :org AND bank = :bank AND before = :id",
            before=before,
            org=org,
            bank=bank,
            id=id,
        )
    return sorted(touched.difference(ids))
