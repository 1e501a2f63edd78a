"""Artifacts: what someone made and goes on working at, with every version; the text of each is that of its source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keepsake.store import bulk
from keepsake.store.engine import Row, Tx, Value

#: What the sources and the memories of artifacts are called.
KIND = "artifact"
_OF = "org = :org AND bank = :bank"


@dataclass(frozen=True, slots=True)
class Artifact:
    """One artifact as stored."""

    org: int
    bank: int
    id: int
    identifier: str
    title: str
    type: str
    chat: str
    version: int
    author: str
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an artifact, without what it says."""

    artifact: int
    version: int
    source: int
    size: int
    author: str
    at: int
    note: str


_NAMES = tuple(Artifact.__dataclass_fields__)
_COLUMNS = ", ".join(_NAMES)
_VERSION = tuple(Version.__dataclass_fields__)
_VERSIONS = ", ".join(_VERSION)


def _artifact(row: Row) -> Artifact:
    return Artifact(**{name: row[name] for name in _NAMES})


async def insert(tx: Tx, artifact: Artifact) -> bool:
    """Write a new artifact; False when its identifier is taken."""
    values: dict[str, Value] = {name: getattr(artifact, name) for name in _NAMES}
    made = await tx.run(
        f"INSERT INTO artifacts ({_COLUMNS}) VALUES ({', '.join(':' + name for name in _NAMES)})"
        " ON CONFLICT (org, bank, identifier) DO NOTHING",
        **values,
    )
    return made == 1


async def advance(tx: Tx, artifact: Artifact) -> None:
    """Give an artifact its next version, and the title and type that come with it."""
    await tx.run(
        f"UPDATE artifacts SET title = :title, type = :type, version = :version, updated_at = :at WHERE {_OF}"
        " AND id = :id",
        org=artifact.org,
        bank=artifact.bank,
        id=artifact.id,
        title=artifact.title,
        type=artifact.type,
        version=artifact.version,
        at=artifact.updated_at,
    )


async def get(tx: Tx, org: int, bank: int, id: int) -> Artifact | None:
    """An artifact by its id."""
    row = await tx.one(f"SELECT {_COLUMNS} FROM artifacts WHERE {_OF} AND id = :id", org=org, bank=bank, id=id)
    return _artifact(row) if row else None


