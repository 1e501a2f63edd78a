"""Many rows at once: what a sync or an import writes in one statement each instead of one a memory."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from keepsake.store import entities
from keepsake.store.engine import Tx, Value
from keepsake.store.entities import Named
from keepsake.store.memories import Memory
from keepsake.store.sources import Source
from keepsake.store.store import Store

_MEMORY = tuple(Memory.__dataclass_fields__)
_SOURCE = tuple(Source.__dataclass_fields__)


def _insert(table: str, names: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(':' + name for name in names)})"


async def insert(tx: Tx, rows: Sequence[Memory]) -> None:
    """Write new memories; none of them has tags."""
    await tx.many(_insert("memories", _MEMORY), [_values(row) for row in rows])


def _values(row: Memory) -> dict[str, Value]:
    values: dict[str, Value] = {name: getattr(row, name) for name in _MEMORY}
    for name in ("parts", "tags", "metadata"):
        values[name] = json.dumps(getattr(row, name), ensure_ascii=False)
    return values


async def insert_sources(tx: Tx, rows: Sequence[Source]) -> None:
    """Write new sources."""
    await tx.many(
        _insert("sources", _SOURCE),
        [
            {name: getattr(row, name) for name in _SOURCE} | {"meta": json.dumps(row.meta, ensure_ascii=False)}
            for row in rows
        ],
    )


@dataclass(frozen=True, slots=True)
class Told:
    """A memory as its source told it."""

    id: int
    title: str
    text_hash: str


@dataclass(slots=True)
class Item:
    """What is known under one kind and key of source: every revision, and what the present one tells."""

    #: Ids of sources by revision.
    revisions: dict[str, int] = field(default_factory=dict)
    #: The present revision; None where the thing is gone.
    revision: str | None = None
    told: list[Told] = field(default_factory=list)
    #: Whether it ever became a memory that is still there, superseded or not.
    is_held: bool = False


async def items(tx: Tx, org: int, bank: int, kind: str, keys: Sequence[str]) -> dict[str, Item]:
    """What a bank knows of these keys."""
    values: dict[str, Value] = {"org": org, "bank": bank, "kind": kind, "keys": list(keys)}
    rows = await tx.all(
        "SELECT id, key, revision, replaced_by FROM sources WHERE org = :org AND bank = :bank AND kind = :kind"
        " AND key = ANY_TEXT(:keys)",
        **values,
    )
    found: dict[str, Item] = {}
    present: dict[int, Item] = {}
    for row in rows:
        item = found.setdefault(row["key"], Item())
        item.revisions[row["revision"]] = row["id"]
        if row["replaced_by"] is None:
            item.revision = row["revision"]
            present[row["id"]] = item
    if present:
        told = await tx.all(
            "SELECT id, source, title, text_hash, superseded_at, state FROM memories WHERE org = :org AND bank = :bank"
            " AND source = ANY_INT(:ids) ORDER BY id",
            org=org,
            bank=bank,
            ids=list(present),
        )
        for row in told:
            item = present[row["source"]]
            item.is_held = True
            if row["superseded_at"] is None and row["state"] == "live":
                item.told.append(Told(row["id"], row["title"], row["text_hash"]))
    return found


async def revisions(tx: Tx, org: int, bank: int, kinds: Sequence[str]) -> dict[tuple[str, str], str]:
    """The present revision of every source of these kinds, by kind and key."""
    rows = await tx.all(
        "SELECT kind, key, revision FROM sources WHERE org = :org AND bank = :bank AND kind = ANY_TEXT(:kinds)"
        " AND replaced_by IS NULL",
        org=org,
        bank=bank,
        kinds=list(kinds),
    )
    return {(row["kind"], row["key"]): row["revision"] for row in rows}


async def replaced(tx: Tx, org: int, bank: int, by: Mapping[int, int | None]) -> None:
    """Mark sources as replaced by others; None makes a former revision the present one again."""
    await tx.many(
        "UPDATE sources SET replaced_by = :by WHERE org = :org AND bank = :bank AND id = :id",
        [{"org": org, "bank": bank, "id": id, "by": new} for id, new in by.items()],
    )


async def gone(tx: Tx, org: int, bank: int, kind: str, keys: Sequence[str], at: int) -> int:
    """Put what these sources told out of the way, because nothing took their place; tells how many memories."""
    values: dict[str, Value] = {"org": org, "bank": bank, "kind": kind, "keys": list(keys)}
    which = (
        "SELECT id FROM sources WHERE org = :org AND bank = :bank AND kind = :kind AND key = ANY_TEXT(:keys)"
        " AND replaced_by IS NULL"
    )
    changed = await tx.run(
        "UPDATE memories SET superseded_at = :at WHERE org = :org AND bank = :bank AND superseded_at IS NULL"
        f" AND source IN ({which})",
        at=at,
        **values,
    )
    # A source that is its own successor is gone, and may come back.
    await tx.run(
        "UPDATE sources SET replaced_by = id WHERE org = :org AND bank = :bank AND kind = :kind"
        " AND key = ANY_TEXT(:keys) AND replaced_by IS NULL",
        **values,
    )
    return changed


async def supersede(tx: Tx, org: int, bank: int, by: Mapping[int, int | None], at: int) -> None:
    """Put memories out of the way, each for the one that takes its place, if any."""
    await tx.many(
        "UPDATE memories SET superseded_at = :at, superseded_by = :by"
        " WHERE org = :org AND bank = :bank AND id = :id AND superseded_at IS NULL",
        [{"org": org, "bank": bank, "id": id, "by": new, "at": at} for id, new in by.items()],
    )


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory that a new revision of its source tells just as the former did."""

    id: int
    source: int
    metadata: Mapping[str, object]
    blob: str
    at: int


