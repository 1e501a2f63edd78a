"""Jobs: work left for the background, claimed under a lease, and how each of them stands."""

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from keepsake.core.clock import DAY, SECOND
from keepsake.store import wanting
from keepsake.store.engine import Row, Tx, Value
from keepsake.store.store import HOLDER, Store

State = Literal["pending", "running", "completed", "failed", "cancelled"]
#: What a job is about: ids, never content and never a secret.
Input = Mapping[str, int | str | Sequence[int]]
LEASE = 60 * SECOND
#: Tries before a job is a dead letter.
MOST_ATTEMPTS = 5
LONGEST_PAUSE = 300 * SECOND
#: How long ended jobs are kept, and how many of each state in a bank.
KEPT_FOR: dict[State, int] = {"completed": 7 * DAY, "cancelled": 7 * DAY, "failed": 30 * DAY}
KEPT = 1_000

_ID = re.compile(r"[\w.:-]{1,128}")


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed job; the attempt, with who made it, is the fence against a former holder."""

    org: int
    bank: int
    id: int
    kind: str
    key: str
    version: int
    attempt: int
    input: Input = field(default_factory=dict)
    holder: str = ""
    lease_until: int = 0


def _job(row: Row) -> Job:
    return Job(
        org=row["org"],
        bank=row["bank"],
        id=row["id"],
        kind=row["kind"],
        key=row["key"],
        version=row["version"],
        attempt=row["attempt"],
        input=json.loads(row["input"] or "{}"),
        holder=row["holder"],
        lease_until=row["lease_until"],
    )


async def wanted(tx: Tx, store: Store, org: int, bank: int, kind: str, now: int) -> None:
    """Ask for work of a kind on a bank; asking again while it waits or runs makes it look once more."""
    await wanting.ask(tx, org, bank, kind, store.new_id(), now)


async def add(tx: Tx, store: Store, org: int, bank: int, kind: str, now: int, input: Input) -> int:
    """Leave one job of its own, and tell its id."""
    if not all(_ID.fullmatch(value) for value in input.values() if isinstance(value, str)):
        raise ValueError("A job's input holds ids, never content.")
    id = store.new_id()
    given = json.dumps(dict(input))
    await tx.run(wanting.INSERT, org=org, bank=bank, id=id, kind=kind, key=str(id), input=given, now=now)
    return id


_OPEN = (
    "kind = ANY_TEXT(:kinds)"
    " AND ((state = 'pending' AND not_before <= :now) OR (state = 'running' AND lease_until < :now))"
)


async def waiting(tx: Tx, kinds: Sequence[str], now: int) -> bool:
    """Whether there is anything to claim; asked first, because looking is cheaper than claiming."""
    return await tx.one(f"SELECT 1 AS one FROM jobs WHERE {_OPEN} LIMIT 1", kinds=kinds, now=now) is not None


async def claim(tx: Tx, kinds: Sequence[str], now: int) -> Job | None:
    """Take the job that has waited longest, or one whose holder has died; None when another was quicker."""
    # The condition stands twice: PostgreSQL asks the outer one again of a row that changed while it waited for it.
    row = await tx.one(
        "UPDATE jobs SET state = 'running', holder = :holder, lease_until = :until, attempt = attempt + 1,"
        " progress = 0, updated_at = :now WHERE (org, bank, id) = (SELECT org, bank, id FROM jobs"
        f" WHERE {_OPEN} ORDER BY not_before, id LIMIT 1) AND {_OPEN}"
        " RETURNING org, bank, id, kind, key, input, version, attempt, holder, lease_until",
        # Attempts begin anew once a job has succeeded, so each claim also has a name of its own.
        holder=f"{HOLDER}:{secrets.token_hex(4)}",
        until=now + LEASE,
        kinds=kinds,
        now=now,
    )
    return _job(row) if row else None


_HELD = "org = :org AND bank = :bank AND id = :id AND attempt = :attempt AND holder = :holder AND state = 'running'"


def _held(job: Job) -> dict[str, Value]:
    return {"org": job.org, "bank": job.bank, "id": job.id, "attempt": job.attempt, "holder": job.holder}


async def holds(tx: Tx, job: Job) -> bool:
    """Whether the job is still this holder's: neither cancelled nor taken over."""
    return await tx.one(f"SELECT 1 AS one FROM jobs WHERE {_HELD}", **_held(job)) is not None


async def keep(tx: Tx, job: Job, now: int) -> bool:
    """Extend the lease; False when the job is no longer this holder's.

    Asked in a handler's own transaction, it fences whatever else that transaction writes.
    """
    return await _changed(tx, job, "lease_until = :until, updated_at = :now", now=now, until=now + LEASE)


async def progress(tx: Tx, job: Job, now: int, share: float) -> bool:
    """Tell how much is done, 0 to 1; the lease grows with it."""
    changes = "progress = :share, lease_until = :until, updated_at = :now"
    return await _changed(tx, job, changes, now=now, until=now + LEASE, share=min(1.0, max(0.0, share)))


async def tell(tx: Tx, job: Job, result: str) -> bool:
    """Say, as a JSON object, what a job has done so far; counts and reasons, never content."""
    return await _changed(tx, job, "result = :result", result=result)


async def finish(tx: Tx, job: Job, now: int) -> bool:
    """End a job, or set it back to waiting when more was asked of it meanwhile.

    A handler whose effect must happen exactly once finishes, as its last act, in the transaction that has the
    effect, and writes nothing when this is False.
    """
    return await _changed(
        tx,
        job,
        "state = CASE WHEN version = :version THEN 'completed' ELSE 'pending' END,"
        " attempt = CASE WHEN version = :version THEN attempt ELSE 0 END,"
        " progress = CASE WHEN version = :version THEN 1 ELSE 0 END,"
        " not_before = :now, error = '', updated_at = :now",
        now=now,
        version=job.version,
    )


