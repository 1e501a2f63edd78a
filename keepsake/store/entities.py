"""Entities: who and what memories speak of."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.store.engine import Tx
from keepsake.store.store import Store


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
    known = {one.folded: one.id for one in await find(tx, org, bank, [one.folded for one in named])}
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


async def find(tx: Tx, org: int, bank: int, folded: Sequence[str]) -> list[Entity]:
    """The entities that these names mean here."""
    rows = await tx.all(
        "SELECT id, folded, kind FROM entities WHERE org = :org AND bank = :bank AND folded = ANY_TEXT(:folded)",
        org=org,
        bank=bank,
        folded=list(folded),
    )
    return [Entity(row["id"], row["folded"], row["kind"]) for row in rows]


async def naming(tx: Tx, org: int, bank: int, entities: Sequence[int], among: Sequence[int]) -> dict[int, set[str]]:
    """Which of these memories name one of the entities, and how."""
    rows = await tx.all(
        "SELECT memory, role FROM memory_entities WHERE org = :org AND bank = :bank AND entity = ANY_INT(:entities)"
        " AND memory = ANY_INT(:among)",
        org=org,
        bank=bank,
        entities=list(entities),
        among=list(among),
    )
    found: dict[int, set[str]] = {}
    for row in rows:
        found.setdefault(row["memory"], set()).add(row["role"])
    return found


async def forget(tx: Tx, org: int, bank: int, memories: Sequence[int]) -> None:
    """Unlink memories, and drop entities that nothing names any more."""
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
    await tx.run(
        "DELETE FROM entities WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids) AND NOT EXISTS (SELECT 1 FROM"
        " memory_entities e WHERE e.org = entities.org AND e.bank = entities.bank AND e.entity = entities.id)",
        org=org,
        bank=bank,
        ids=[row["entity"] for row in rows],
    )