async def named(tx: Tx, org: int, bank: int, identifier: str) -> Artifact | None:
    """An artifact by its identifier."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM artifacts WHERE {_OF} AND identifier = :identifier",
        org=org,
        bank=bank,
        identifier=identifier,
    )
    return _artifact(row) if row else None


@dataclass(frozen=True, slots=True)
class Page:
    """Which artifacts of a bank, and which part of their list."""

    org: int
    bank: int
    chat: str = ""
    type: str = ""
    limit: int = 20
    offset: int = 0


async def page(tx: Tx, given: Page) -> tuple[list[Artifact], int]:
    """Artifacts, the last changed first, and how many there are in all."""
    clauses, values = [_OF], {"org": given.org, "bank": given.bank}
    narrowed: dict[str, Value] = {name: value for name, value in (("chat", given.chat), ("type", given.type)) if value}
    where = " AND ".join([*clauses, *(f"{name} = :{name}" for name in narrowed)])
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM artifacts WHERE {where} ORDER BY updated_at DESC, id DESC LIMIT :limit OFFSET :offset",
        limit=given.limit,
        offset=given.offset,
        **values,
        **narrowed,
    )
    total = await tx.one(f"SELECT count(*) AS total FROM artifacts WHERE {where}", **values, **narrowed)
    return [_artifact(row) for row in rows], int(total["total"]) if total else 0


async def add_version(tx: Tx, org: int, bank: int, version: Version) -> None:
    """Write a new version; its source is written by whoever asks."""
    values: dict[str, Value] = {name: getattr(version, name) for name in _VERSION}
    await tx.run(
        f"INSERT INTO artifact_versions (org, bank, {_VERSIONS})"
        f" VALUES (:org, :bank, {', '.join(':' + name for name in _VERSION)})",
        org=org,
        bank=bank,
        **values,
    )


async def versions(tx: Tx, org: int, bank: int, artifact: int, limit: int) -> list[Version]:
    """The versions of an artifact, newest first."""
    rows = await tx.all(
        f"SELECT {_VERSIONS} FROM artifact_versions WHERE {_OF} AND artifact = :artifact ORDER BY version DESC"
        " LIMIT :limit",
        org=org,
        bank=bank,
        artifact=artifact,
        limit=limit,
    )
    return [Version(**row) for row in rows]


async def version(tx: Tx, artifact: Artifact, number: int) -> Version | None:
    """One version of an artifact."""
    row = await tx.one(
        f"SELECT {_VERSIONS} FROM artifact_versions WHERE {_OF} AND artifact = :artifact AND version = :version",
        org=artifact.org,
        bank=artifact.bank,
        artifact=artifact.id,
        version=number,
    )
    return Version(**row) if row else None


async def sizes(tx: Tx, org: int, bank: int, current: Mapping[int, int]) -> dict[int, int]:
    """How large these artifacts are, each in its current version."""
    rows = await tx.all(
        f"SELECT artifact, version, size FROM artifact_versions WHERE {_OF} AND artifact = ANY_INT(:ids)"
        " AND version = ANY_INT(:versions)",
        org=org,
        bank=bank,
        ids=list(current),
        versions=sorted(set(current.values())),
    )
    return {row["artifact"]: int(row["size"]) for row in rows if current[row["artifact"]] == row["version"]}


@dataclass(frozen=True, slots=True)
class Content:
    """What a version says, and the hash of that."""

    text: str
    hash: str


async def content(tx: Tx, org: int, bank: int, source: int) -> Content:
    """What a version says."""
    row = await tx.one(f"SELECT text, hash FROM sources WHERE {_OF} AND id = :id", org=org, bank=bank, id=source)
    return Content(row["text"], row["hash"]) if row else Content("", "")


async def memories(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> list[int]:
    """Every memory of these artifacts, whatever its state and of whichever version."""
    rows = await tx.all(
        "SELECT m.id AS id FROM sources s JOIN memories m ON m.org = s.org AND m.bank = s.bank AND m.source = s.id"
        " WHERE s.org = :org AND s.bank = :bank AND s.kind = 'artifact' AND s.key = ANY_TEXT(:keys)",
        org=org,
        bank=bank,
        keys=[str(id) for id in ids],
    )
    return [row["id"] for row in rows]


async def beginnings(tx: Tx, org: int, bank: int, limit: int) -> list[int]:
    """The memory that each of the last changed artifacts begins with, the last changed first."""
    rows = await tx.all(
        f"SELECT min(m.id) AS id FROM (SELECT id, version, updated_at FROM artifacts WHERE {_OF}"
        " ORDER BY updated_at DESC, id DESC LIMIT :limit) a JOIN artifact_versions v ON v.org = :org AND v.bank = :bank"
        " AND v.artifact = a.id AND v.version = a.version JOIN memories m ON m.org = :org AND m.bank = :bank"
        " AND m.source = v.source AND m.state = 'live' AND m.superseded_at IS NULL"
        " GROUP BY a.id, a.updated_at ORDER BY a.updated_at DESC, a.id DESC",
        org=org,
        bank=bank,
        limit=limit,
    )
    return [row["id"] for row in rows]


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory that a new version tells just as the former did, perhaps elsewhere in its text."""

    id: int
    source: int
    span: str
    metadata: str


async def keep(tx: Tx, org: int, bank: int, kept: Sequence[Kept]) -> None:
    """Let memories belong to a new version; text, vector and index stay."""
    await tx.many(
        f"UPDATE memories SET source = :source, span = :span, metadata = :metadata WHERE {_OF} AND id = :id",
        [
            {"org": org, "bank": bank, "id": one.id, "source": one.source, "span": one.span, "metadata": one.metadata}
            for one in kept
        ],
    )


async def told(tx: Tx, org: int, bank: int, artifact: int) -> list[bulk.Told]:
    """The memories of an artifact's current version that hold."""
    key = str(artifact)
    return (await bulk.items(tx, org, bank, KIND, [key])).get(key, bulk.Item()).told


async def delete(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> None:
    """Remove artifacts with every version and what it says; their memories are removed by whoever asks."""
    values: dict[str, Value] = {"org": org, "bank": bank, "ids": list(ids)}
    await tx.run(f"DELETE FROM artifact_versions WHERE {_OF} AND artifact = ANY_INT(:ids)", **values)
    await tx.run(f"DELETE FROM artifacts WHERE {_OF} AND id = ANY_INT(:ids)", **values)
    await tx.run(
        f"DELETE FROM sources WHERE {_OF} AND kind = 'artifact' AND key = ANY_TEXT(:keys)",
        org=org,
        bank=bank,
        keys=[str(id) for id in ids],
    )
