"""Invocations: runs that were asked for, how each stands, and what it has printed."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from keepsake.core import ids
from keepsake.core.enrolment import Effect, Policy
from keepsake.core.invocation import LEASE, OPEN, WAITING, Decision, State
from keepsake.store.engine import Row, Tx, Value
from keepsake.store.readings import Reading

#: The category of memories that tell what came of one.
CATEGORY = "execution"


@dataclass(frozen=True, slots=True)
class Invocation:
    """One invocation as stored."""

    org: int
    #: The bank it was asked for in; 0 where that has no writes yet.
    bank: int
    id: int
    tool: str
    version: str
    effect: Effect
    policy: Policy
    arguments: str
    principal: str
    credential: str
    person: int | None
    reason: str
    same: str | None
    window_until: int
    state: State
    created_at: int
    expires_at: int
    readings: tuple[Reading, ...] = ()
    decisions: tuple[Decision, ...] = ()
    holder: str = ""
    lease_until: int = 0
    cancel_at: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    exit_code: int | None = None
    output_bytes: int = 0
    outcome: str = ""
    settled_by: str = ""


_NAMES = tuple(Invocation.__dataclass_fields__)
_COLUMNS = ", ".join(_NAMES)


def _invocation(row: Row) -> Invocation:
    readings = tuple(Reading(**one) for one in json.loads(row["readings"]))
    decisions = tuple(Decision(**one) for one in json.loads(row["decisions"]))
    return Invocation(**{**row, "readings": readings, "decisions": decisions})


def _written(parts: Sequence[Reading] | Sequence[Decision]) -> str:
    return json.dumps([asdict(part) for part in parts])


async def insert(tx: Tx, invocation: Invocation) -> bool:
    """Write a new one; False when the same was asked for within its window, and not in vain."""
    await tx.run(
        "UPDATE invocations SET same = NULL WHERE org = :org AND same = :same"
        " AND (window_until <= :now OR state = 'expired')",
        org=invocation.org,
        same=invocation.same,
        now=invocation.created_at,
    )
    values: dict[str, Value] = {name: getattr(invocation, name) for name in _NAMES}
    values |= {"readings": _written(invocation.readings), "decisions": _written(invocation.decisions)}
    made = await tx.one(
        f"INSERT INTO invocations ({_COLUMNS}) VALUES ({', '.join(f':{name}' for name in _NAMES)})"
        " ON CONFLICT (org, same) DO NOTHING RETURNING id",
        **values,
    )
    return made is not None


async def of_same(tx: Tx, org: int, same: str) -> Invocation | None:
    """The one that a request repeats."""
    row = await tx.one(f"SELECT {_COLUMNS} FROM invocations WHERE org = :org AND same = :same", org=org, same=same)
    return _invocation(row) if row else None


async def of_id(tx: Tx, org: int, id: int) -> Invocation | None:
    """One by its id."""
    row = await tx.one(f"SELECT {_COLUMNS} FROM invocations WHERE org = :org AND id = :id", org=org, id=id)
    return _invocation(row) if row else None


@dataclass(frozen=True, slots=True)
class Which:
    """Which invocations of an org."""

    states: Sequence[State]
    limit: int
    #: Only those that this credential asked for.
    credential: str | None = None


async def listed(tx: Tx, org: int, which: Which) -> list[Invocation]:
    """Invocations, newest first."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM invocations WHERE org = :org AND state = ANY_TEXT(:states)"
        " AND (CAST(:credential AS TEXT) IS NULL OR credential = :credential) ORDER BY id DESC LIMIT :limit",
        org=org,
        states=which.states,
        credential=which.credential,
        limit=which.limit,
    )
    return [_invocation(row) for row in rows]


