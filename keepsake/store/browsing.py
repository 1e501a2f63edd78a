"""Browsing: a bank's memories page by page, what came before one of them, and how they are marked and tagged."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from keepsake.core import ids
from keepsake.core.clock import DAY, SECOND
from keepsake.core.models import FactType
from keepsake.store import memories
from keepsake.store.engine import Tx, Value
from keepsake.store.filters import SAID_AT, STANDS, Filter, where
from keepsake.store.memories import Memory

#: Steps back from a memory, and memories in all, that its history shows.
STEPS, MOST = 20, 40
#: Memories that are looked at one by one, and those among which most pages are found.
FEW, NEAR = 1_000, 2_000
_OWN = "m.org = :org AND m.bank = :bank"
_TAGGED = (
    "EXISTS (SELECT 1 FROM memory_tags t WHERE t.org = m.org AND t.bank = m.bank AND t.tag = ANY_TEXT(:tags)"
    " AND t.memory = m.id)"
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Where a page begins, how long it is, and how much is looked at for it."""

    before: int
    limit: int
    #: So many that are like what is asked for are looked at each; else so many memories are walked over.
    few: int = FEW
    walked: int = 30_000


@dataclass(frozen=True, slots=True)
class Page:
    """Memories, newest first."""

    memories: list[Memory]
    #: Where the walk ended; None where it came to its end, or the page is full.
    reached: int | None = None