def pause(attempt: int, jitter: float) -> int:
    """How long to wait after a failed attempt; the jitter, 0 to 1, keeps those that failed together apart."""
    return int(min(LONGEST_PAUSE, 4**attempt * SECOND) * (0.5 + jitter))


async def fail(tx: Tx, job: Job, now: int, error: str, jitter: float) -> bool:
    """Put a failed job back with a growing pause; after its last attempt it is a dead letter."""
    return await _changed(
        tx,
        job,
        "state = CASE WHEN attempt >= :most THEN 'failed' ELSE 'pending' END, not_before = :after, error = :error,"
        " updated_at = :now",
        now=now,
        most=MOST_ATTEMPTS,
        after=now + pause(job.attempt, jitter),
        error=error,
    )


async def bury(tx: Tx, job: Job, now: int, error: str) -> bool:
    """Make a job a dead letter at once."""
    return await _changed(tx, job, "state = 'failed', error = :error, updated_at = :now", now=now, error=error)


async def release(tx: Tx, job: Job, now: int, after: int = 0) -> bool:
    """Give a job back as if it had not been tried."""
    changes = "state = 'pending', attempt = attempt - 1, not_before = :after, updated_at = :now"
    return await _changed(tx, job, changes, now=now, after=now + after)


async def _changed(tx: Tx, job: Job, changes: str, **values: Value) -> bool:
    return await tx.run(f"UPDATE jobs SET {changes} WHERE {_HELD}", **_held(job), **values) == 1


@dataclass(frozen=True, slots=True)
class Record:
    """A job as those who asked for it see it."""

    id: int
    kind: str
    state: State
    progress: float
    attempts: int
    result: str
    error: str
    created_at: int
    updated_at: int


_COLUMNS = "id, kind, state, progress, attempt AS attempts, result, error, created_at, updated_at"


async def get(tx: Tx, org: int, bank: int, id: int) -> Record | None:
    """One job of a bank."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM jobs WHERE org = :org AND bank = :bank AND id = :id", org=org, bank=bank, id=id
    )
    return Record(**row) if row else None


async def hurry(tx: Tx, org: int, bank: int, kind: str, now: int) -> None:
    """Let a job that rests after a failure begin at once: someone asked for it again."""
    await tx.run(
        "UPDATE jobs SET not_before = :now, error = '' WHERE org = :org AND bank = :bank AND kind = :kind AND key = ''"
        " AND state = 'pending'",
        org=org,
        bank=bank,
        kind=kind,
        now=now,
    )


async def of_kind(tx: Tx, org: int, bank: int, kind: str) -> Record | None:
    """The job of a kind that a bank has only one of."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM jobs WHERE org = :org AND bank = :bank AND kind = :kind AND key = ''",
        org=org,
        bank=bank,
        kind=kind,
    )
    return Record(**row) if row else None


async def listed(tx: Tx, org: int, bank: int, states: Sequence[State], limit: int) -> list[Record]:
    """The jobs of a bank in these states, newest first."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM jobs WHERE org = :org AND bank = :bank AND state = ANY_TEXT(:states)"
        " ORDER BY created_at DESC, id DESC LIMIT :limit",
        org=org,
        bank=bank,
        states=states,
        limit=limit,
    )
    return [Record(**row) for row in rows]


async def cancel(tx: Tx, org: int, bank: int, id: int, now: int) -> bool:
    """End a job that waits or runs; False when there is none that does."""
    changed = await tx.run(
        "UPDATE jobs SET state = 'cancelled', error = '', updated_at = :now"
        " WHERE org = :org AND bank = :bank AND id = :id AND state IN ('pending', 'running')",
        org=org,
        bank=bank,
        id=id,
        now=now,
    )
    return changed == 1


async def retry(tx: Tx, org: int, bank: int, id: int, now: int) -> bool:
    """Let a job that was given up or cancelled begin anew; False when there is none that was."""
    changed = await tx.run(
        "UPDATE jobs SET state = 'pending', version = version + 1, attempt = 0, progress = 0, not_before = :now,"
        " error = '', updated_at = :now"
        " WHERE org = :org AND bank = :bank AND id = :id AND state IN ('failed', 'cancelled')",
        org=org,
        bank=bank,
        id=id,
        now=now,
    )
    return changed == 1


async def prune(tx: Tx, now: int) -> int:
    """Drop ended jobs that are old, or that newer ones of their bank have crowded out; tells how many."""
    dropped = 0
    for state, kept_for in KEPT_FOR.items():
        dropped += await tx.run(
            "DELETE FROM jobs WHERE state = :state AND (updated_at < :before OR (org, bank, id) IN"
            " (SELECT org, bank, id FROM (SELECT org, bank, id, row_number() OVER"
            " (PARTITION BY org, bank ORDER BY updated_at DESC, id DESC) AS place FROM jobs WHERE state = :state)"
            " AS ranked WHERE place > :kept))",
            state=state,
            before=now - kept_for,
            kept=KEPT,
        )
    return dropped


async def counts(tx: Tx) -> dict[str, int]:
    """How many jobs there are in each state."""
    rows = await tx.all("SELECT state, count(*) AS held FROM jobs GROUP BY state")
    return {row["state"]: int(row["held"]) for row in rows}


async def oldest(tx: Tx, org: int) -> int | None:
    """Since when the job of an org that has waited longest could have been done."""
    row = await tx.one("SELECT min(not_before) AS since FROM jobs WHERE org = :org AND state = 'pending'", org=org)
    return row["since"] if row else None


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
