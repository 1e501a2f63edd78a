"""Anomalies: as people see them, and as the background finds them in what checks measured."""

from collections.abc import Sequence

from pydantic import Field

from keepsake.context import App, Ctx
from keepsake.core import anomaly, clock
from keepsake.core.anomaly import Metric, Verdict
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.store import anomalies, check_results
from keepsake.store.checks import Check
from keepsake.store.engine import Tx

UNITS: dict[Metric, str] = {"latency": "ms", "errors": "share of runs"}


class Anomaly(Result):
    """An episode in which a check was unlike its own history."""

    id: str = Field(description="Id of the anomaly.")
    check: str = Field(description="Name of the check.")
    metric: Metric = Field(description="latency or errors.")
    unit: str = Field(description="Unit of the three numbers that follow.")
    value: float = Field(
        description="Median latency of the latest runs, or the share of them that failed, at its worst."
    )
    expected: float = Field(description="Median of the history it was held against.")
    spread: float = Field(description="How far that history strays from its median (MAD), as a standard deviation.")
    deviations: float = Field(description="How many spreads the value is from what was expected.")
    samples: int = Field(description="Runs that the value was made of.")
    history: int = Field(description="Hours of history that it was held against.")
    season: str = Field(description="Which hours those are: the same of the week, of the day, or all.")
    state: str = Field(description="open while it goes on, then ended.")
    started_at: str = Field(description="When it was first seen, ISO 8601.")
    last_at: str = Field(description="When it was last seen, ISO 8601.")
    ended_at: str | None = Field(None, description="When it was over, ISO 8601.")


class Anomalies(Result):
    """Anomalies, newest first."""

    anomalies: list[Anomaly] = Field(description="Newest first.")
    total: int = Field(description="How many there are in all.")


class ListAnomalies(InBank):
    """Which anomalies."""

    open: bool | None = Field(None, description="Only those that go on, or only those that have ended.")
    check: Clean | None = Field(None, min_length=1, max_length=100, description="Only those of the check of this name.")
    limit: int = Field(20, ge=1, le=100, description="Maximum number of results.")
    offset: int = Field(0, ge=0, le=100_000, description="How many to skip.")


@operation("anomaly.list", effect=Effect.READ, scope="watch:read")
async def list_(ctx: Ctx, given: ListAnomalies) -> Anomalies:
    """List anomalies of latency and errors, newest first, each with the numbers that made it one."""

    async def body(tx: Tx) -> Anomalies:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return Anomalies(anomalies=[], total=0)
        page = anomalies.Page(ctx.org, bank.id, given.limit, given.offset, given.check, given.open)
        rows, total = await anomalies.listed(tx, page)
        return Anomalies(anomalies=[_shown(row) for row in rows], total=total)

    return await ctx.read(body)


def _shown(row: anomalies.Anomaly) -> Anomaly:
    # Latency is measured in microseconds and told in milliseconds.
    scale, digits = (1_000.0, 1) if row.metric == "latency" else (1.0, 4)
    return Anomaly(
        id=str(row.id),
        check=row.name,
        metric=row.metric,
        unit=UNITS[row.metric],
        value=round(row.value / scale, digits),
        expected=round(row.expected / scale, digits),
        spread=round(row.spread / scale, digits),
        deviations=round((row.value - row.expected) / row.spread, 1),
        samples=row.samples,
        history=row.history,
        season=row.season,
        state="open" if row.ended_at is None else "ended",
        started_at=clock.iso(row.started_at),
        last_at=clock.iso(row.last_at),
        ended_at=None if row.ended_at is None else clock.iso(row.ended_at),
    )


async def judge(app: App, org: int, bank: int, checks: Sequence[Check]) -> None:
    """Hold the latest runs of a bank's checks against their history; begins, goes on with or ends their anomalies."""
    now = app.now()

    async def read(tx: Tx) -> tuple[dict[int, list[Verdict]], list[anomalies.Anomaly]]:
        found = {check.id: await _verdicts(tx, check, now) for check in checks}
        return found, await anomalies.going_on(tx, org, bank, list(found))

    verdicts, going_on = await app.store.read(org, read)
    is_begun = any(verdict.begins for found in verdicts.values() for verdict in found)
    if is_begun or going_on:
        await app.store.write(org, lambda tx: _noted(tx, app, checks, verdicts, now))


async def _verdicts(tx: Tx, check: Check, now: int) -> list[Verdict]:
    since = now - anomaly.recent(check.every)
    samples = await check_results.since(tx, check.org, check.bank, [check.id], since)
    if len(samples.get(check.id, [])) < anomaly.LEAST:
        return []
    history = await check_results.history(tx, check.org, check.bank, check.id, now, anomaly.REACH)
    return anomaly.judged(samples[check.id], history, now)


async def _noted(tx: Tx, app: App, checks: Sequence[Check], verdicts: dict[int, list[Verdict]], now: int) -> None:
    org, bank = checks[0].org, checks[0].bank
    going_on = {(row.check_id, row.metric): row for row in await anomalies.going_on(tx, org, bank, list(verdicts))}
    for check in checks:
        for verdict in verdicts[check.id]:
            row = going_on.pop((check.id, verdict.metric), None)
            if row is not None and verdict.lasts:
                await anomalies.go_on(tx, row, verdict, now)
            elif row is not None:
                await anomalies.end(tx, org, bank, [row.id], now)
            elif verdict.begins:
                await anomalies.begin(tx, _begun(app, check, verdict, now))


def _begun(app: App, check: Check, verdict: Verdict, now: int) -> anomalies.Anomaly:
    return anomalies.Anomaly(
        org=check.org,
        bank=check.bank,
        id=app.store.new_id(),
        check_id=check.id,
        name=check.name,
        metric=verdict.metric,
        value=verdict.value,
        expected=verdict.expected,
        spread=verdict.spread,
        samples=verdict.samples,
        history=verdict.history,
        season=verdict.season,
        started_at=now,
        last_at=now,
    )
