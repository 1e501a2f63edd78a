"""Sessions: when someone worked with an agent on a project, in which client."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.core.clock import DAY
from keepsake.store.engine import Tx, Value
from keepsake.store.filters import SAID_AT

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
        " AND superseded_at IS NULL ORDER BY id + 0 DESC LIMIT :limit",
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which sessions of a bank, the last active first."""

    org: int
    bank: int
    client: str = ""
    #: Only these, by the client's ids of them.
    keys: tuple[str, ...] = ()
    #: Only those that were last active before this moment, or then and with a lower id.
    before: tuple[int, int] | None = None
    limit: int = 50


async def page(tx: Tx, wanted: Wanted) -> list[Session]:
    """Sessions, the last active first."""
    values: dict[str, Value] = {"org": wanted.org, "bank": wanted.bank, "limit": wanted.limit}
    clauses = ["org = :org", "bank = :bank"]
    if wanted.client:
        clauses.append("client = :client")
        values["client"] = wanted.client
    if wanted.keys:
        clauses.append("key = ANY_TEXT(:keys)")
        values["keys"] = list(wanted.keys)
    if wanted.before is not None:
        clauses.append("last_at <= :at AND (last_at < :at OR id < :id)")
        values["at"], values["id"] = wanted.before
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM sessions WHERE {' AND '.join(clauses)} ORDER BY last_at DESC, id DESC LIMIT :limit",
        **values,
    )
    return [Session(**row) for row in rows]


async def held(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """How many observations, and how many other memories than its summary, hold of each session."""
    rows = await tx.all(
        "SELECT source, sum(CASE WHEN kind = 'observation' THEN 1 ELSE 0 END) AS seen,"
        " sum(CASE WHEN kind IN ('observation', 'summary') THEN 0 ELSE 1 END) AS kept FROM memories"
        " WHERE org = :org AND bank = :bank AND source = ANY_INT(:ids) AND state = 'live' AND superseded_at IS NULL"
        " GROUP BY source",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    return {row["source"]: (int(row["seen"]), int(row["kept"])) for row in rows}


async def told(tx: Tx, org: int, bank: int, id: int, after: tuple[int, int] | None, limit: int) -> list[int]:
    """The memories of a session in the order of time, but not its summary."""
    since, beyond = after or (0, 0)
    # Not as its index says it: SQLite would read the whole bank in that order, rather than the session.
    at = f"({SAID_AT} + 0)"
    rows = await tx.all(
        f"SELECT id FROM memories WHERE org = :org AND bank = :bank AND source = :id AND state = 'live'"
        f" AND superseded_at IS NULL AND kind <> 'summary' AND ({at} > :since OR {at} = :since AND id > :beyond)"
        f" ORDER BY {at}, id LIMIT :limit",
        org=org,
        bank=bank,
        id=id,
        since=since,
        beyond=beyond,
        limit=limit,
    )
    return [int(row["id"]) for row in rows]


async def days(tx: Tx, org: int, bank: int, since: int, offset: int) -> dict[int, int]:
    """How many sessions began on each day since a moment, by the number of the day; `offset` is the reader's."""
    rows = await tx.all(
        "SELECT (started_at + :offset) / :day AS day, count(*) AS begun FROM sessions WHERE org = :org AND bank = :bank"
        " AND last_at >= :since AND started_at >= :since GROUP BY 1",
        org=org,
        bank=bank,
        since=since,
        offset=offset,
        day=DAY,
    )
    return {int(row["day"]): int(row["begun"]) for row in rows}


async def clients(tx: Tx, org: int, bank: int, since: int) -> list[str]:
    """The clients of the sessions since a moment, by name."""
    rows = await tx.all(
        "SELECT DISTINCT client FROM sessions WHERE org = :org AND bank = :bank AND last_at >= :since ORDER BY client",
        org=org,
        bank=bank,
        since=since,
    )
    return [row["client"] for row in rows]
