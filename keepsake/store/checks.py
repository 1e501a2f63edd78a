"""Checks: what is watched, when each runs next, and who runs it."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from keepsake.core.clock import SECOND
from keepsake.core.hysteresis import Limits, Standing, State
from keepsake.store.engine import Row, Tx, Value
from keepsake.store.store import HOLDER

Kind = Literal["http", "tcp", "dns", "postgres", "redis", "heartbeat", "self"]
#: What whoever claims a check may take beyond the tries themselves, before another takes it over.
LEASE = 60 * SECOND
#: The pause before a check is tried again within one run.
PAUSE = 2 * SECOND
#: Never: a check that was removed.
NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Expect:
    """What an answer must be like."""

    #: Statuses from this one to that one.
    status: tuple[int, int] = (200, 399)
    contains: str = ""
    #: Days that a certificate must still be valid.
    tls_days: int = 0
    #: Addresses of which a name must have one.
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One check as stored."""

    org: int
    bank: int
    id: int
    name: str
    kind: Kind
    target: str
    every: int
    timeout: int
    created_at: int
    due_at: int
    wake_at: int
    author: str
    expect: Expect = field(default_factory=Expect)
    #: Whether it may reach private addresses.
    anywhere: bool = False
    grace: int = 0
    retries: int = 1
    open_after: int = 2
    resolve_after: int = 2
    token: str = field(default="", repr=False)
    removed_at: int | None = None
    run: int = 0
    holder: str = ""
    state: State = "new"
    since: int = 0
    streak: int = 0
    flaps: int = 0
    last_at: int | None = None
    latency: int = 0
    reason: str = ""
    rolled_to: int = 0

    @property
    def standing(self) -> Standing:
        """How it stands."""
        return Standing(self.state, self.streak, self.since)

    @property
    def limits(self) -> Limits:
        """When it turns."""
        return Limits(self.open_after, self.resolve_after, self.flaps)


_NAMES = tuple(Check.__dataclass_fields__)
_COLUMNS = ", ".join(_NAMES)
_OF = "org = :org AND bank = :bank AND id = :id"


def _check(row: Row) -> Check:
    told = json.loads(row["expect"])
    expect = Expect(
        status=tuple(told.get("status", (200, 399))),
        contains=told.get("contains", ""),
        tls_days=told.get("tls_days", 0),
        addresses=tuple(told.get("addresses", ())),
    )
    return Check(**{name: row[name] for name in _NAMES} | {"expect": expect, "anywhere": bool(row["anywhere"])})


def _expected(expect: Expect) -> str:
    told = {"status": expect.status, "contains": expect.contains}
    return json.dumps(told | {"tls_days": expect.tls_days, "addresses": expect.addresses}, ensure_ascii=False)


async def insert(tx: Tx, check: Check) -> bool:
    """Write a new check; False when its name is taken."""
    values: dict[str, Value] = {name: getattr(check, name) for name in _NAMES}
    values |= {"expect": _expected(check.expect), "anywhere": int(check.anywhere)}
    row = await tx.one(
        f"INSERT INTO checks ({_COLUMNS}) VALUES ({', '.join(':' + name for name in _NAMES)})"
        " ON CONFLICT (org, bank, name) WHERE removed_at IS NULL DO NOTHING RETURNING id",
        **values,
    )
    return row is not None