async def keep(tx: Tx, org: int, bank: int, kept: Sequence[Kept]) -> None:
    """Let memories belong to a new revision of their source; text, vector and index stay."""
    rows: list[dict[str, Value]] = [
        {
            "org": org,
            "bank": bank,
            "id": one.id,
            "source": one.source,
            "metadata": json.dumps(dict(one.metadata), ensure_ascii=False),
            "blob": one.blob,
            "at": one.at,
        }
        for one in kept
    ]
    await tx.many(
        "UPDATE memories SET source = :source, metadata = :metadata WHERE org = :org AND bank = :bank AND id = :id",
        [{name: row[name] for name in ("org", "bank", "id", "source", "metadata")} for row in rows],
    )
    await tx.many(
        "UPDATE memory_files SET blob = :blob, at = :at, changed_at = NULL"
        " WHERE org = :org AND bank = :bank AND memory = :id",
        [{name: row[name] for name in ("org", "bank", "id", "blob", "at")} for row in rows],
    )


async def link(tx: Tx, store: Store, org: int, bank: int, named: Mapping[int, Iterable[Named]]) -> None:
    """Remember which entities memories name, making those that are new."""
    every = {one.folded: one for found in named.values() for one in found}
    if not every:
        return
    known = {one.folded: one.id for one in await entities.meant(org, bank, list(every)).of(tx)}
    new = [one for folded, one in every.items() if folded not in known]
    await tx.many(
        "INSERT INTO entities (org, bank, id, name, folded, kind) VALUES (:org, :bank, :id, :name, :folded, :kind)"
        " ON CONFLICT (org, bank, folded) DO NOTHING",
        [
            {"org": org, "bank": bank, "id": store.new_id(), "name": one.name, "folded": one.folded, "kind": one.kind}
            for one in new
        ],
    )
    known |= {one.folded: one.id for one in await entities.meant(org, bank, [one.folded for one in new]).of(tx)}
    await tx.many(
        "INSERT INTO memory_entities (org, bank, entity, memory, role) VALUES (:org, :bank, :entity, :memory, :role)"
        " ON CONFLICT (org, bank, entity, memory) DO NOTHING",
        [
            {"org": org, "bank": bank, "entity": known[one.folded], "memory": memory, "role": one.role}
            for memory, found in named.items()
            for one in found
            if one.folded in known
        ],
    )


async def sharp(tx: Tx, org: int, bank: int, static: int) -> dict[str, int]:
    """Memories whose vector is better than the quick one, by the hash of what it was made from."""
    rows = await tx.all(
        "SELECT memory, text_hash FROM vectors WHERE org = :org AND bank = :bank AND model <> :static",
        org=org,
        bank=bank,
        static=static,
    )
    return {row["text_hash"]: row["memory"] for row in rows}


async def copy_vectors(tx: Tx, org: int, bank: int, twins: Mapping[int, int], seq: int) -> None:
    """Give memories the vectors of others that say the very same, where those still have them."""
    await tx.many(
        "INSERT INTO vectors (org, bank, memory, model, vec, text_hash, seq)"
        " SELECT v.org, v.bank, :new, v.model, v.vec, v.text_hash, :seq FROM vectors v"
        " WHERE v.org = :org AND v.bank = :bank AND v.memory = :old AND v.text_hash = (SELECT n.text_hash"
        " FROM vectors n WHERE n.org = :org AND n.bank = :bank AND n.memory = :new)"
        " ON CONFLICT (org, bank, memory) DO UPDATE SET model = excluded.model, vec = excluded.vec, seq = excluded.seq",
        [{"org": org, "bank": bank, "new": new, "old": old, "seq": seq} for new, old in twins.items()],
    )


async def tells(tx: Tx, org: int, bank: int, kind: str, key: str = "") -> bool:
    """Whether a source of this kind, or that very one, has become a memory that is still there."""
    values: dict[str, Value] = {"org": org, "bank": bank, "kind": kind, **({"key": key} if key else {})}
    row = await tx.one(
        "SELECT 1 AS one FROM sources s WHERE s.org = :org AND s.bank = :bank AND s.kind = :kind"
        f"{' AND s.key = :key' if key else ''} AND s.replaced_by IS NULL AND EXISTS (SELECT 1 FROM memories m"
        " WHERE m.org = s.org AND m.bank = s.bank AND m.source = s.id) LIMIT 1",
        **values,
    )
    return row is not None
