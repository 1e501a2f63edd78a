"""Browsing: a bank's memories page by page, what came before one of them, and how they are marked and tagged."""

import json
from collections.abc import Sequence

from keepsake.store import memories
from keepsake.store.engine import Tx, Value
from keepsake.store.filters import Filter, where
from keepsake.store.memories import Memory

#: Steps back from a memory, and memories in all, that its history shows.
STEPS, MOST = 20, 40


async def page(tx: Tx, given: Filter, before: int, limit: int) -> list[Memory]:
    """Memories, newest first, from below an id on; ids are in the order of time, so nothing is sorted or skipped."""
    clauses, values = where(given)
    rows = await tx.all(
        f"SELECT m.id AS id FROM memories m WHERE {clauses} AND m.id < :before ORDER BY m.id DESC LIMIT :limit",
        before=before,
        limit=limit,
        **values,
    )
    found = await memories.fetched(tx, given.org, given.bank, [row["id"] for row in rows])
    return [found[row["id"]] for row in rows]


async def earlier(tx: Tx, memory: Memory) -> list[Memory]:
    """What a memory took the place of, and what that did, newest first."""
    found: dict[int, Memory] = {}
    now = [memory.id]
    for _ in range(STEPS):
        rows = await tx.all(
            "SELECT id FROM memories WHERE org = :org AND bank = :bank AND superseded_by = ANY_INT(:ids)"
            " ORDER BY id DESC LIMIT :limit",
            org=memory.org,
            bank=memory.bank,
            ids=now,
            limit=MOST,
        )
        now = [row["id"] for row in rows if row["id"] not in found and row["id"] != memory.id]
        if not now or len(found) >= MOST:
            break
        found |= await memories.fetched(tx, memory.org, memory.bank, now)
    return sorted(found.values(), key=lambda one: (-(one.superseded_at or 0), -one.id))[:MOST]


async def later(tx: Tx, memory: Memory) -> list[Memory]:
    """What took the place of a memory, and what took the place of that, newest first."""
    found: list[Memory] = []
    now = memory
    while now.superseded_by is not None and len(found) < STEPS:
        rows = await memories.fetched(tx, memory.org, memory.bank, [now.superseded_by])
        if now.superseded_by not in rows:
            break
        now = rows[now.superseded_by]
        found.append(now)
    return found[::-1]


async def pin(tx: Tx, org: int, bank: int, ids: Sequence[int], is_pinned: bool) -> None:
    """Mark memories as ones that must not be missed, or no longer."""
    await tx.run(
        "UPDATE memories SET pinned = :pinned WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        pinned=int(is_pinned),
        org=org,
        bank=bank,
        ids=list(ids),
    )


async def tag(tx: Tx, memory: Memory, tags: Sequence[str]) -> None:
    """Give a memory these tags, and no others."""
    values: dict[str, Value] = {"org": memory.org, "bank": memory.bank, "id": memory.id}
    await tx.run(
        "UPDATE memories SET tags = :tags WHERE org = :org AND bank = :bank AND id = :id",
        tags=json.dumps(list(tags), ensure_ascii=False),
        **values,
    )
    await tx.run("DELETE FROM memory_tags WHERE org = :org AND bank = :bank AND memory = :id", **values)
    await tx.many(
        "INSERT INTO memory_tags (org, bank, tag, memory) VALUES (:org, :bank, :tag, :memory)",
        [{"org": memory.org, "bank": memory.bank, "tag": one, "memory": memory.id} for one in dict.fromkeys(tags)],
    )
