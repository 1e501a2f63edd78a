"""Jobs: work left for the background, claimed under a lease."""

from dataclasses import dataclass

from keepsake.core.clock import SECOND
from keepsake.store.engine import Row, Tx
from keepsake.store.store import HOLDER, Store

LEASE = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed job; the attempt is the fence against a former holder."""

    org: int
    bank: int
    id: int
    kind: str
    key: str
    version: int
    attempt: int


def _job(row: Row) -> Job:
    return Job(row["org"], row["bank"], row["id"], row["kind"], row["key"], row["version"], row["attempt"])


async def wanted(tx: Tx, store: Store, org: int, bank: int, kind: str, now: int) -> None:
    """Ask for work of a kind on a bank; asking again while it waits or runs makes it look once more."""
    await tx.run(
        "INSERT INTO jobs (org, bank, id, kind, key, input, state, version, lease_until, holder, attempt, progress,"
        " not_before, ceiling, result, error, created_at, updated_at) VALUES (:org, :bank, :id, :kind, '', '',"
        " 'pending', 1, 0, '', 0, 0, :now, 0, '', '', :now, :now)"
        " ON CONFLICT (org, bank, kind, key) DO UPDATE SET version = jobs.version + 1,"
        " updated_at = excluded.updated_at,"
        " state = CASE WHEN jobs.state = 'running' THEN jobs.state ELSE 'pending' END",
        org=org,
        bank=bank,
        id=store.new_id(),
        kind=kind,
        now=now,
    )


async def claim(tx: Tx, now: int) -> Job | None:
    """Take the job that has waited longest, or one whose holder has died."""
    row = await tx.one(
        "UPDATE jobs SET state = 'running', holder = :holder, lease_until = :until, attempt = attempt + 1,"
        " updated_at = :now WHERE (org, bank, id) = (SELECT org, bank, id FROM jobs"
        " WHERE (state = 'pending' AND not_before <= :now) OR (state = 'running' AND lease_until < :now)"
        " ORDER BY not_before LIMIT 1) AND (state = 'pending' OR lease_until < :now)"
        " RETURNING org, bank, id, kind, key, version, attempt",
        holder=HOLDER,
        until=now + LEASE,
        now=now,
    )
    return _job(row) if row else None


async def keep(tx: Tx, job: Job, now: int) -> bool:
    """Extend the lease; False when another process has taken the job over."""
    changed = await tx.run(
        "UPDATE jobs SET lease_until = :until, updated_at = :now"
        " WHERE org = :org AND bank = :bank AND id = :id AND attempt = :attempt AND state = 'running'",
        until=now + LEASE,
        now=now,
        org=job.org,
        bank=job.bank,
        id=job.id,
        attempt=job.attempt,
    )
    return changed == 1


async def finish(tx: Tx, job: Job, now: int) -> None:
    """End a job, or set it back to waiting when more was asked of it meanwhile."""
    await tx.run(
        "UPDATE jobs SET state = CASE WHEN version = :version THEN 'completed' ELSE 'pending' END, attempt = 0,"
        " error = '', updated_at = :now WHERE org = :org AND bank = :bank AND id = :id AND attempt = :attempt",
        version=job.version,
        now=now,
        org=job.org,
        bank=job.bank,
        id=job.id,
        attempt=job.attempt,
    )


async def fail(tx: Tx, job: Job, now: int, error: str) -> None:
    """Put a failed job back with a growing pause."""
    pause = min(300, 2 ** min(job.attempt, 9)) * SECOND
    await tx.run(
        "UPDATE jobs SET state = 'pending', not_before = :after, error = :error, updated_at = :now"
        " WHERE org = :org AND bank = :bank AND id = :id AND attempt = :attempt",
        after=now + pause,
        error=error,
        now=now,
        org=job.org,
        bank=job.bank,
        id=job.id,
        attempt=job.attempt,
    )


async def waiting(tx: Tx, now: int) -> bool:
    """Whether there is anything to claim; asked first, because looking is cheaper than claiming."""
    row = await tx.one(
        "SELECT 1 AS one FROM jobs WHERE (state = 'pending' AND not_before <= :now)"
        " OR (state = 'running' AND lease_until < :now) LIMIT 1",
        now=now,
    )
    return row is not None


async def counts(tx: Tx) -> dict[str, int]:
    """How many jobs there are in each state."""
    rows = await tx.all("SELECT state, count(*) AS held FROM jobs GROUP BY state")
    return {row["state"]: int(row["held"]) for row in rows}


@dataclass(frozen=True, slots=True)
class Standing:
    """How many jobs of a kind are in a state, and what went wrong last where something did."""

    bank: int
    kind: str
    state: str
    jobs: int
    error: str


async def standing(tx: Tx, org: int) -> list[Standing]:
    """The jobs of an org by bank, kind and state."""
    rows = await tx.all(
        "SELECT bank, kind, state, count(*) AS held, max(error) AS error FROM jobs WHERE org = :org"
        " GROUP BY bank, kind, state ORDER BY bank, kind, state",
        org=org,
    )
    return [Standing(row["bank"], row["kind"], row["state"], int(row["held"]), row["error"]) for row in rows]
