"""What the language model spent: a row for every call, and budgets that hold under concurrency."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from keepsake.store.engine import Tx, Value


@dataclass(frozen=True, slots=True)
class Hold:
    """Tokens set aside for one call, before it is known what it costs."""

    org: int
    #: A principal, or '' for the background.
    holder: str
    period: str
    tokens: int

    @property
    def key(self) -> Mapping[str, Value]:
        """The row it stands on."""
        return {"org": self.org, "holder": self.holder, "period": self.period}


_KEY = "org = :org AND holder = :holder AND period = :period"


async def reserve(tx: Tx, hold: Hold, limit: int) -> bool:
    """Set tokens aside; False when less than that is left of the budget."""
    await tx.run(
        "INSERT INTO budgets (org, holder, period, reserved, spent) VALUES (:org, :holder, :period, 0, 0)"
        " ON CONFLICT (org, holder, period) DO NOTHING",
        **hold.key,
    )
    changed = await tx.run(
        f"UPDATE budgets SET reserved = reserved + :tokens WHERE {_KEY} AND reserved + spent + :tokens <= :limit",
        tokens=hold.tokens,
        limit=limit,
        **hold.key,
    )
    return changed == 1


async def settle(tx: Tx, hold: Hold, spent: int) -> None:
    """Put what was really spent in the place of what was set aside."""
    await tx.run(
        f"UPDATE budgets SET reserved = reserved - :tokens, spent = spent + :spent WHERE {_KEY}",
        tokens=hold.tokens,
        spent=spent,
        **hold.key,
    )


@dataclass(frozen=True, slots=True)
class Usage:
    """One call of a model."""

    org: int
    bank: int
    id: int
    at: int
    principal: str
    operation: str
    model: str
    tokens_in: int
    tokens_out: int


_NAMES = tuple(Usage.__dataclass_fields__)


async def record(tx: Tx, usage: Usage) -> None:
    """Write down a call."""
    await tx.run(
        f"INSERT INTO usage ({', '.join(_NAMES)}) VALUES ({', '.join(':' + name for name in _NAMES)})", **asdict(usage)
    )


async def recorded(tx: Tx, org: int, since: int) -> list[Usage]:
    """The calls of an org since a moment, oldest first."""
    rows = await tx.all(
        f"SELECT {', '.join(_NAMES)} FROM usage WHERE org = :org AND at >= :since ORDER BY at, id", org=org, since=since
    )
    return [Usage(**{name: row[name] for name in _NAMES}) for row in rows]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a budget stands."""

    reserved: int
    spent: int


async def standing(tx: Tx, org: int, holder: str, period: str) -> Standing:
    """What is set aside and spent of a budget."""
    row = await tx.one(f"SELECT reserved, spent FROM budgets WHERE {_KEY}", org=org, holder=holder, period=period)
    return Standing(int(row["reserved"]), int(row["spent"])) if row else Standing(0, 0)
