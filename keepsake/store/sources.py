"""Sources: where memories come from; hindsight calls the kind `document` a document."""

import json
from dataclasses import asdict, dataclass, field

from keepsake.store.engine import Row, Tx, Value
from keepsake.store.memories import blanked


@dataclass(frozen=True, slots=True)
class Source:
    """One source as stored."""

    org: int
    bank: int
    id: int
    kind: str
    key: str
    hash: str
    text: str
    created_at: int
    uri: str = ""
    revision: str = ""
    meta: dict[str, object] = field(default_factory=dict)
    replaced_by: int | None = None


_NAMES = tuple(Source.__dataclass_fields__)
_COLUMNS = ", ".join(_NAMES)


def _source(row: Row) -> Source:
    values = {name: row[name] for name in _NAMES}
    values["meta"] = json.loads(row["meta"])
    return Source(**values)


async def insert(tx: Tx, source: Source) -> None:
    """Write a new source."""
    values: dict[str, Value] = asdict(source)
    values["meta"] = json.dumps(source.meta, ensure_ascii=False)
    await tx.run(f"INSERT INTO sources ({_COLUMNS}) VALUES ({', '.join(':' + name for name in _NAMES)})", **values)


async def current(tx: Tx, org: int, bank: int, kind: str, key: str) -> Source | None:
    """The newest revision under a key."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM sources WHERE org = :org AND bank = :bank AND kind = :kind AND key = :key"
        " AND replaced_by IS NULL",
        org=org,
        bank=bank,
        kind=kind,
        key=key,
    )
    return _source(row) if row else None


async def by_id(tx: Tx, org: int, bank: int, id: int) -> Source | None:
    """One source of a bank, whichever revision."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM sources WHERE org = :org AND bank = :bank AND id = :id", org=org, bank=bank, id=id
    )
    return _source(row) if row else None


async def replace(tx: Tx, old: Source, by: int) -> None:
    """Mark a revision as replaced by another one."""
    await tx.run(
        "UPDATE sources SET replaced_by = :by WHERE org = :org AND bank = :bank AND id = :id",
        by=by,
        org=old.org,
        bank=old.bank,
        id=old.id,
    )


async def listed(
    tx: Tx, org: int, bank: int, contains: str, limit: int, offset: int = 0
) -> list[tuple[Source, int, int]]:
    """Current documents without their texts, newest first, each with its length and how many memories rest on it."""
    escaped = contains.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    values: dict[str, Value] = {"org": org, "bank": bank, "limit": limit, "offset": offset}
    sought = ""
    if contains:
        sought = " AND (lower(s.key) LIKE :part ESCAPE '!' OR lower(s.text) LIKE :part ESCAPE '!')"
        values["part"] = f"%{escaped}%"
    names = ", ".join(f"s.{name}" for name in _NAMES if name != "text")
    rows = await tx.all(
        f"SELECT {names}, '' AS text, length(s.text) AS characters, (SELECT count(*) FROM memories m"
        " WHERE m.org = s.org AND m.bank = s.bank AND m.source = s.id AND m.superseded_at IS NULL) AS held"
        " FROM sources s WHERE s.org = :org AND s.bank = :bank AND s.kind = 'document' AND s.replaced_by IS NULL"
        f"{sought} ORDER BY s.created_at DESC, s.id DESC LIMIT :limit OFFSET :offset",
        **values,
    )
    return [(_source(row), int(row["characters"]), int(row["held"])) for row in rows]


async def revisions(tx: Tx, org: int, bank: int, kind: str, key: str) -> list[int]:
    """Ids of every revision under a key."""
    rows = await tx.all(
        "SELECT id FROM sources WHERE org = :org AND bank = :bank AND kind = :kind AND key = :key",
        org=org,
        bank=bank,
        kind=kind,
        key=key,
    )
    return [row["id"] for row in rows]


async def delete(tx: Tx, org: int, bank: int, ids: list[int]) -> None:
    """Remove sources; their memories are removed by whoever asks."""
    await tx.run(
        "DELETE FROM sources WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)", org=org, bank=bank, ids=ids
    )


async def count(tx: Tx, org: int, bank: int, kind: str) -> int:
    """How many current sources of a kind there are."""
    row = await tx.one(
        "SELECT count(*) AS held FROM sources WHERE org = :org AND bank = :bank AND kind = :kind"
        " AND replaced_by IS NULL",
        org=org,
        bank=bank,
        kind=kind,
    )
    return int(row["held"]) if row else 0


async def keys(tx: Tx, org: int, bank: int, ids: list[int]) -> dict[int, str]:
    """The keys of sources by id."""
    rows = await tx.all(
        "SELECT id, key FROM sources WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=ids,
    )
    return {row["id"]: row["key"] for row in rows}


async def blank(tx: Tx, org: int, bank: int, id: int, span: str) -> None:
    """Put blanks where a forgotten memory stood, so that every other span still fits."""
    row = await tx.one(
        "SELECT text FROM sources WHERE org = :org AND bank = :bank AND id = :id", org=org, bank=bank, id=id
    )
    if row is None or not span:
        return
    await tx.run(
        "UPDATE sources SET text = :text, hash = '' WHERE org = :org AND bank = :bank AND id = :id",
        text=blanked(row["text"], span),
        org=org,
        bank=bank,
        id=id,
    )
