"""Repositories: which one a bank learns from, how far it was read, and its files at that revision."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from keepsake.store.engine import Row, Tx, Value

State = Literal["new", "running", "completed", "partial", "failed"]
Synthesis = Literal["pending", "running", "completed", "failed"]
FileKind = Literal["file", "link", "module"]
#: Names of the folders in which a project keeps notes for its agents.
FOLDERS = (".keystone", ".keepsake")


@dataclass(frozen=True, slots=True)
class Repo:
    """The repository of a bank."""

    org: int
    bank: int
    remote: str
    created_at: int
    updated_at: int
    full_name: str = ""
    branch: str = ""
    head: str = ""
    cursors: Mapping[str, object] = field(default_factory=dict)
    state: State = "new"
    note: str = ""
    completed: int = 0
    last_synced_at: int | None = None
    synthesis: Synthesis = "pending"
    synthesis_progress: int = 0
    synthesis_of: int = 0
    folder_files: int = 0

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return "://" not in self.remote


_NAMES = tuple(Repo.__dataclass_fields__)
_COLUMNS = ", ".join(_NAMES)


def _repo(row: Row) -> Repo:
    return Repo(**{name: row[name] for name in _NAMES} | {"cursors": json.loads(row["cursors"])})


async def get(tx: Tx, org: int, bank: int) -> Repo | None:
    """The repository of a bank."""
    row = await tx.one(f"SELECT {_COLUMNS} FROM repos WHERE org = :org AND bank = :bank", org=org, bank=bank)
    return _repo(row) if row else None


async def listed(tx: Tx, org: int) -> dict[int, Repo]:
    """The repositories of an org by bank."""
    rows = await tx.all(f"SELECT {_COLUMNS} FROM repos WHERE org = :org", org=org)
    return {row["bank"]: _repo(row) for row in rows}


async def full_names(tx: Tx, org: int, banks: Sequence[int]) -> dict[int, str]:
    """What GitHub calls the repositories of these banks, where it knows them."""
    rows = await tx.all(
        "SELECT bank, full_name FROM repos WHERE org = :org AND bank = ANY_INT(:banks) AND full_name <> ''",
        org=org,
        banks=list(banks),
    )
    return {row["bank"]: row["full_name"] for row in rows}


async def named(tx: Tx, org: int, full_name: str) -> list[Repo]:
    """The repositories of an org that GitHub knows by this name, whatever its letters' case."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM repos WHERE org = :org AND lower(full_name) = :name", org=org, name=full_name.lower()
    )
    return [_repo(row) for row in rows]


async def put(tx: Tx, repo: Repo) -> None:
    """Write how a repository stands, whole."""
    values: dict[str, Value] = {name: getattr(repo, name) for name in _NAMES}
    values["cursors"] = json.dumps(dict(repo.cursors), ensure_ascii=False)
    kept = ", ".join(f"{name} = excluded.{name}" for name in _NAMES if name not in ("org", "bank", "created_at"))
    await tx.run(
        f"INSERT INTO repos ({_COLUMNS}) VALUES ({', '.join(':' + name for name in _NAMES)})"
        f" ON CONFLICT (org, bank) DO UPDATE SET {kept}",
        **values,
    )


async def synthesised(tx: Tx, org: int, bank: int, state: Synthesis, progress: int, of: int | None, now: int) -> None:
    """Tell how a project's profile stands, and, once it is made, of how many memories."""
    await tx.run(
        "UPDATE repos SET synthesis = :state, synthesis_progress = :progress, updated_at = :now,"
        " synthesis_of = coalesce(:of, synthesis_of) WHERE org = :org AND bank = :bank",
        org=org,
        bank=bank,
        state=state,
        progress=progress,
        of=of,
        now=now,
    )


async def delete(tx: Tx, org: int, bank: int) -> None:
    """Forget which repository a bank learns from."""
    for table in ("repos", "repo_files"):
        await tx.run(f"DELETE FROM {table} WHERE org = :org AND bank = :bank", org=org, bank=bank)


async def held(tx: Tx, org: int, bank: int) -> int:
    """How many memories a bank has from its repository."""
    row = await tx.one(
        "SELECT count(*) AS held FROM memories WHERE org = :org AND bank = :bank AND kind = 'chunk'"
        " AND state = 'live' AND superseded_at IS NULL",
        org=org,
        bank=bank,
    )
    return int(row["held"]) if row else 0


@dataclass(frozen=True, slots=True)
class File:
    """A file of a repository."""

    path: str
    blob: str
    size: int
    kind: FileKind = "file"


async def files(tx: Tx, org: int, bank: int) -> dict[str, File]:
    """Every file at the revision that was read last, by path."""
    rows = await tx.all(
        "SELECT path, blob, size, kind FROM repo_files WHERE org = :org AND bank = :bank ORDER BY path",
        org=org,
        bank=bank,
    )
    return {row["path"]: File(**row) for row in rows}


async def file(tx: Tx, org: int, bank: int, path: str) -> File | None:
    """One file at the revision that was read last."""
    row = await tx.one(
        "SELECT path, blob, size, kind FROM repo_files WHERE org = :org AND bank = :bank AND path = :path",
        org=org,
        bank=bank,
        path=path,
    )
    return File(**row) if row else None


async def put_files(tx: Tx, org: int, bank: int, changed: Iterable[File], gone: Sequence[str]) -> None:
    """Bring the files to another revision."""
    await tx.run(
        "DELETE FROM repo_files WHERE org = :org AND bank = :bank AND path = ANY_TEXT(:gone)",
        org=org,
        bank=bank,
        gone=list(gone),
    )
    await tx.many(
        "INSERT INTO repo_files (org, bank, path, blob, size, kind) VALUES (:org, :bank, :path, :blob, :size, :kind)"
        " ON CONFLICT (org, bank, path) DO UPDATE SET blob = excluded.blob, size = excluded.size, kind = excluded.kind",
        [
            {"org": org, "bank": bank, "path": one.path, "blob": one.blob, "size": one.size, "kind": one.kind}
            for one in changed
        ],
    )
