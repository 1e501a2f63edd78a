"""Rewriting what older versions let in: every table that holds text of a bank, read in order and put back clean."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apsw

from keepsake.store import memories
from keepsake.store.engine import Engine, Tx, Value
from keepsake.store.memories import Memory
from keepsake.store.sqlite import Sqlite, connect

#: How long the file may be held by others before its free space is left to a later run.
PATIENCE_MS = 10_000


@dataclass(frozen=True, slots=True)
class Table:
    """A table of plain texts: nothing is indexed by them and nothing points into them."""

    kind: str
    name: str
    keys: tuple[str, ...]
    texts: tuple[str, ...]


PLAIN = (
    Table("bank", "banks", ("bank",), ("title", "mission")),
    Table("model", "mental_models", ("id",), ("name", "source_query", "tags")),
    Table("model", "model_versions", ("model", "version"), ("text", "evidence")),
    Table("directive", "directives", ("id",), ("name", "content", "tags")),
    Table("artifact", "artifacts", ("id",), ("title", "chat")),
    Table("artifact", "artifact_versions", ("artifact", "version"), ("note",)),
    Table("chat", "chats", ("id",), ("title",)),
    Table("chat", "chat_messages", ("chat", "n"), ("text", "citations")),
    Table("relation", "relations", ("origin", "target", "type"), ("note",)),
)


@dataclass(frozen=True, slots=True)
class Plain:
    """A row of such a table."""

    table: Table
    keys: Mapping[str, Value]
    texts: Mapping[str, str]


async def plain(tx: Tx, org: int, bank: int) -> list[Plain]:
    """Every plain text of a bank."""
    found = []
    for table in PLAIN:
        columns = ", ".join((*table.keys, *table.texts))
        rows = await tx.all(f"SELECT {columns} FROM {table.name} WHERE org = :org AND bank = :bank", org=org, bank=bank)
        for row in rows:
            keys, texts = ({name: row[name] for name in names} for names in (table.keys, table.texts))
            found.append(Plain(table, keys, texts))
    return found


async def rewrite_plain(tx: Tx, org: int, bank: int, row: Plain) -> None:
    """Put the texts of a row in the place of those it had."""
    given = ", ".join(f"{name} = :{name}" for name in row.texts)
    where = " AND ".join(f"{name} = :{name}" for name in row.keys if name != "bank")
    await tx.run(
        f"UPDATE {row.table.name} SET {given} WHERE org = :org AND bank = :bank{' AND ' + where if where else ''}",
        **{**row.texts, **row.keys, "org": org, "bank": bank},
    )


async def memories_after(tx: Tx, org: int, bank: int, after: int, limit: int) -> list[Memory]:
    """The next memories by id, whatever their state."""
    rows = await tx.all(
        "SELECT id FROM memories WHERE org = :org AND bank = :bank AND id > :after ORDER BY id LIMIT :limit",
        org=org,
        bank=bank,
        after=after,
        limit=limit,
    )
    return list((await memories.fetched(tx, org, bank, [row["id"] for row in rows])).values())


async def rewrite_memory(tx: Tx, was: Memory, memory: Memory) -> bool:
    """Put a memory's texts in the place of those it had; False when it has changed or gone meanwhile."""
    fields = ("text", "title", "slug", "category", "span", "text_hash", "tokens", "seq")
    values: dict[str, Value] = {name: getattr(memory, name) for name in fields}
    for name in ("parts", "tags", "metadata"):
        values[name] = json.dumps(getattr(memory, name), ensure_ascii=False)
    key: dict[str, Value] = {"org": memory.org, "bank": memory.bank, "id": memory.id}
    changed = await tx.run(
        f"UPDATE memories SET {', '.join(f'{name} = :{name}' for name in values)}"
        " WHERE org = :org AND bank = :bank AND id = :id AND text_hash = :was AND span = :was_at",
        was=was.text_hash,
        was_at=was.span,
        **key,
        **values,
    )
    if changed and was.tags != memory.tags:
        await tx.run("DELETE FROM memory_tags WHERE org = :org AND bank = :bank AND memory = :id", **key)
        await tx.many(
            "INSERT INTO memory_tags (org, bank, tag, memory) VALUES (:org, :bank, :tag, :id)"
            " ON CONFLICT (org, bank, tag, memory) DO NOTHING",
            [{**key, "tag": tag} for tag in memory.tags],
        )
    return changed == 1


@dataclass(frozen=True, slots=True)
class Told:
    """The texts of a source, of whatever revision."""

    id: int
    key: str
    uri: str
    text: str
    meta: dict[str, object]


async def sources_after(tx: Tx, org: int, bank: int, after: int, limit: int) -> list[Told]:
    """The next sources by id, replaced revisions included."""
    rows = await tx.all(
        "SELECT id, key, uri, text, meta FROM sources WHERE org = :org AND bank = :bank AND id > :after"
        " ORDER BY id LIMIT :limit",
        org=org,
        bank=bank,
        after=after,
        limit=limit,
    )
    return [Told(row["id"], row["key"], row["uri"], row["text"], json.loads(row["meta"])) for row in rows]


async def rewrite_source(tx: Tx, org: int, bank: int, told: Told, hash: str) -> None:
    """Put a source's texts in the place of those it had."""
    await tx.run(
        "UPDATE sources SET key = :key, uri = :uri, text = :text, meta = :meta, hash = :hash"
        " WHERE org = :org AND bank = :bank AND id = :id",
        key=told.key,
        uri=told.uri,
        text=told.text,
        meta=json.dumps(told.meta, ensure_ascii=False),
        hash=hash,
        org=org,
        bank=bank,
        id=told.id,
    )


async def indexed(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> list[int]:
    """Those of the memories that a search can find."""
    rows = await tx.all(
        "SELECT id FROM search_docs WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    return [row["id"] for row in rows]


async def scrub(engine: Engine) -> bool:
    """Rewrite an SQLite file, so that nothing is left between its pages; PostgreSQL's vacuum does that by itself."""
    return await asyncio.to_thread(_scrubbed, engine) if isinstance(engine, Sqlite) else False


def _scrubbed(engine: Sqlite) -> bool:
    connection = connect(engine.path)
    connection.set_busy_timeout(PATIENCE_MS)
    try:
        # Old words stay in the index's segments until these are merged, and old pages in the log until it is emptied.
        connection.execute("INSERT INTO search (search) VALUES ('optimize')")
        connection.execute("VACUUM")
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
    except (apsw.BusyError, apsw.FullError):
        return False
    finally:
        connection.close()
    return not busy
