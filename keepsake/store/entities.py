"""Entities: who and what memories speak of."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.store import relations
from keepsake.store.engine import Ask, Row, Tx
from keepsake.store.store import Store

#: What more memories name than these tells nothing about two of them.
RARE = 10


@dataclass(frozen=True, slots=True)
class Named:
    """An entity that a memory names."""

    name: str
    folded: str
    kind: str
    #: `speaker` or `named`.
    role: str


async def link(tx: Tx, store: Store, org: int, bank: int, memory: int, named: Sequence[Named]) -> None:
    """Remember which entities a memory names, making those that are new."""
    if not named:
        return
    await tx.many(
        "INSERT INTO entities (org, bank, id, name, folded, kind) VALUES (:org, :bank, :id, :name, :folded, :kind)"
        " ON CONFLICT (org, bank, folded) DO NOTHING",
        [
            {"org": org, "bank": bank, "id": store.new_id(), "name": one.name, "folded": one.folded, "kind": one.kind}
            for one in named
        ],
    )
    known = {one.folded: one.id for one in await meant(org, bank, [one.folded for one in named]).of(tx)}
    await tx.many(
        "INSERT INTO memory_entities (org, bank, entity, memory, role) VALUES (:org, :bank, :entity, :memory, :role)"
        " ON CONFLICT (org, bank, entity, memory) DO NOTHING",
        [
            {"org": org, "bank": bank, "entity": known[one.folded], "memory": memory, "role": one.role}
            for one in named
            if one.folded in known
        ],
    )


@dataclass(frozen=True, slots=True)
class Entity:
    """Someone or something that memories speak of."""

    id: int
    folded: str
    kind: str


def meant(org: int, bank: int, folded: Sequence[str]) -> Ask[list[Entity]]:
    """The entities that these names mean here."""
    return Ask(
        "SELECT id, folded, kind FROM entities WHERE org = :org AND bank = :bank AND folded = ANY_TEXT(:folded)",
        {"org": org, "bank": bank, "folded": list(folded)},
        lambda rows: [Entity(row["id"], row["folded"], row["kind"]) for row in rows],
    )


def naming(org: int, bank: int, entities: Sequence[int], among: Sequence[int]) -> Ask[dict[int, set[str]]]:
    """Which of these memories name one of the entities, and how."""
    return Ask(
        "SELECT memory, role FROM memory_entities WHERE org = :org AND bank = :bank AND entity = ANY_INT(:entities)"
        " AND memory = ANY_INT(:among)",
        {"org": org, "bank": bank, "entities": list(entities), "among": list(among)},
        _named,
    )


def _named(rows: Sequence[Row]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for row in rows:
        found.setdefault(row["memory"], set()).add(row["role"])
    return found


@dataclass(frozen=True, slots=True)
class Start:
    """Where a walk through the graph of a bank begins."""

    org: int
    bank: int
    entities: Sequence[int]
    memories: Sequence[int]


async def around(tx: Tx, start: Start, limit: int) -> list[int]:
    """Memories one step away: they name one of the entities, or a rare one that the memories name; rarest first.

    What an insight rests on is one step away from it, too.
    """
    # CROSS JOIN keeps the order for SQLite, which would otherwise walk the bank; PostgreSQL takes it as any join.
    rows = await tx.all(
        "WITH seeds AS (SELECT id FROM memories"
        " WHERE org = :org AND bank = :bank AND id = ANY_INT(:found)),"
        " near AS (SELECT e.entity AS entity FROM seeds s CROSS JOIN memory_entities e"
        " WHERE e.org = :org AND e.bank = :bank AND e.memory = s.id"
        " UNION SELECT id FROM entities WHERE org = :org AND bank = :bank AND id = ANY_INT(:named)),"
        " rare AS (SELECT n.entity AS entity, (SELECT count(*) FROM (SELECT 1 FROM memory_entities x"
        " WHERE x.org = :org AND x.bank = :bank AND x.entity = n.entity LIMIT :most) AS few) AS shared FROM near n)"
        " SELECT m.memory AS memory, r.shared AS shared FROM rare r CROSS JOIN memory_entities m"
        " WHERE m.org = :org AND m.bank = :bank AND m.entity = r.entity AND r.shared < :most"
        " UNION ALL SELECT l.target, 0 FROM seeds s CROSS JOIN memory_links l"
        " WHERE l.org = :org AND l.bank = :bank AND l.origin = s.id AND l.why = 'evidence'"
        " UNION ALL SELECT l.origin, 0 FROM seeds s CROSS JOIN memory_links l"
        " WHERE l.org = :org AND l.bank = :bank AND l.target = s.id AND l.why = 'evidence'"
        " ORDER BY shared, memory DESC LIMIT :limit",
        org=start.org,
        bank=start.bank,
        found=list(start.memories),
        named=list(start.entities),
        most=RARE + 1,
        limit=limit,
    )
    return [id for id in dict.fromkeys(row["memory"] for row in rows) if id not in start.memories]


@dataclass(frozen=True, slots=True)
class Titled:
    """An entity as it is shown."""

    name: str
    kind: str


def titled(org: int, bank: int, ids: Sequence[int]) -> Ask[dict[int, Titled]]:
    """What entities are called, by id; unknown ids are left out."""
    return Ask(
        "SELECT id, name, kind FROM entities WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        {"org": org, "bank": bank, "ids": list(ids)},
        lambda rows: {row["id"]: Titled(row["name"], row["kind"]) for row in rows},
    )


def of_memories(org: int, bank: int, memories: Sequence[int], limit: int) -> Ask[list[tuple[int, int]]]:
    """Which entities memories name: pairs of memory and entity."""
    return Ask(
        "SELECT memory, entity FROM memory_entities WHERE org = :org AND bank = :bank AND memory = ANY_INT(:ids)"
        " ORDER BY memory DESC, entity LIMIT :limit",
        {"org": org, "bank": bank, "ids": list(memories), "limit": limit},
        _pairs,
    )


def with_entities(org: int, bank: int, entities: Sequence[int], limit: int) -> Ask[list[tuple[int, int]]]:
    """Which memories that still hold name entities: pairs of memory and entity, the newest memories first."""
    return Ask(
        "SELECT e.memory AS memory, e.entity AS entity FROM memory_entities e"
        " JOIN memories m ON m.org = e.org AND m.bank = e.bank AND m.id = e.memory"
        " WHERE e.org = :org AND e.bank = :bank AND e.entity = ANY_INT(:ids) AND m.state = 'live'"
        " AND m.superseded_at IS NULL ORDER BY e.memory DESC LIMIT :limit",
        {"org": org, "bank": bank, "ids": list(entities), "limit": limit},
        _pairs,
    )


def _pairs(rows: Sequence[Row]) -> list[tuple[int, int]]:
    return [(row["memory"], row["entity"]) for row in rows]


async def forget(tx: Tx, org: int, bank: int, memories: Sequence[int]) -> None:
    """Unlink memories, and drop entities that nothing names any more."""
    await drop(tx, org, bank, await unlink(tx, org, bank, memories))


async def unlink(tx: Tx, org: int, bank: int, memories: Sequence[int]) -> list[int]:
    """Forget which entities memories name; tells which those were."""
    rows = await tx.all(
        "SELECT DISTINCT entity FROM memory_entities WHERE org = :org AND bank = :bank AND memory = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(memories),
    )
    await tx.run(
        "DELETE FROM memory_entities WHERE org = :org AND bank = :bank AND memory = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(memories),
    )
    return [row["entity"] for row in rows]


async def drop(tx: Tx, org: int, bank: int, entities: Sequence[int]) -> None:
    """Remove those entities that nothing names any more, with the relations that someone drew to them."""
    gone = await tx.all(
        "DELETE FROM entities WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids) AND NOT EXISTS (SELECT 1 FROM"
        " memory_entities e WHERE e.org = entities.org AND e.bank = entities.bank AND e.entity = entities.id)"
        " RETURNING id",
        org=org,
        bank=bank,
        ids=list(entities),
    )
    if gone:
        await relations.forget(tx, org, bank, [row["id"] for row in gone])
