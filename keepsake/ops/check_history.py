"""How a check did over time: its latency beside what is normal for it, and the last day of every check at a glance."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import anomaly, clock
from keepsake.core.anomaly import Hour, Sample
from keepsake.core.clock import DAY, HOUR, MINUTE, SECOND
from keepsake.core.errors import NotFound
from keepsake.core.models import Result
from keepsake.core.operation import Effect, operation
from keepsake.ops import banks as bank_ops
from keepsake.ops import checks as check_ops
from keepsake.ops.checks import CheckStatus, CheckView, ListChecks, OneCheck
from keepsake.store import banks, check_results, checks
from keepsake.store.checks import Check
from keepsake.store.engine import Tx

#: Points that a period is told in at most, and runs that are looked at one by one.
MOST_POINTS, MOST_RUNS = 144, 5_000
MONTH = 30 * DAY


class Point(Result):
    """A stretch of time of a check."""

    at: str = Field(description="When it begins, ISO 8601.")
    runs: int = Field(description="Runs in it.")
    failures: int = Field(description="Runs that failed.")
    latency_ms: float | None = Field(None, description="Median latency of the runs that succeeded.")
    slowest_ms: float | None = Field(None, description="The slowest of them; absent where only hours are kept.")
    low_ms: float | None = Field(None, description="Lower end of what is normal then, by hours like it before.")
    high_ms: float | None = Field(None, description="Upper end of what is normal then.")


class CheckHistory(Result):
    """How a check did in a period."""

    check: CheckView = Field(description="The check as it was added.")
    status: CheckStatus = Field(description="How it stands.")
    step_s: float = Field(description="Seconds from one point to the next.")
    uptime: float | None = Field(None, description="Share of runs in the period that succeeded, 0 to 1.")
    points: list[Point] = Field(description="Oldest first; a stretch without a run has a point without latency.")


class GetHistory(OneCheck):
    """Which check, and how far back."""

    hours: int = Field(24, ge=1, le=4_320, description="How many hours back.")


@operation("check.history", effect=Effect.READ, scope="watch:read")
async def history(ctx: Ctx, given: GetHistory) -> CheckHistory:
    """Tell how a check did over time: latency, failures, and what was normal for it by its own history."""

    async def body(tx: Tx) -> CheckHistory:
        bank = await bank_ops.found(tx, ctx, given.bank)
        row = await checks.named(tx, ctx.org, bank.id, given.name) if bank else None
        if bank is None or row is None:
            raise NotFound(f"No check {given.name!r} in this bank. Use check.list to see the names.")
        return await _told(tx, ctx, bank, row, given.hours * HOUR)

    return await ctx.read(body)


@dataclass(frozen=True, slots=True)
class Measured:
    """A run, or an hour of them."""

    at: int
    runs: int
    failures: int
    latency: int | None


async def _told(tx: Tx, ctx: Ctx, bank: banks.Bank, row: Check, reach: int) -> CheckHistory:
    is_single = reach <= check_results.SAMPLES_FOR and reach // row.every <= MOST_RUNS
    step = _step(reach, row.every if is_single else HOUR)
    first = (ctx.now - reach) // step * step
    past = (await check_results.hours(tx, ctx.org, bank.id, [row.id], min(first, ctx.now - anomaly.REACH))).get(row.id)
    past = past or []
    if is_single:
        samples = await check_results.since(tx, ctx.org, bank.id, [row.id], first)
        measured = [_run(sample) for sample in samples.get(row.id, [])]
    else:
        measured = [Measured(one.hour, one.runs, one.failures, one.latency) for one in past if one.hour >= first]
    starts = range(first, ctx.now + 1, step)
    is_timed = row.kind not in check_ops.TARGETLESS
    normal = anomaly.normal(past, {at // HOUR * HOUR for at in starts}) if is_timed and step <= HOUR else {}
    [status] = await check_ops.standing(tx, ctx, bank, [row])
    runs, failures = sum(one.runs for one in measured), sum(one.failures for one in measured)
    return CheckHistory(
        check=check_ops.view(row),
        status=status,
        step_s=step / SECOND,
        uptime=check_ops.share((runs, failures)),
        points=_points(measured, starts, normal, is_timed),
    )


def _step(reach: int, least: int) -> int:
    """Whole minutes, and no more points than a picture can show."""
    return -(-max(reach // MOST_POINTS, least) // MINUTE) * MINUTE


def _run(sample: Sample) -> Measured:
    return Measured(sample.at, 1, int(not sample.ok), sample.latency if sample.ok else None)


def _points(
    measured: Iterable[Measured], starts: range, normal: dict[int, tuple[float, float]], is_timed: bool
) -> list[Point]:
    by_start: dict[int, list[Measured]] = {}
    for one in measured:
        by_start.setdefault((one.at - starts.start) // starts.step * starts.step + starts.start, []).append(one)
    return [_point(at, by_start.get(at, []), normal.get(at // HOUR * HOUR), is_timed) for at in starts]


def _point(at: int, found: Sequence[Measured], normal: tuple[float, float] | None, is_timed: bool) -> Point:
    latencies = [float(one.latency) for one in found if one.latency is not None] if is_timed else []
    # An hour has its median alone: which run of it was the slowest is not kept.
    is_single = all(one.runs == 1 for one in found)
    return Point(
        at=clock.iso(at),
        runs=sum(one.runs for one in found),
        failures=sum(one.failures for one in found),
        latency_ms=_ms(anomaly.median(latencies)) if latencies else None,
        slowest_ms=_ms(max(latencies)) if latencies and is_single else None,
        low_ms=_ms(normal[0]) if normal else None,
        high_ms=_ms(normal[1]) if normal else None,
    )


def _ms(microseconds: float) -> float:
    return round(microseconds / 1_000, 1)


class Trend(Result):
    """The last day of a check, and its month."""

    name: str = Field(description="Name of the check.")
    hours: list[float | None] = Field(
        description="Latency in ms by the hour, oldest first; the share of runs that succeeded where none is measured."
    )
    uptime_30d: float | None = Field(None, description="Share of runs that succeeded in the last 30 days, 0 to 1.")


class Trends(Result):
    """The last day of some checks."""

    trends: list[Trend] = Field(description="In the order of check.status.")


@operation("check.trends", effect=Effect.READ, scope="watch:read")
async def trends(ctx: Ctx, given: ListChecks) -> Trends:
    """Tell the last 24 hours of each check by the hour, and how much of the last 30 days it was up."""

    async def body(tx: Tx) -> Trends:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return Trends(trends=[])
        rows = await checks.listed(tx, ctx.org, bank.id, given.state, given.limit, given.offset)
        ids, first = [row.id for row in rows], ctx.now // HOUR * HOUR - DAY + HOUR
        hours = await check_results.hours(tx, ctx.org, bank.id, ids, first)
        shares = await check_results.shares(tx, ctx.org, bank.id, ids, ctx.now, MONTH)
        return Trends(trends=[_trend(row, hours.get(row.id, []), first, shares.get(row.id)) for row in rows])

    return await ctx.read(body)


def _trend(row: Check, hours: Sequence[Hour], first: int, shares: tuple[int, int] | None) -> Trend:
    is_timed = row.kind not in check_ops.TARGETLESS
    by_hour = {one.hour: _value(one, is_timed) for one in hours}
    told = [by_hour.get(at) for at in range(first, first + DAY, HOUR)]
    return Trend(name=row.name, hours=told, uptime_30d=check_ops.share(shares))


def _value(hour: Hour, is_timed: bool) -> float | None:
    if not is_timed:
        return round(1 - hour.failures / hour.runs, 3)
    return None if hour.latency is None else _ms(hour.latency)
