"""Proposals: what someone wants changed, whose it is, and how it stands."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.core.proposal import OPEN, READY, RUNS, State
from keepsake.store.engine import Row, Tx


@dataclass(frozen=True, slots=True)
class Proposal:
    """One proposal as stored."""

    org: int
    #: The bank that it would change; 0 for one that is still to be made.
    bank: int
    id: int
    token_hash: str
    principal: str
    credential: str
    person: int | None
    operation: str
    version: str
    effect: str
    #: The bank that the request itself named.
    place: str | None
    arguments: str
    #: Names of the secrets that were taken out of these, between blanks.
    redacted: str
    arguments_digest: str
    target_digest: str
    reason: str
    state: State
    created_at: int
    expires_at: int
    decided_by: str | None = None
    decided_at: int | None = None
    claimed_at: int | None = None
    ended_at: int | None = None
    outcome: str = ""


_NAMES = tuple(Proposal.__dataclass_fields__)
_COLUMNS = ", ".join(_NAMES)


def _proposal(row: Row) -> Proposal:
    return Proposal(**row)


async def insert(tx: Tx, proposal: Proposal) -> None:
    """Write a new proposal."""
    values = {name: getattr(proposal, name) for name in _NAMES}
    await tx.run(
        f"INSERT INTO proposals ({_COLUMNS}) VALUES ({', '.join(f':{name}' for name in _NAMES)})",
        **values,
    )


async def of_token(tx: Tx, org: int, token_hash: str) -> Proposal | None:
    """A proposal by what is kept of its token."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM proposals WHERE org = :org AND token_hash = :token_hash",
        org=org,
        token_hash=token_hash,
    )
    return _proposal(row) if row else None


async def of_id(tx: Tx, org: int, id: int) -> Proposal | None:
    """A proposal by its id."""
    row = await tx.one(f"SELECT {_COLUMNS} FROM proposals WHERE org = :org AND id = :id", org=org, id=id)
    return _proposal(row) if row else None


async def pending(tx: Tx, org: int, now: int, limit: int) -> list[Proposal]:
    """What waits for an approver, the oldest first."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM proposals WHERE org = :org AND state = 'pending_approval' AND expires_at > :now"
        " ORDER BY id LIMIT :limit",
        org=org,
        now=now,
        limit=limit,
    )
    return [_proposal(row) for row in rows]


async def past(tx: Tx, org: int, states: Sequence[State], limit: int) -> list[Proposal]:
    """What once waited for an approver and stands in one of these states, the newest first."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM proposals WHERE org = :org AND effect = 'destructive' AND state = ANY_TEXT(:states)"
        " ORDER BY id DESC LIMIT :limit",
        org=org,
        states=states,
        limit=limit,
    )
    return [_proposal(row) for row in rows]


async def count_open(tx: Tx, org: int, credential: str, now: int) -> int:
    """How many proposals of a credential still stand open."""
    row = await tx.one(
        "SELECT count(*) AS found FROM proposals WHERE org = :org AND state = ANY_TEXT(:open)"
        " AND expires_at > :now AND credential = :credential",
        org=org,
        open=OPEN,
        now=now,
        credential=credential,
    )
    return int(row["found"]) if row else 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, by whom, and how long it holds."""

    state: State
    by: str
    expires_at: int
    note: str = ""


async def decide(tx: Tx, proposal: Proposal, decision: Decision, now: int) -> bool:
    """Approve or reject what waits; False when it waits no more."""
    changed = await tx.run(
        "UPDATE proposals SET state = :state, decided_by = :by, decided_at = :now, expires_at = :expires_at,"
        " outcome = :note, arguments = CASE WHEN :state = 'approved' THEN arguments ELSE '' END,"
        " ended_at = CASE WHEN :state = 'approved' THEN NULL ELSE CAST(:now AS BIGINT) END"
        " WHERE org = :org AND id = :id AND state = 'pending_approval' AND expires_at > :now",
        state=decision.state,
        by=decision.by,
        note=decision.note,
        now=now,
        expires_at=decision.expires_at,
        org=proposal.org,
        id=proposal.id,
    )
    return changed == 1


async def claim(tx: Tx, proposal: Proposal, state: State, now: int) -> bool:
    """Use a proposal up; of all who try, one gets it."""
    changed = await tx.run(
        "UPDATE proposals SET state = :state, claimed_at = :now, arguments = '',"
        " ended_at = CASE WHEN :state = 'claimed' THEN NULL ELSE CAST(:now AS BIGINT) END"
        " WHERE org = :org AND id = :id AND state = ANY_TEXT(:ready) AND expires_at > :now",
        state=state,
        now=now,
        org=proposal.org,
        id=proposal.id,
        ready=READY,
    )
    return changed == 1


@dataclass(frozen=True, slots=True)
class End:
    """How a proposal ends."""

    state: State
    #: Only from one of these states.
    after: Sequence[State]
    outcome: str = ""


async def end(tx: Tx, proposal: Proposal, end: End, now: int) -> bool:
    """Write how a proposal ended; False when it stands otherwise by now."""
    changed = await tx.run(
        "UPDATE proposals SET state = :state, ended_at = :now, outcome = :outcome, arguments = ''"
        " WHERE org = :org AND id = :id AND state = ANY_TEXT(:after)",
        state=end.state,
        now=now,
        outcome=end.outcome,
        org=proposal.org,
        id=proposal.id,
        after=end.after,
    )
    return changed == 1


async def expire(tx: Tx, org: int, now: int) -> list[int]:
    """End what is past its time; tells which."""
    rows = await tx.all(
        "UPDATE proposals SET state = 'expired', ended_at = :now, arguments = ''"
        " WHERE org = :org AND state = ANY_TEXT(:open) AND expires_at <= :now RETURNING id",
        org=org,
        now=now,
        open=OPEN,
    )
    return sorted(int(row["id"]) for row in rows)


async def overdue(tx: Tx, org: int, now: int, limit: int) -> list[Proposal]:
    """What is past its time, or was claimed so long ago that whoever did must have crashed; the oldest first."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM proposals WHERE org = :org AND ((state = ANY_TEXT(:open) AND expires_at <= :now)"
        " OR (state = 'claimed' AND claimed_at <= :crashed)) ORDER BY id LIMIT :limit",
        org=org,
        open=OPEN,
        now=now,
        crashed=now - RUNS,
        limit=limit,
    )
    return [_proposal(row) for row in rows]


async def bank_gone(tx: Tx, org: int, bank: int) -> None:
    """Nothing can be changed any more in a bank that was deleted."""
    await tx.run(
        "UPDATE proposals SET state = 'revoked', arguments = '', outcome = 'The bank was deleted.'"
        " WHERE org = :org AND bank = :bank AND state = ANY_TEXT(:open)",
        org=org,
        bank=bank,
        open=OPEN,
    )
