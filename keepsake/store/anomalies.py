"""Anomalies: one for each episode of a check's latency or errors, with the numbers that made it one."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.core.anomaly import Metric, Season, Verdict
from keepsake.core.clock import DAY
from keepsake.store.engine import Row, Tx, Value

#: How long anomalies that have ended are kept.
KEPT_FOR = 180 * DAY


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One anomaly as stored."""

    org: int
    bank: int
    id: int
    check_id: int
    name: str
    metric: Metric
    #: The farthest that it went, beside what was expected then.
    value: float
    expected: float
    spread: float
    samples: int
    history: int
    season: Season
    started_at: int
    last_at: int
    ended_at: int | None = None


_NAMES = tuple(Anomaly.__dataclass_fields__)
_COLUMNS = ", ".join(_NAMES)


def _anomaly(row: Row) -> Anomaly:
    return Anomaly(**{name: row[name] for name in _NAMES})


async def begin(tx: Tx, anomaly: Anomaly) -> bool:
    """Write an anomaly; False when one of the same check and metric goes on already."""
    values: dict[str, Value] = {name: getattr(anomaly, name) for name in _NAMES}
    row = await tx.one(
        f"INSERT INTO anomalies ({_COLUMNS}) VALUES ({', '.join(':' + name for name in _NAMES)})"
        " ON CONFLICT (org, bank, check_id, metric) WHERE ended_at IS NULL DO NOTHING RETURNING id",
        **values,
    )
    return row is not None


async def going_on(tx: Tx, org: int, bank: int, checks: Sequence[int]) -> list[Anomaly]:
    """The anomalies of some checks that have not ended."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM anomalies WHERE org = :org AND bank = :bank AND check_id = ANY_INT(:checks)"
        " AND ended_at IS NULL",
        org=org,
        bank=bank,
        checks=list(checks),
    )
    return [_anomaly(row) for row in rows]


async def go_on(tx: Tx, anomaly: Anomaly, verdict: Verdict, at: int) -> None:
    """Note that an anomaly lasts, and how far it went."""
    is_worse = verdict.value > anomaly.value
    told = verdict if is_worse else anomaly
    await tx.run(
        "UPDATE anomalies SET last_at = :at, value = :value, expected = :expected, spread = :spread,"
        " samples = :samples, history = :history, season = :season"
        " WHERE org = :org AND bank = :bank AND id = :id AND ended_at IS NULL",
        org=anomaly.org,
        bank=anomaly.bank,
        id=anomaly.id,
        at=at,
        value=told.value,
        expected=told.expected,
        spread=told.spread,
        samples=told.samples,
        history=told.history,
        season=told.season,
    )


async def end(tx: Tx, org: int, bank: int, ids: Sequence[int], at: int) -> None:
    """Note that anomalies are over."""
    await tx.run(
        "UPDATE anomalies SET ended_at = :at WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)"
        " AND ended_at IS NULL",
        org=org,
        bank=bank,
        ids=list(ids),
        at=at,
    )


@dataclass(frozen=True, slots=True)
class Page:
    """Which anomalies of a bank, newest first."""

    org: int
    bank: int
    limit: int
    offset: int = 0
    #: The check's name as it was then.
    name: str | None = None
    #: Only those that go on, or only those that have ended.
    is_open: bool | None = None


async def listed(tx: Tx, page: Page) -> tuple[list[Anomaly], int]:
    """A page of anomalies, newest first, and how many there are."""
    where, values = "org = :org AND bank = :bank", dict[str, Value](org=page.org, bank=page.bank)
    if page.is_open is not None:
        where += f" AND ended_at IS {'NULL' if page.is_open else 'NOT NULL'}"
    if page.name is not None:
        where += " AND name = :name"
        values["name"] = page.name
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM anomalies WHERE {where} ORDER BY started_at DESC, id DESC LIMIT :limit OFFSET :offset",
        **values,
        limit=page.limit,
        offset=page.offset,
    )
    counted = await tx.one(f"SELECT count(*) AS held FROM anomalies WHERE {where}", **values)
    return [_anomaly(row) for row in rows], int(counted["held"]) if counted else 0


async def prune(tx: Tx, org: int, bank: int, now: int) -> None:
    """Drop what ended long ago."""
    await tx.run(
        "DELETE FROM anomalies WHERE org = :org AND bank = :bank AND ended_at < :before",
        org=org,
        bank=bank,
        before=now - KEPT_FOR,
    )