async def page(tx: Tx, given: Filter, stretch: Stretch) -> Page:
    """Memories from below an id on; ids are in the order of time, so nothing is sorted or skipped."""
    if not given.is_now:
        # Nothing is learned long before its id is made.
        stretch = replace(stretch, before=min(stretch.before, ids.first((given.at + DAY) // SECOND)))
    few = None if given.is_open else await _few(tx, given, stretch.few)
    if few is not None:
        found = await _tried(tx, given, [id for id in few if id < stretch.before])
        return Page(await _read(tx, given, found[: stretch.limit]))
    if given.is_open or _is_dense(given):
        return Page(await _read(tx, given, await _walked(tx, given, stretch, 0)))
    return await _walk(tx, given, stretch)


async def _walk(tx: Tx, given: Filter, stretch: Stretch) -> Page:
    """A short walk, and a long one where that finds too few."""
    for steps in (min(NEAR, stretch.walked), stretch.walked):
        floor = await _floor(tx, given, replace(stretch, walked=steps))
        found = await _walked(tx, given, stretch, floor)
        if len(found) == stretch.limit or not floor:
            return Page(await _read(tx, given, found))
    return Page(await _read(tx, given, found), floor)


async def are_few(tx: Tx, given: Filter) -> bool:
    """Whether one of the conditions alone leaves few."""
    return await _few(tx, given, FEW) is not None


async def _read(tx: Tx, given: Filter, found: Sequence[int]) -> list[Memory]:
    rows = await memories.fetched(tx, given.org, given.bank, found)
    return [rows[id] for id in found]


def _where(given: Filter) -> tuple[str, dict[str, Value]]:
    """The conditions, each asked of one memory."""
    clauses, values = where(replace(given, tags=()))
    return (f"{clauses} AND {_TAGGED}", values | {"tags": list(given.tags)}) if given.tags else (clauses, values)


def _is_dense(given: Filter) -> bool:
    """Whether an index has what is asked for in order, and nothing else."""
    is_one = len(given.kinds) == 1 and replace(given, kinds=()).is_open
    return is_one and given.is_now and not given.with_past


async def _few(tx: Tx, given: Filter, most: int) -> set[int] | None:
    """Every memory that one of the conditions alone leaves, by its index; None where each leaves more than so many."""
    own: dict[str, Value] = {"org": given.org, "bank": given.bank, "most": most + 1}
    for sql, values in _ways(given):
        rows = await tx.planned(f"{sql} LIMIT :most", **own, **values)
        if len(rows) <= most:
            return {row["id"] for row in rows}
    return await _said(tx, given, own) if given.said else None


async def _said(tx: Tx, given: Filter, own: Mapping[str, Value]) -> set[int] | None:
    """What was said in a stretch of time, where that is among the last so many."""
    # Not by a condition: row-level security lets PostgreSQL use this index for an order alone.
    rows = await tx.planned(
        f"SELECT m.id AS id, {SAID_AT} AS at FROM memories m WHERE {_OWN} ORDER BY {SAID_AT} DESC LIMIT :most", **own
    )
    since, until = given.said or (0, 0)
    if len(rows) == own["most"] and rows[-1]["at"] >= since:
        return None
    return {row["id"] for row in rows if since <= row["at"] < until}


def _ways(given: Filter) -> Iterator[tuple[str, dict[str, Value]]]:
    held = f"SELECT m.id AS id FROM memories m WHERE {_OWN}"
    if given.tags:
        yield (
            (
                "SELECT t.memory AS id FROM memory_tags t WHERE t.org = :org AND t.bank = :bank"
                " AND t.tag = ANY_TEXT(:tags)"
            ),
            {"tags": list(given.tags)},
        )
    if given.kinds:
        stands = f" AND {STANDS}" if given.is_now and not given.with_past else ""
        yield f"{held} AND m.kind = ANY_TEXT(:kinds){stands}", {"kinds": list(given.kinds)}
    if given.types or given.trust:
        types: list[str] = list(given.types or get_args(FactType))
        trusted = " AND m.trust = ANY_TEXT(:trust)" if given.trust else ""
        trust: dict[str, Value] = {"trust": list(given.trust)} if given.trust else {}
        yield f"{held} AND m.fact_type = ANY_TEXT(:types){trusted}", {"types": types, **trust}
    if given.sources:
        yield _from(held, given.sources), {"kinds_of": list(given.sources)}


def _from(held: str, sources: Sequence[str]) -> str:
    """What came from kinds of sources, each by its own way."""
    ways = [
        f"{held} AND m.source IN (SELECT s.id FROM sources s WHERE s.org = :org AND s.bank = :bank"
        " AND s.kind = ANY_TEXT(:kinds_of))"
    ]
    if "session" in sources:
        ways.append(f"{held} AND m.source IN (SELECT e.id FROM sessions e WHERE e.org = :org AND e.bank = :bank)")
    if "told" in sources:
        ways.append(f"{held} AND m.source IS NULL")
    return " UNION ALL ".join(ways)


async def _tried(tx: Tx, given: Filter, found: Sequence[int]) -> list[int]:
    """Those of a few memories that are like what is asked for, newest first."""
    if not found:
        return []
    clauses, values = _where(given)
    rows = await tx.planned(
        f"SELECT m.id AS id FROM memories m WHERE m.id = ANY_INT(:found) AND {clauses}", found=list(found), **values
    )
    return sorted((row["id"] for row in rows), reverse=True)


async def _floor(tx: Tx, given: Filter, stretch: Stretch) -> int:
    """The id at which a walk over so many memories ends; 0 where there are fewer."""
    rows = await tx.planned(
        f"SELECT m.id AS id FROM memories m WHERE {_OWN} AND m.id < :before ORDER BY m.id DESC LIMIT 1 OFFSET :walked",
        org=given.org,
        bank=given.bank,
        before=stretch.before,
        walked=stretch.walked,
    )
    return int(rows[0]["id"]) if rows else 0


async def _walked(tx: Tx, given: Filter, stretch: Stretch, floor: int) -> list[int]:
    dense = given.kinds[0] if _is_dense(given) else None
    clauses, values = _where(replace(given, kinds=()) if dense else given)
    if dense:
        clauses, values = f"{clauses} AND m.kind = :kind", {**values, "kind": dense}
    rows = await tx.planned(
        f"SELECT m.id AS id FROM memories m WHERE {clauses} AND m.id < :before AND m.id >= :floor"
        " ORDER BY m.id DESC LIMIT :limit",
        before=stretch.before,
        floor=floor,
        limit=stretch.limit,
        **values,
    )
    return [row["id"] for row in rows]


async def earlier(tx: Tx, memory: Memory) -> list[Memory]:
    """What a memory took the place of, and what that did, newest first."""
    found: dict[int, Memory] = {}
    now = [memory.id]
    for _ in range(STEPS):
        rows = await tx.all(
            # Not by `id` itself: SQLite would read the whole bank in that order.
            "SELECT id FROM memories WHERE org = :org AND bank = :bank AND superseded_by = ANY_INT(:ids)"
            " ORDER BY id + 0 DESC LIMIT :limit",
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
