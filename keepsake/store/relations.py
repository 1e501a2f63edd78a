"""Relations: typed edges that someone drew between two of a bank's memories, artifacts and entities."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from keepsake.store.engine import Ask, Row, Tx, Value

Place = Literal["memory", "artifact", "entity"]


@dataclass(frozen=True, slots=True)
class Relation:
    """One edge as stored."""

    org: int
    bank: int
    origin: int
    target: int
    type: str
    origin_kind: Place
    target_kind: Place
    note: str
    author: str
    created_at: int


_NAMES = tuple(Relation.__dataclass_fields__)
_COLUMNS = ", ".join(_NAMES)
_OF = "org = :org AND bank = :bank"


def _relation(row: Row) -> Relation:
    return Relation(**{name: row[name] for name in _NAMES})


async def put(tx: Tx, relation: Relation) -> bool:
    """Draw an edge; False when it is there already, as it was."""
    values: dict[str, Value] = {name: getattr(relation, name) for name in _NAMES}
    made = await tx.run(
        f"INSERT INTO relations ({_COLUMNS}) VALUES ({', '.join(':' + name for name in _NAMES)})"
        " ON CONFLICT (org, bank, origin, target, type) DO NOTHING",
        **values,
    )
    return made == 1


async def get(tx: Tx, relation: Relation) -> Relation | None:
    """The stored edge between the same two, of the same type."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM relations WHERE {_OF} AND origin = :origin AND target = :target AND type = :type",
        org=relation.org,
        bank=relation.bank,
        origin=relation.origin,
        target=relation.target,
        type=relation.type,
    )
    return _relation(row) if row else None


def newest(org: int, bank: int, limit: int) -> Ask[list[Relation]]:
    """The edges of a bank that were drawn last, newest first."""
    return Ask(
        f"SELECT {_COLUMNS} FROM relations WHERE {_OF} ORDER BY created_at DESC, origin DESC, target DESC, type"
        " LIMIT :limit",
        {"org": org, "bank": bank, "limit": limit},
        lambda rows: [_relation(row) for row in rows],
    )


async def touching(tx: Tx, org: int, bank: int, ids: Sequence[int], limit: int) -> list[Relation]:
    """The edges that begin or end at one of these, newest first."""
    # Two questions with an index each; asked with OR, the planner would read every edge of the bank.
    ends = [
        f"SELECT * FROM (SELECT {_COLUMNS} FROM relations WHERE {_OF} AND {end} = ANY_INT(:ids)"
        " ORDER BY created_at DESC LIMIT :limit) AS drawn"
        for end in ("origin", "target")
    ]
    rows = await tx.all(
        f"{' UNION '.join(ends)} ORDER BY created_at DESC, origin DESC, target DESC, type",
        org=org,
        bank=bank,
        ids=list(ids),
        limit=limit,
    )
    return [_relation(row) for row in rows]


async def resolved(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> set[int]:
    """Those of these that something else is said to resolve."""
    rows = await tx.all(
        f"SELECT DISTINCT target FROM relations WHERE {_OF} AND target = ANY_INT(:ids) AND type = 'resolves'",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    return {row["target"] for row in rows}


async def carry(tx: Tx, org: int, bank: int, old: int, new: int) -> None:
    """Draw every edge of a memory at another, too, as it was drawn; none from a thing to itself."""
    for end, other in (("origin", "target"), ("target", "origin")):
        drawn = ", ".join(":new" if name == end else name for name in _NAMES)
        await tx.run(
            f"INSERT INTO relations ({_COLUMNS}) SELECT {drawn} FROM relations WHERE {_OF} AND {end} = :old"
            f" AND {other} <> :new ON CONFLICT (org, bank, origin, target, type) DO NOTHING",
            org=org,
            bank=bank,
            old=old,
            new=new,
        )


async def forget(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> None:
    """Drop every edge at memories, artifacts or entities that are gone."""
    for end in ("origin", "target"):
        await tx.run(f"DELETE FROM relations WHERE {_OF} AND {end} = ANY_INT(:ids)", org=org, bank=bank, ids=list(ids))
