"""What banks hold, counted for a look at all of them at once: one statement each, whatever their number."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from keepsake.core.clock import DAY, SECOND
from keepsake.core.ids import COUNTER_BITS, EPOCH, NODE_BITS
from keepsake.core.models import Kind
from keepsake.store.engine import Tx

#: Weeks whose growth is told, and days whose tokens are.
WEEKS, DAYS = 12, 7
_SHIFT = NODE_BITS + COUNTER_BITS
_WEEK = (7 * DAY // SECOND) << _SHIFT
_EVER = 1 << 62
_KINDS = ", ".join(f"('{kind}')" for kind in get_args(Kind))
_NUMBERS = ", ".join(f"({n})" for n in range(WEEKS))


@dataclass(frozen=True, slots=True)
class Learned:
    """How many memories of a kind that still hold a bank learned in a week; the first week has all before it, too."""

    bank: int
    kind: str
    week: int
    held: int


async def growth(tx: Tx, org: int, banks: Sequence[int], now: int) -> list[Learned]:
    """What banks hold by kind and by the week they learned it; ids tell the time, so that an index is enough."""
    rows = await tx.all(
        # Ranges of one index: grouping by week would sort every memory. Told apart, or it would be counted twice.
        "WITH counted AS MATERIALIZED (SELECT b.bank AS bank, k.column1 AS kind, w.column1 AS week,"
        " (SELECT count(*) FROM memories m"
        " WHERE m.org = b.org AND m.bank = b.bank AND m.kind = k.column1 AND m.superseded_at IS NULL"
        " AND m.state = 'live' AND m.id >= CASE WHEN w.column1 = 0 THEN 0"
        " ELSE CAST(:first AS BIGINT) + w.column1 * CAST(:week AS BIGINT) END"
        f" AND m.id < CASE WHEN w.column1 = {WEEKS - 1} THEN CAST(:ever AS BIGINT)"
        " ELSE CAST(:first AS BIGINT) + (w.column1 + 1) * CAST(:week AS BIGINT) END) AS held"
        f" FROM banks b, (VALUES {_KINDS}) AS k, (VALUES {_NUMBERS}) AS w"
        " WHERE b.org = :org AND b.bank = ANY_INT(:banks)) SELECT bank, kind, week, held FROM counted WHERE held > 0",
        org=org,
        banks=list(banks),
        first=(((now // SECOND) - EPOCH) << _SHIFT) - WEEKS * _WEEK,
        week=_WEEK,
        ever=_EVER,
    )
    return [Learned(row["bank"], row["kind"], int(row["week"]), int(row["held"])) for row in rows]


@dataclass(frozen=True, slots=True)
class Last:
    """What a bank learned last."""

    bank: int
    learned_at: int
    author: str


async def last(tx: Tx, org: int, banks: Sequence[int]) -> dict[int, Last]:
    """When banks last learned something, and from whom; ids are in the order of time."""
    # In two questions: joined, PostgreSQL would read every memory.
    newest = await tx.all(
        "SELECT (SELECT max(n.id) FROM memories n WHERE n.org = b.org AND n.bank = b.bank) AS id FROM banks b"
        " WHERE b.org = :org AND b.bank = ANY_INT(:banks)",
        org=org,
        banks=list(banks),
    )
    rows = await tx.all(
        "SELECT bank, learned_at, author FROM memories WHERE org = :org AND bank = ANY_INT(:banks)"
        " AND id = ANY_INT(:ids)",
        org=org,
        banks=list(banks),
        ids=[row["id"] for row in newest if row["id"] is not None],
    )
    return {row["bank"]: Last(row["bank"], int(row["learned_at"]), row["author"]) for row in rows}


async def at_odds(tx: Tx, org: int, banks: Sequence[int]) -> dict[int, int]:
    """How many conflicts of banks wait to be settled."""
    rows = await tx.all(
        "SELECT bank, count(*) AS held FROM conflicts WHERE org = :org AND bank = ANY_INT(:banks) AND state = 'open'"
        " GROUP BY bank",
        org=org,
        banks=list(banks),
    )
    return {row["bank"]: int(row["held"]) for row in rows}


async def down(tx: Tx, org: int, banks: Sequence[int]) -> dict[int, int]:
    """How many incidents of banks are open."""
    rows = await tx.all(
        "SELECT bank, count(*) AS held FROM incidents WHERE org = :org AND bank = ANY_INT(:banks)"
        " AND resolved_at IS NULL GROUP BY bank",
        org=org,
        banks=list(banks),
    )
    return {row["bank"]: int(row["held"]) for row in rows}


async def spent(tx: Tx, org: int, since: int, principal: str | None) -> dict[int, int]:
    """Tokens spent by day from a moment on, everyone's or one principal's."""
    whose = "" if principal is None else " AND principal = :principal"
    rows = await tx.all(
        f"SELECT (at - :since) / {DAY} AS day, sum(tokens_in + tokens_out) AS tokens FROM usage"
        f" WHERE org = :org AND at >= :since{whose} GROUP BY 1",
        **({"org": org, "since": since} if principal is None else {"org": org, "since": since, "principal": principal}),
    )
    return {int(row["day"]): int(row["tokens"]) for row in rows}


async def handed(tx: Tx, now: int, limit: int) -> dict[int, int]:
    """The memories that were handed out lately, to whomever, each with until when that is known; the last ones."""
    rows = await tx.all(
        "SELECT memory, max(expires_at) AS until FROM handed_out WHERE memory <> 0 AND expires_at > :now"
        " GROUP BY memory ORDER BY until DESC, memory DESC LIMIT :limit",
        now=now,
        limit=limit,
    )
    return {row["memory"]: int(row["until"]) for row in rows}


async def worth(tx: Tx, org: int, banks: Sequence[int], ids: Sequence[int]) -> dict[int, int]:
    """What memories had cost to find out, beyond what they cost to read; those that cost no more are left out."""
    rows = await tx.all(
        "SELECT m.id AS id, m.tokens - length(m.text) / 4 AS saved FROM memories m WHERE m.org = :org"
        " AND m.bank = ANY_INT(:banks) AND m.id = ANY_INT(:ids) AND m.tokens > length(m.text) / 4",
        org=org,
        banks=list(banks),
        ids=list(ids),
    )
    return {row["id"]: int(row["saved"]) for row in rows}