async def count_open(tx: Tx, org: int, credential: str, now: int) -> int:
    """How many of a credential have not ended."""
    row = await tx.one(
        "SELECT count(*) AS held FROM invocations WHERE org = :org AND credential = :credential"
        " AND (state = 'running' OR (state = ANY_TEXT(:open) AND expires_at > :now))",
        org=org,
        credential=credential,
        open=OPEN,
        now=now,
    )
    return int(row["held"]) if row else 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What decisions come to."""

    decisions: Sequence[Decision]
    state: State
    #: Until when it may wait for its turn, where they let it run.
    until: int


async def decide(tx: Tx, was: Invocation, verdict: Verdict, now: int) -> bool:
    """Add a decision; False when it waits no more, or someone else decided meanwhile."""
    changed = await tx.run(
        "UPDATE invocations SET decisions = :decisions, state = :state,"
        " expires_at = CASE WHEN :state = 'queued' THEN CAST(:until AS BIGINT) ELSE expires_at END,"
        " ended_at = CASE WHEN :state = 'denied' THEN CAST(:now AS BIGINT) ELSE NULL END,"
        " outcome = :outcome WHERE org = :org AND id = :id AND state = 'awaiting_approval' AND expires_at > :now"
        " AND decisions = :before",
        decisions=_written(verdict.decisions),
        state=verdict.state,
        until=verdict.until,
        now=now,
        outcome=verdict.decisions[-1].reason if verdict.state == "denied" else "",
        org=was.org,
        id=was.id,
        before=_written(was.decisions),
    )
    return changed == 1


async def start(tx: Tx, invocation: Invocation, holder: str, now: int) -> bool:
    """Take one to run it; of all who try, one gets it."""
    changed = await tx.run(
        "UPDATE invocations SET state = 'running', holder = :holder, lease_until = :until, started_at = :now"
        " WHERE org = :org AND id = :id AND state = 'queued' AND expires_at > :now AND version = :version",
        holder=holder,
        until=now + LEASE,
        now=now,
        org=invocation.org,
        id=invocation.id,
        version=invocation.version,
    )
    return changed == 1


async def keep(tx: Tx, invocation: Invocation, holder: str, now: int) -> int | None:
    """Say that it still runs; tells when it was to be cancelled, or 0, or None when it is no longer this holder's."""
    row = await tx.one(
        "UPDATE invocations SET lease_until = :until WHERE org = :org AND id = :id AND state = 'running'"
        " AND holder = :holder RETURNING coalesce(cancel_at, 0) AS cancel_at",
        until=now + LEASE,
        org=invocation.org,
        id=invocation.id,
        holder=holder,
    )
    return int(row["cancel_at"]) if row else None


@dataclass(frozen=True, slots=True)
class End:
    """How one ends."""

    state: State
    #: Only from one of these states.
    after: Sequence[State]
    outcome: str = ""
    exit_code: int | None = None
    #: Only as long as this one runs it.
    holder: str | None = None
    #: The operator who settled it.
    settled_by: str = ""


async def end(tx: Tx, invocation: Invocation, end: End, now: int) -> bool:
    """Write how one ended; False when it stands otherwise by now."""
    changed = await tx.run(
        "UPDATE invocations SET state = :state, ended_at = :now, outcome = :outcome, exit_code = :exit_code,"
        " settled_by = :settled_by WHERE org = :org AND id = :id AND state = ANY_TEXT(:after)"
        " AND (CAST(:holder AS TEXT) IS NULL OR holder = :holder)",
        state=end.state,
        now=now,
        outcome=end.outcome,
        exit_code=end.exit_code,
        settled_by=end.settled_by,
        org=invocation.org,
        id=invocation.id,
        after=end.after,
        holder=end.holder,
    )
    return changed == 1


async def ask_to_cancel(tx: Tx, invocation: Invocation, now: int) -> bool:
    """Ask whoever runs it to end it; False when nobody does."""
    changed = await tx.run(
        "UPDATE invocations SET cancel_at = coalesce(cancel_at, :now)"
        " WHERE org = :org AND id = :id AND state = 'running'",
        now=now,
        org=invocation.org,
        id=invocation.id,
    )
    return changed == 1


async def running(tx: Tx, org: int, tool: str) -> int:
    """How many of a tool run now."""
    row = await tx.one(
        "SELECT count(*) AS held FROM invocations WHERE org = :org AND tool = :tool AND state = 'running'",
        org=org,
        tool=tool,
    )
    return int(row["held"]) if row else 0