async def named(tx: Tx, org: int, bank: int, name: str) -> Check | None:
    """A check of a bank by its name."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM checks WHERE org = :org AND bank = :bank AND name = :name AND removed_at IS NULL",
        org=org,
        bank=bank,
        name=name,
    )
    return _check(row) if row else None


async def listed(tx: Tx, org: int, bank: int, state: State | None, limit: int, offset: int = 0) -> list[Check]:
    """The checks of a bank: those that are down first, then by name."""
    narrowed = " AND state = :state" if state else ""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM checks WHERE org = :org AND bank = :bank AND removed_at IS NULL{narrowed}"
        " ORDER BY CASE state WHEN 'down' THEN 0 ELSE 1 END, name LIMIT :limit OFFSET :offset",
        **{"org": org, "bank": bank, "limit": limit, "offset": offset, **({"state": state} if state else {})},
    )
    return [_check(row) for row in rows]


async def counts(tx: Tx, org: int, bank: int) -> dict[State, int]:
    """How many checks of a bank are in each state."""
    rows = await tx.all(
        "SELECT state, count(*) AS held FROM checks WHERE org = :org AND bank = :bank AND removed_at IS NULL"
        " GROUP BY state",
        org=org,
        bank=bank,
    )
    return {row["state"]: int(row["held"]) for row in rows}


async def remove(tx: Tx, check: Check, now: int) -> bool:
    """Stop a check; what it found is kept as long as it would have been."""
    changed = await tx.run(
        f"UPDATE checks SET removed_at = :now, wake_at = :never, token = '', run = run + 1, holder = ''"
        f" WHERE {_OF} AND removed_at IS NULL",
        org=check.org,
        bank=check.bank,
        id=check.id,
        now=now,
        never=NEVER,
    )
    return changed == 1


async def next_wake(tx: Tx) -> int | None:
    """When someone should look next, over all orgs; None when nothing is watched."""
    row = await tx.one("SELECT wake_at FROM checks WHERE removed_at IS NULL ORDER BY wake_at LIMIT 1")
    return int(row["wake_at"]) if row else None


async def claim(tx: Tx, now: int, most: int) -> list[Check]:
    """Take what is due, or what a dead worker held, of any org; longest waiting first."""
    # The condition stands twice: PostgreSQL asks the outer one again of a row that changed while it waited for it.
    rows = await tx.all(
        "UPDATE checks SET run = run + 1, holder = :holder,"
        " wake_at = (retries + 1) * (timeout + :pause) + :until"
        " WHERE (org, bank, id) IN"
        " (SELECT org, bank, id FROM checks WHERE wake_at <= :now ORDER BY wake_at LIMIT :most)"
        f" AND wake_at <= :now RETURNING {_COLUMNS}",
        holder=f"{HOLDER}:{secrets.token_hex(4)}",
        now=now,
        until=now + LEASE,
        pause=PAUSE,
        most=most,
    )
    return [_check(row) for row in rows]


async def bring_back(tx: Tx, now: int) -> int:
    """Wake what a clock that was set back has put far into the future."""
    # A heartbeat is late when it is due, so it gets all its time again.
    anew = "CASE WHEN kind = 'heartbeat' THEN every + grace + :now ELSE :now END"
    return await tx.run(
        f"UPDATE checks SET due_at = {anew}, wake_at = {anew} WHERE removed_at IS NULL"
        " AND wake_at > every + every + grace + (retries + 1) * (timeout + :pause) + :until",
        now=now,
        until=now + LEASE,
        pause=PAUSE,
    )


@dataclass(frozen=True, slots=True)
class Ran:
    """How one claimed run ended."""

    check: Check
    ok: bool
    latency: int
    reason: str
    at: int
    #: When it is due next.
    due_at: int


_HELD = f"{_OF} AND run = :run AND holder = :holder"
_AFTER = (
    f"UPDATE checks SET due_at = :due_at, wake_at = :due_at, holder = '', state = :state, since = :since,"
    f" streak = :streak, last_at = :at, latency = :latency, reason = :reason WHERE {_HELD}"
)
# Only what is still this holder's leaves a sample, and each due time leaves one.
_SAMPLE = (
    "INSERT INTO check_results (org, bank, check_id, at, ok, latency)"
    f" SELECT org, bank, id, due_at, CAST(:ok AS BIGINT), CAST(:latency AS BIGINT) FROM checks WHERE {_HELD}"
    " ON CONFLICT (org, bank, check_id, at) DO NOTHING"
)


async def settle(tx: Tx, runs: Sequence[tuple[Ran, Standing]]) -> None:
    """Write how runs ended; those that are no longer their holder's change nothing."""
    held = [{**_values(ran), "ok": int(ran.ok), "latency": ran.latency} for ran, _ in runs]
    await tx.many(_SAMPLE, held)
    after = [
        {
            **_values(ran),
            "due_at": ran.due_at,
            "state": standing.state,
            "since": standing.since,
            "streak": standing.streak,
            "at": ran.at,
            "latency": ran.latency,
            "reason": ran.reason,
        }
        for ran, standing in runs
    ]
    await tx.many(_AFTER, after)


def _values(ran: Ran) -> dict[str, Value]:
    check = ran.check
    return {"org": check.org, "bank": check.bank, "id": check.id, "run": check.run, "holder": check.holder}


async def holds(tx: Tx, check: Check) -> bool:
    """Whether a claimed check is still its holder's, locked until the end of the transaction."""
    changed = await tx.run(
        f"UPDATE checks SET holder = holder WHERE {_HELD}",
        org=check.org,
        bank=check.bank,
        id=check.id,
        run=check.run,
        holder=check.holder,
    )
    return changed == 1


async def release(tx: Tx, held: Sequence[Check]) -> None:
    """Give claimed checks back, to be run by whoever comes next."""
    rows: list[dict[str, Value]] = [
        {"org": check.org, "bank": check.bank, "id": check.id, "run": check.run, "holder": check.holder}
        for check in held
    ]
    await tx.many(f"UPDATE checks SET wake_at = due_at, holder = '' WHERE {_HELD}", rows)


async def flapped(tx: Tx, check: Check, flaps: int) -> None:
    """Note how often the check's incident came back."""
    await tx.run(
        f"UPDATE checks SET flaps = :flaps WHERE {_OF}", org=check.org, bank=check.bank, id=check.id, flaps=flaps
    )


async def of_token(tx: Tx, token: str, now: int) -> Check | None:
    """Claim the heartbeat check that a token's hash belongs to, unless it was heard a moment ago."""
    row = await tx.one(
        "UPDATE checks SET run = run + 1, holder = :holder, due_at = :now, wake_at = :until, last_at = :now,"
        " reason = ''"
        " WHERE token = :token AND token <> ''"
        " AND (last_at IS NULL OR last_at <= :before OR last_at > :now OR reason <> '')"
        f" RETURNING {_COLUMNS}",
        token=token,
        holder=f"{HOLDER}:{secrets.token_hex(4)}",
        now=now,
        until=now + LEASE,
        before=now - SECOND,
    )
    return _check(row) if row else None


async def knows_token(tx: Tx, token: str) -> bool:
    """Whether a token's hash is that of a heartbeat check."""
    return await tx.one("SELECT 1 AS one FROM checks WHERE token = :token AND token <> ''", token=token) is not None
