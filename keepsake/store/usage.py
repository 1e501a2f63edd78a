"""What the language model spent: a row for every call, and budgets that hold under concurrency."""

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from keepsake.core.clock import DAY
from keepsake.store.engine import Tx, Value


@dataclass(frozen=True, slots=True)
class Hold:
    """Tokens set aside for one call, before it is known what it costs."""

    org: int
    #: A principal, or '' for the background.
    holder: str
    period: str
    tokens: int
    #: What of them is charged when nobody tells what the call cost, because who made it died.
    sent: int
    expires_at: int
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def key(self) -> Mapping[str, Value]:
        """The row it stands on."""
        return {"org": self.org, "holder": self.holder, "period": self.period}


_KEY = "org = :org AND holder = :holder AND period = :period"


async def reserve(tx: Tx, hold: Hold, limit: int, now: int) -> bool:
    """Set tokens aside; False when less than that is left of the budget."""
    await tx.run(
        "INSERT INTO budgets (org, holder, period, reserved, spent) VALUES (:org, :holder, :period, 0, 0)"
        " ON CONFLICT (org, holder, period) DO NOTHING",
        **hold.key,
    )
    await _release(tx, hold, now)
    changed = await tx.run(
        f"UPDATE budgets SET reserved = reserved + :tokens WHERE {_KEY} AND reserved + spent + :tokens <= :limit",
        tokens=hold.tokens,
        limit=limit,
        **hold.key,
    )
    if changed:
        await tx.run(
            "INSERT INTO holds (org, id, holder, period, tokens, sent, expires_at)"
            " VALUES (:org, :id, :holder, :period, :tokens, :sent, :expires_at)",
            **asdict(hold),
        )
    return changed == 1


async def _release(tx: Tx, hold: Hold, now: int) -> None:
    """Give back what callers that died had set aside, but for what they had surely sent."""
    gone = await tx.all(
        f"DELETE FROM holds WHERE {_KEY} AND expires_at <= :now RETURNING tokens, sent", now=now, **hold.key
    )
    if gone:
        await _move(tx, hold, sum(row["tokens"] for row in gone), sum(row["sent"] for row in gone))


async def settle(tx: Tx, hold: Hold, spent: int) -> None:
    """Put what was really spent in the place of what was set aside."""
    held = await tx.run("DELETE FROM holds WHERE org = :org AND id = :id", org=hold.org, id=hold.id)
    if held:
        await _move(tx, hold, hold.tokens, spent)
    else:
        await _move(tx, hold, 0, max(0, spent - hold.sent))


async def _move(tx: Tx, hold: Hold, tokens: int, spent: int) -> None:
    await tx.run(
        f"UPDATE budgets SET reserved = reserved - :tokens, spent = spent + :spent WHERE {_KEY}",
        tokens=tokens,
        spent=spent,
        **hold.key,
    )


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request spent on a model, all its calls together; the background writes a row for each."""

    org: int
    bank: int
    id: int
    at: int
    principal: str
    operation: str
    model: str
    tokens_in: int
    tokens_out: int
    #: mcp, web or cli; empty for the background.
    source: str = ""


_NAMES = tuple(Usage.__dataclass_fields__)


async def record(tx: Tx, usage: Usage) -> None:
    """Write down a call; one more under the same id is added to it."""
    await tx.run(
        f"INSERT INTO usage ({', '.join(_NAMES)}) VALUES ({', '.join(':' + name for name in _NAMES)})"
        " ON CONFLICT (org, bank, id) DO UPDATE SET tokens_in = usage.tokens_in + excluded.tokens_in,"
        " tokens_out = usage.tokens_out + excluded.tokens_out",
        **asdict(usage),
    )


async def recorded(tx: Tx, org: int, since: int) -> list[Usage]:
    """The calls of an org since a moment, oldest first."""
    rows = await tx.all(
        f"SELECT {', '.join(_NAMES)} FROM usage WHERE org = :org AND at >= :since ORDER BY at, id", org=org, since=since
    )
    return [Usage(**{name: row[name] for name in _NAMES}) for row in rows]


async def get(tx: Tx, org: int, bank: int, id: int) -> Usage | None:
    """What one request has spent."""
    row = await tx.one(
        f"SELECT {', '.join(_NAMES)} FROM usage WHERE org = :org AND bank = :bank AND id = :id",
        org=org,
        bank=bank,
        id=id,
    )
    return Usage(**{name: row[name] for name in _NAMES}) if row else None


async def latest(tx: Tx, org: int, principal: str, limit: int) -> list[Usage]:
    """The last calls of a principal, newest first."""
    rows = await tx.all(
        f"SELECT {', '.join(_NAMES)} FROM usage WHERE org = :org AND principal = :principal"
        " ORDER BY at DESC, id DESC LIMIT :limit",
        org=org,
        principal=principal,
        limit=limit,
    )
    return [Usage(**{name: row[name] for name in _NAMES}) for row in rows]


@dataclass(frozen=True, slots=True)
class Share:
    """What one kind of operation spent in a week."""

    #: Weeks since the first one that was asked for.
    week: int
    operation: str
    tokens: int
    calls: int


async def by_week(tx: Tx, org: int, since: int, principal: str | None) -> list[Share]:
    """What was spent in each week from a moment on, by operation; of everyone, or of one principal."""
    whose = "" if principal is None else " AND principal = :principal"
    rows = await tx.all(
        f"SELECT (at - :since) / {7 * DAY} AS week, operation, sum(tokens_in + tokens_out) AS tokens, count(*) AS calls"
        f" FROM usage WHERE org = :org AND at >= :since{whose} GROUP BY 1, 2 ORDER BY 1, 2",
        **({"org": org, "since": since} if principal is None else {"org": org, "since": since, "principal": principal}),
    )
    return [Share(int(row["week"]), row["operation"], int(row["tokens"]), int(row["calls"])) for row in rows]


@dataclass(frozen=True, slots=True)
class Spender:
    """Who spent how much in a while; '' is the background."""

    principal: str
    tokens: int
    calls: int


async def spenders(tx: Tx, org: int, since: int, limit: int) -> list[Spender]:
    """Who spent most from a moment on."""
    rows = await tx.all(
        "SELECT principal, sum(tokens_in + tokens_out) AS tokens, count(*) AS calls FROM usage"
        " WHERE org = :org AND at >= :since GROUP BY principal ORDER BY tokens DESC, principal LIMIT :limit",
        org=org,
        since=since,
        limit=limit,
    )
    return [Spender(row["principal"], int(row["tokens"]), int(row["calls"])) for row in rows]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a budget stands."""

    reserved: int
    spent: int


async def standing(tx: Tx, org: int, holder: str, period: str) -> Standing:
    """What is set aside and spent of a budget."""
    row = await tx.one(f"SELECT reserved, spent FROM budgets WHERE {_KEY}", org=org, holder=holder, period=period)
    return Standing(int(row["reserved"]), int(row["spent"])) if row else Standing(0, 0)
