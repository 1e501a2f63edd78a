"""Sessions: when someone worked with an agent on a project, in which client."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.store.engine import Tx, Value

_COLUMNS = "id, key, client, cwd, branch, started_at, last_at, ended_at, summary"


@dataclass(frozen=True, slots=True)
class Session:
    """One session of a bank."""

    id: int
    #: The client's own id of it.
    key: str
    client: str
    cwd: str
    branch: str
    started_at: int
    last_at: int
    ended_at: int | None = None
    #: The memory that sums it up.
    summary: int | None = None


async def named(tx: Tx, org: int, bank: int, key: str) -> Session | None:
    """A session by the client's id of it."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM sessions WHERE org = :org AND bank = :bank AND key = :key",
        org=org,
        bank=bank,
        key=key,
    )
    return Session(**row) if row else None


async def latest(tx: Tx, org: int, bank: int, prefix: str) -> Session | None:
    """The newest session whose key begins so and ends in the time of its start."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM sessions WHERE org = :org AND bank = :bank AND key >= :low AND key < :high"
        " ORDER BY started_at DESC, id DESC LIMIT 1",
        org=org,
        bank=bank,
        low=f"{prefix}:",
        high=f"{prefix};",
    )
    return Session(**row) if row else None


async def insert(tx: Tx, org: int, bank: int, session: Session) -> None:
    """Write a new session."""
    values: dict[str, Value] = {name: getattr(session, name) for name in Session.__dataclass_fields__}
    await tx.run(
        f"INSERT INTO sessions (org, bank, {_COLUMNS}) VALUES (:org, :bank, :id, :key, :client, :cwd, :branch,"
        " :started_at, :last_at, :ended_at, :summary)",
        org=org,
        bank=bank,
        **values,
    )


async def update(tx: Tx, org: int, bank: int, session: Session) -> None:
    """Note how far a session has come."""
    await tx.run(
        "UPDATE sessions SET branch = :branch, started_at = :started_at, last_at = :last_at, ended_at = :ended_at,"
        " summary = :summary WHERE org = :org AND bank = :bank AND id = :id",
        branch=session.branch,
        started_at=session.started_at,
        last_at=session.last_at,
        ended_at=session.ended_at,
        summary=session.summary,
        org=org,
        bank=bank,
        id=session.id,
    )


async def by_id(tx: Tx, org: int, bank: int, id: int) -> Session | None:
    """A session by our own id."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM sessions WHERE org = :org AND bank = :bank AND id = :id", org=org, bank=bank, id=id
    )
    return Session(**row) if row else None


async def memories_of(tx: Tx, org: int, bank: int, id: int, limit: int) -> list[int]:
    """The newest memories of a session that hold."""
    rows = await tx.all(
        "SELECT id FROM memories WHERE org = :org AND bank = :bank AND source = :id AND state = 'live'"
        " AND superseded_at IS NULL ORDER BY id DESC LIMIT :limit",
        org=org,
        bank=bank,
        id=id,
        limit=limit,
    )
    return [int(row["id"]) for row in rows]


async def stated(tx: Tx, org: int, bank: int, kind: str, text_hash: str) -> int | None:
    """The memory of a kind that says the same and still holds."""
    row = await tx.one(
        "SELECT id FROM memories WHERE org = :org AND bank = :bank AND kind = :kind AND text_hash = :text_hash"
        " AND state = 'live' AND superseded_at IS NULL ORDER BY id LIMIT 1",
        org=org,
        bank=bank,
        kind=kind,
        text_hash=text_hash,
    )
    return int(row["id"]) if row else None


async def telling_of(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> list[int]:
    """What else holds the text of memories: the summaries of their sessions, and the prompts that stated them."""
    values: dict[str, Value] = {"org": org, "bank": bank, "ids": list(ids)}
    chosen = "WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)"
    rows = await tx.all(
        "SELECT id FROM memories WHERE org = :org AND bank = :bank AND kind = 'summary' AND source IN"
        f" (SELECT source FROM memories {chosen})",
        **values,
    )
    rows += await tx.all(
        "SELECT id FROM memories WHERE org = :org AND bank = :bank AND kind = 'observation' AND id IN"
        f" (SELECT parent FROM memories {chosen})",
        **values,
    )
    return [int(row["id"]) for row in rows]
