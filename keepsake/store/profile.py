"""What a project's profile is made from: pieces of its documents, its commits with their files, and what is new."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keepsake.core.profile import Commit
from keepsake.store.engine import Row, Tx
from keepsake.store.filters import HELD, SAID_AT

#: Commits that are counted, the newest ones.
COMMITS = 50_000
_OF_KIND = f"m.org = :org AND m.bank = :bank AND m.kind = 'chunk' AND m.subtype = ANY_TEXT(:subtypes) AND {HELD}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a repository without its text."""

    id: int
    subtype: str
    title: str
    at: int
    metadata: Mapping[str, object]

    @property
    def path(self) -> str:
        """The file it is from; empty where it is from none."""
        return str(self.metadata.get("path", ""))

    @property
    def line(self) -> int:
        """Where in the file it begins."""
        first = self.metadata.get("start_line", 0)
        return first if isinstance(first, int) else 0


def _piece(row: Row) -> Piece:
    return Piece(row["id"], row["subtype"], row["title"], row["at"], json.loads(row["metadata"]))


async def pieces(tx: Tx, org: int, bank: int, subtypes: Sequence[str], now: int) -> list[Piece]:
    """The pieces of some kinds that hold, newest first."""
    rows = await tx.all(
        f"SELECT m.id AS id, m.subtype AS subtype, m.title AS title, m.metadata AS metadata, {SAID_AT} AS at"
        f" FROM memories m WHERE {_OF_KIND} ORDER BY {SAID_AT} DESC, m.id DESC LIMIT :limit",
        org=org,
        bank=bank,
        subtypes=list(subtypes),
        at=now,
        limit=COMMITS,
    )
    return [_piece(row) for row in rows]


async def commits(tx: Tx, org: int, bank: int, now: int) -> list[Commit]:
    """The commits that hold, merges left out, newest first, each with the files it wrote."""
    found = [one for one in await pieces(tx, org, bank, ["commit"], now) if not one.metadata.get("merge")]
    paths = await _paths(tx, org, bank, now)
    return [
        Commit(one.id, one.at, str(one.metadata.get("author", "")), one.title, tuple(paths.get(one.id, ())))
        for one in found
    ]


async def _paths(tx: Tx, org: int, bank: int, now: int) -> dict[int, list[str]]:
    rows = await tx.all(
        "SELECT f.memory AS memory, f.path AS path FROM memories m JOIN memory_files f ON f.org = m.org"
        f" AND f.bank = m.bank AND f.memory = m.id AND f.wrote = 1 WHERE {_OF_KIND} ORDER BY f.memory, f.path",
        org=org,
        bank=bank,
        subtypes=["commit"],
        at=now,
    )
    found: dict[int, list[str]] = {}
    for row in rows:
        found.setdefault(row["memory"], []).append(row["path"])
    return found


@dataclass(frozen=True, slots=True)
class Since:
    """What has changed in a bank's repository since its profile was made."""

    #: Pieces that are new, and those that hold in all.
    new: int
    held: int
    #: New pieces of what a profile rests on most: README and notes.
    front: int = 0
    #: Whether the profile rests on what these say no more.
    is_outdated: bool = False


async def since(tx: Tx, org: int, bank: int, seq: int, now: int) -> Since:
    """What is new since a moment of the bank's own counting."""
    row = await tx.one(
        "SELECT count(*) AS held, coalesce(sum(CASE WHEN m.seq > :seq THEN 1 ELSE 0 END), 0) AS new,"
        " coalesce(sum(CASE WHEN m.seq > :seq AND m.subtype IN ('readme', 'note') THEN 1 ELSE 0 END), 0) AS front"
        f" FROM memories m WHERE m.org = :org AND m.bank = :bank AND m.kind = 'chunk' AND {HELD}",
        org=org,
        bank=bank,
        seq=seq,
        at=now,
    )
    return Since(int(row["new"]), int(row["held"]), int(row["front"])) if row else Since(0, 0)


async def outdated(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> bool:
    """Whether one of these memories tells what the README or a note says no more."""
    row = await tx.one(
        "SELECT count(*) AS gone FROM memories WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)"
        " AND superseded_at IS NOT NULL AND subtype IN ('readme', 'note')",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    return row is not None and int(row["gone"]) > 0
