"""Which files memories read and wrote, and which memories tell of a file as it no longer is."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.store.engine import Tx


@dataclass(frozen=True, slots=True)
class Touched:
    """A file that a memory is about."""

    memory: int
    #: Relative to the root of the project.
    path: str
    wrote: bool
    at: int
    #: git's name for what the file held then; empty when it is not known.
    blob: str = ""


async def add(tx: Tx, org: int, bank: int, touched: Sequence[Touched]) -> None:
    """Note the files of new memories."""
    await tx.many(
        "INSERT INTO memory_files (org, bank, memory, path, wrote, at, blob, changed_at)"
        " VALUES (:org, :bank, :memory, :path, :wrote, :at, :blob, NULL)"
        " ON CONFLICT (org, bank, memory, path, wrote) DO NOTHING",
        [
            {
                "org": org,
                "bank": bank,
                "memory": one.memory,
                "path": one.path,
                "wrote": int(one.wrote),
                "at": one.at,
                "blob": one.blob,
            }
            for one in touched
        ],
    )


async def stale(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> frozenset[int]:
    """Those memories whose file was written later by another one, or was seen changed on disk."""
    rows = await tx.all(
        "SELECT DISTINCT f.memory AS memory FROM memory_files f WHERE f.org = :org AND f.bank = :bank"
        " AND f.memory = ANY_INT(:ids) AND (f.changed_at IS NOT NULL OR EXISTS (SELECT 1 FROM memory_files w"
        " WHERE w.org = f.org AND w.bank = f.bank AND w.path = f.path AND w.wrote = 1 AND w.at > f.at"
        " AND w.memory <> f.memory))",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    return frozenset(int(row["memory"]) for row in rows)


async def newest(tx: Tx, org: int, bank: int, limit: int) -> list[tuple[str, str, bool]]:
    """The files that were touched last, each with git's name for what it held then, and whether it was seen changed."""
    rows = await tx.all(
        "SELECT path, blob, changed_at FROM memory_files f WHERE org = :org AND bank = :bank AND blob <> '' AND at ="
        " (SELECT max(at) FROM memory_files l WHERE l.org = f.org AND l.bank = f.bank AND l.path = f.path)"
        " ORDER BY at DESC LIMIT :limit",
        org=org,
        bank=bank,
        limit=limit,
    )
    return [(str(row["path"]), str(row["blob"]), row["changed_at"] is not None) for row in rows]


async def changed(tx: Tx, org: int, bank: int, path: str, blob: str, now: int) -> None:
    """Note what a file holds now: memories of another content are stale from here on, those of this one no more."""
    await tx.run(
        "UPDATE memory_files SET changed_at = CASE WHEN blob = :blob THEN NULL ELSE coalesce(changed_at, :now) END"
        " WHERE org = :org AND bank = :bank AND path = :path AND blob <> ''",
        blob=blob,
        now=now,
        org=org,
        bank=bank,
        path=path,
    )