async def stale(tx: Tx, org: int, tool: str, version: str) -> list[Invocation]:
    """What waits for a tool as it is no more."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM invocations WHERE org = :org AND tool = :tool AND version <> :version"
        " AND state = ANY_TEXT(:waiting)",
        org=org,
        tool=tool,
        version=version,
        waiting=WAITING,
    )
    return [_invocation(row) for row in rows]


@dataclass(frozen=True, slots=True)
class Due:
    """What there is to do: something to start, to give up waiting for, or to ask after no more."""

    org: int
    id: int
    tool: str
    state: State
    expires_at: int


async def due(tx: Tx, now: int, limit: int) -> list[Due]:
    """What is to be done now, in whatever org, the oldest first."""
    rows = await tx.all(
        "SELECT org, id, tool, state, expires_at FROM invocations WHERE state = 'queued'"
        " OR (state = 'awaiting_approval' AND expires_at <= :now) OR (state = 'running' AND lease_until <= :now)"
        " ORDER BY id LIMIT :limit",
        now=now,
        limit=limit,
    )
    return [Due(row["org"], row["id"], row["tool"], row["state"], row["expires_at"]) for row in rows]


async def exist(tx: Tx) -> bool:
    """Whether anything was ever asked for."""
    return await tx.one("SELECT 1 AS one FROM invocations LIMIT 1") is not None


@dataclass(frozen=True, slots=True)
class Printed:
    """A piece of what was printed."""

    n: int
    text: str = field(repr=False)


async def printed(tx: Tx, org: int, id: int, after: int = -1) -> list[Printed]:
    """What was printed after a piece, in order."""
    rows = await tx.all(
        "SELECT n, text FROM exec_output WHERE org = :org AND invocation = :id AND n > :after ORDER BY n",
        org=org,
        id=id,
        after=after,
    )
    return [Printed(row["n"], row["text"]) for row in rows]


async def write(tx: Tx, invocation: Invocation, n: int, text: str) -> None:
    """Add a piece of what was printed."""
    await tx.run(
        "INSERT INTO exec_output (org, invocation, n, text) VALUES (:org, :id, :n, :text)"
        " ON CONFLICT (org, invocation, n) DO NOTHING",
        org=invocation.org,
        id=invocation.id,
        n=n,
        text=text,
    )
    await tx.run(
        "UPDATE invocations SET output_bytes = output_bytes + :size WHERE org = :org AND id = :id",
        size=len(text.encode()),
        org=invocation.org,
        id=invocation.id,
    )


async def bank_gone(tx: Tx, org: int, bank: int) -> None:
    """Nothing is run any more for a bank that was deleted, and nothing of what was said is kept."""
    rows = await tx.all("SELECT id FROM invocations WHERE org = :org AND bank = :bank", org=org, bank=bank)
    await silence(tx, org, [row["id"] for row in rows])
    await tx.run(
        "UPDATE invocations SET state = 'expired', outcome = 'The bank was deleted.'"
        " WHERE org = :org AND bank = :bank AND state = ANY_TEXT(:waiting)",
        org=org,
        bank=bank,
        waiting=WAITING,
    )


async def silence(tx: Tx, org: int, those: Sequence[int]) -> None:
    """Forget what invocations were given and what they printed; that they were, and how they ended, stays."""
    await tx.run("DELETE FROM exec_output WHERE org = :org AND invocation = ANY_INT(:those)", org=org, those=those)
    await tx.run(
        "UPDATE invocations SET arguments = '{}', reason = '', readings = '[]', outcome = '', output_bytes = 0"
        " WHERE org = :org AND id = ANY_INT(:those)",
        org=org,
        those=those,
    )


async def forget(tx: Tx, org: int, bank: int, told: str) -> None:
    """Forget what an invocation of a bank was given and printed, with the memory of its outcome."""
    row = await of_id(tx, org, number) if (number := ids.parse(told)) else None
    if row is not None and row.bank == bank:
        await silence(tx, org, [row.id])


async def prune(tx: Tx, org: int, before: int) -> int:
    """Drop what ended before a moment, with what it printed; tells how many."""
    old = "SELECT id FROM invocations WHERE org = :org AND ended_at < :before"
    await tx.run(f"DELETE FROM exec_output WHERE org = :org AND invocation IN ({old})", org=org, before=before)
    return await tx.run("DELETE FROM invocations WHERE org = :org AND ended_at < :before", org=org, before=before)


async def is_shut_out(tx: Tx, invocation: Invocation, now: int) -> bool:
    """Whether whoever asked may ask no more: their key or grant was revoked, or they were shut out."""
    _, _, number = invocation.credential.rpartition(":")
    row = await tx.one(
        "SELECT (SELECT count(*) FROM api_keys WHERE org = :org AND id = :number AND :kind = 'key'"
        " AND (revoked_at IS NOT NULL OR expires_at <= :now))"
        " + (SELECT count(*) FROM oauth_grants WHERE org = :org AND id = :number AND :kind = 'client'"
        " AND (revoked_at IS NOT NULL OR expires_at <= :now))"
        " + (SELECT count(*) FROM users WHERE org = :org AND id = :person AND disabled_at IS NOT NULL) AS found",
        org=invocation.org,
        number=int(number) if number.lstrip("-").isdecimal() else -1,
        kind=invocation.credential.partition(":")[0],
        person=invocation.person or 0,
        now=now,
    )
    return row is not None and row["found"] > 0
