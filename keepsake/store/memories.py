"""Memories: the rows themselves, their tags and links."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from keepsake.store import filters
from keepsake.store.engine import Ask, Row, Tx, Value
from keepsake.store.filters import HELD, SAID_AT, Filter


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory as stored."""

    org: int
    bank: int
    id: int
    kind: str
    fact_type: str
    text: str
    learned_at: int
    author: str
    text_hash: str
    tokens: int
    seq: int
    subtype: str = ""
    title: str = ""
    slug: str = ""
    category: str = "general"
    parts: dict[str, object] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    happened_from: int | None = None
    happened_to: int | None = None
    superseded_at: int | None = None
    superseded_by: int | None = None
    parent: int | None = None
    source: int | None = None
    span: str = ""
    trust: str = "agent"
    state: str = "live"
    pinned: int = 0
    proof: int = 1
    #: Which memories it stands among, and the one it follows.
    thread: str = ""
    before: int | None = None
    #: The moment that came with it; what it speaks of may lie elsewhere.
    event_at: int | None = None

    @property
    def said_at(self) -> int:
        """The moment that its relative words count from: the event's, else when it was learned."""
        if self.event_at is not None:
            return self.event_at
        # Before `event_at` there was only this; a time that the text speaks of has an end as well.
        return self.happened_from if self.happened_from is not None and self.happened_to is None else self.learned_at


@dataclass(frozen=True, slots=True)
class Outline:
    """A memory's place in its thread and in time."""

    before: int | None
    at: int
    #: The time that it speaks of.
    start: int | None = None
    end: int | None = None

    def is_within(self, start: int, end: int) -> bool:
        """Whether it was said in a stretch of time, or speaks of one that lies in it."""
        if start <= self.at < end:
            return True
        return self.start is not None and self.end is not None and start <= self.start and self.end <= end


_NAMES = tuple(Memory.__dataclass_fields__)
_COLUMNS = ", ".join(f"m.{name}" for name in _NAMES)
_JSON = ("parts", "tags", "metadata")


def _memory(row: Row) -> Memory:
    values = {name: row[name] for name in _NAMES}
    # Most memories have none of these, and parsing is half the cost of reading one.
    values["parts"] = {} if row["parts"] == "{}" else json.loads(row["parts"])
    values["metadata"] = {} if row["metadata"] == "{}" else json.loads(row["metadata"])
    values["tags"] = () if row["tags"] == "[]" else tuple(json.loads(row["tags"]))
    return Memory(**values)


def lines(parts: Mapping[str, object], name: str) -> list[str]:
    """A part that lists things; whoever wrote it may have joined them already."""
    told = parts.get(name)
    if isinstance(told, str):
        return told.splitlines()
    return [str(one) for one in told] if isinstance(told, list | tuple) else []


async def insert(tx: Tx, memory: Memory) -> None:
    """Write a new memory and its tags."""
    values: dict[str, Value] = {name: getattr(memory, name) for name in _NAMES}
    values |= {name: json.dumps(getattr(memory, name), ensure_ascii=False) for name in _JSON}
    await tx.run(
        f"INSERT INTO memories ({', '.join(_NAMES)}) VALUES ({', '.join(':' + name for name in _NAMES)})", **values
    )
    if memory.tags:
        await tx.many(
            "INSERT INTO memory_tags (org, bank, tag, memory) VALUES (:org, :bank, :tag, :memory)"
            " ON CONFLICT (org, bank, tag, memory) DO NOTHING",
            [{"org": memory.org, "bank": memory.bank, "tag": tag, "memory": memory.id} for tag in memory.tags],
        )


async def fetched(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> dict[int, Memory]:
    """Memories of a bank by id; unknown ids are left out."""
    if not ids:
        return {}
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM memories m WHERE m.org = :org AND m.bank = :bank AND m.id = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    return {row["id"]: _memory(row) for row in rows}


async def page(tx: Tx, given: Filter, limit: int, offset: int) -> tuple[list[Memory], int]:
    """A page of memories, newest first, and how many there are in all."""
    where, values = filters.where(given)
    total = await tx.one(f"SELECT count(*) AS total FROM memories m WHERE {where}", **values)
    return await newest(tx, given, limit, offset), int(total["total"]) if total else 0


async def newest(tx: Tx, given: Filter, limit: int, offset: int = 0) -> list[Memory]:
    """The memories that were learned last, without those that are skipped."""
    where, values = filters.where(given)
    order = "ORDER BY m.learned_at DESC, m.id DESC LIMIT :limit OFFSET :offset"
    values |= {"limit": limit, "offset": offset}
    return [_memory(row) for row in await tx.all(f"SELECT {_COLUMNS} FROM memories m WHERE {where} {order}", **values)]


async def ids(tx: Tx, given: Filter) -> list[int]:
    """The ids that pass a filter."""
    where, values = filters.where(given)
    return [row["id"] for row in await tx.planned(f"SELECT m.id AS id FROM memories m WHERE {where}", **values)]


async def of_source(tx: Tx, org: int, bank: int, source: int) -> list[int]:
    """Every memory that came from a source, whatever its state."""
    rows = await tx.all(
        "SELECT id FROM memories WHERE org = :org AND bank = :bank AND source = :source",
        org=org,
        bank=bank,
        source=source,
    )
    return [row["id"] for row in rows]


async def of_types(tx: Tx, org: int, bank: int, types: Sequence[str]) -> list[int]:
    """Every memory of the given fact types, whatever its state; no types means all."""
    narrowed = "AND fact_type = ANY_TEXT(:types)" if types else ""
    values: dict[str, Value] = {"types": list(types)} if types else {}
    rows = await tx.all(
        f"SELECT id FROM memories WHERE org = :org AND bank = :bank {narrowed}", org=org, bank=bank, **values
    )
    return [row["id"] for row in rows]


async def new(tx: Tx, org: int, bank: int, limit: int) -> list[Memory]:
    """Notes that the background has not looked at yet, oldest first."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM memories m WHERE m.org = :org AND m.bank = :bank AND m.kind = 'note'"
        " AND m.state = 'live' ORDER BY m.id LIMIT :limit",
        org=org,
        bank=bank,
        limit=limit,
    )
    return [_memory(row) for row in rows]


async def settle(tx: Tx, memory: Memory) -> None:
    """A note that says one thing becomes that fact."""
    await tx.run(
        "UPDATE memories SET kind = 'fact', fact_type = :fact_type, happened_from = :happened_from,"
        " happened_to = :happened_to, event_at = :event_at WHERE org = :org AND bank = :bank AND id = :id",
        fact_type=memory.fact_type,
        event_at=memory.event_at,
        happened_from=memory.happened_from,
        happened_to=memory.happened_to,
        org=memory.org,
        bank=memory.bank,
        id=memory.id,
    )


async def hide(tx: Tx, org: int, bank: int, id: int, state: str) -> None:
    """Put a memory out of sight, and its vector away."""
    values: dict[str, Value] = {"org": org, "bank": bank, "id": id}
    await tx.run("DELETE FROM vectors WHERE org = :org AND bank = :bank AND memory = :id", **values)
    await tx.run(
        "UPDATE memories SET state = :state WHERE org = :org AND bank = :bank AND id = :id", state=state, **values
    )


async def follow(tx: Tx, org: int, bank: int, old: int, new: int) -> None:
    """Let what followed one memory follow another."""
    await tx.run(
        "UPDATE memories SET before = :new WHERE org = :org AND bank = :bank AND before = :old AND id <> :new",
        new=new,
        org=org,
        bank=bank,
        old=old,
    )


async def confirm(tx: Tx, org: int, bank: int, id: int) -> None:
    """Count one more time that a memory was told."""
    await tx.run(
        "UPDATE memories SET proof = proof + 1 WHERE org = :org AND bank = :bank AND id = :id",
        org=org,
        bank=bank,
        id=id,
    )


async def relate(tx: Tx, org: int, bank: int, origin: int, target: int, why: str) -> None:
    """Link two memories."""
    await tx.run(
        "INSERT INTO memory_links (org, bank, origin, target, why) VALUES (:org, :bank, :origin, :target, :why)"
        " ON CONFLICT (org, bank, origin, target, why) DO NOTHING",
        org=org,
        bank=bank,
        origin=origin,
        target=target,
        why=why,
    )


async def blank(tx: Tx, org: int, bank: int, id: int, span: str) -> None:
    """Put blanks where a fact stood in the note it was made from."""
    values: dict[str, Value] = {"org": org, "bank": bank, "id": id}
    row = await tx.one("SELECT text FROM memories WHERE org = :org AND bank = :bank AND id = :id", **values)
    if row is not None and span:
        await tx.run(
            "UPDATE memories SET text = :text WHERE org = :org AND bank = :bank AND id = :id",
            text=blanked(row["text"], span),
            **values,
        )


def blanked(text: str, span: str) -> str:
    """A text with blanks in place of a span, so that every other span still fits."""
    start, end = (int(part) for part in span.split(":"))
    return text[:start] + " " * (min(end, len(text)) - start) + text[end:]


async def children(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> list[int]:
    """The facts that were made from these memories."""
    rows = await tx.all(
        "SELECT id FROM memories WHERE org = :org AND bank = :bank AND parent = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    return [row["id"] for row in rows]


async def wordings(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> list[int]:
    """These memories, and those that merging found to say the same."""
    rows = await tx.all(
        "SELECT origin, target FROM memory_links WHERE org = :org AND bank = :bank AND why = 'near_duplicate'"
        " AND (target = ANY_INT(:ids) OR target IN (SELECT target FROM memory_links WHERE org = :org AND bank = :bank"
        " AND why = 'near_duplicate' AND origin = ANY_INT(:ids)))",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    return sorted({*ids, *(id for row in rows for id in (row["origin"], row["target"]))})


def outlines(org: int, bank: int, ids: Sequence[int]) -> Ask[dict[int, Outline]]:
    """What ranking must know of candidates."""
    return Ask(
        f"SELECT id, before, {SAID_AT} AS at, happened_from, happened_to FROM memories"
        " WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        {"org": org, "bank": bank, "ids": list(ids)},
        lambda rows: {
            row["id"]: Outline(row["before"], row["at"], row["happened_from"], row["happened_to"]) for row in rows
        },
    )


async def supersede(tx: Tx, org: int, bank: int, ids: Sequence[int], by: int, at: int) -> None:
    """Put memories out of the way; they stay findable as of their time."""
    await tx.run(
        "UPDATE memories SET superseded_at = :at, superseded_by = :by"
        " WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids) AND superseded_at IS NULL",
        org=org,
        bank=bank,
        ids=list(ids),
        by=by,
        at=at,
    )


async def delete(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> None:
    """Remove memories with their tags, links and vectors; the text index is told apart."""
    values: dict[str, Value] = {"org": org, "bank": bank, "ids": list(ids)}
    where = "org = :org AND bank = :bank AND"
    await tx.run(f"DELETE FROM memory_tags WHERE {where} memory = ANY_INT(:ids)", **values)
    await tx.run(f"DELETE FROM memory_links WHERE {where} origin = ANY_INT(:ids)", **values)
    await tx.run(f"DELETE FROM memory_links WHERE {where} target = ANY_INT(:ids)", **values)
    await tx.run(f"DELETE FROM vectors WHERE {where} memory = ANY_INT(:ids)", **values)
    await tx.run(f"DELETE FROM memory_files WHERE {where} memory = ANY_INT(:ids)", **values)
    # What they took the place of stays out of the way: it was outdated before they went.
    await tx.run(f"UPDATE memories SET superseded_by = NULL WHERE {where} superseded_by = ANY_INT(:ids)", **values)
    await tx.run(f"DELETE FROM memories WHERE {where} id = ANY_INT(:ids)", **values)


async def counts(tx: Tx, org: int, bank: int, at: int) -> dict[str, int]:
    """How many memories hold, by fact type."""
    rows = await tx.all(
        f"SELECT m.fact_type AS fact_type, count(*) AS held FROM memories m"
        f" WHERE m.org = :org AND m.bank = :bank AND {HELD} GROUP BY m.fact_type",
        org=org,
        bank=bank,
        at=at,
    )
    return {row["fact_type"]: int(row["held"]) for row in rows}


async def links(tx: Tx, org: int, bank: int) -> dict[str, int]:
    """How many links there are, by reason."""
    rows = await tx.all(
        "SELECT why, count(*) AS held FROM memory_links WHERE org = :org AND bank = :bank GROUP BY why",
        org=org,
        bank=bank,
    )
    return {row["why"]: int(row["held"]) for row in rows}


async def tags(tx: Tx, org: int, bank: int, at: int) -> list[tuple[str, int]]:
    """Every tag in use with how many memories carry it, most used first."""
    rows = await tx.all(
        "SELECT t.tag AS tag, count(*) AS used FROM memory_tags t"
        " JOIN memories m ON m.org = t.org AND m.bank = t.bank AND m.id = t.memory"
        f" WHERE t.org = :org AND t.bank = :bank AND {HELD} GROUP BY t.tag ORDER BY used DESC, t.tag",
        org=org,
        bank=bank,
        at=at,
    )
    return [(row["tag"], int(row["used"])) for row in rows]
