"""Latency over time as a picture: what was measured, what is normal for it, what was unusual and what was down."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan

from markupsafe import Markup

from keepsake.core import clock
from keepsake.core.clock import HOUR, SECOND
from keepsake.ops.anomalies import Anomaly
from keepsake.ops.check_history import CheckHistory, Point
from keepsake.ops.incidents import Incident
from keepsake.surfaces.pages import charts, words
from keepsake.surfaces.pages.charts import Also, Frame, Mark

#: Rings that carry their number; more would lie on each other.
TOLD_MARKS = 3
#: Rows of the table beside the picture, beyond what failed or was unusual.
PLAIN_ROWS = 24
#: Runs that an anomaly was judged by lie so far before it was seen.
BEFORE = HOUR // 2


@dataclass(frozen=True, slots=True)
class Row:
    """A stretch of time as the table beside the picture shows it."""

    point: Point
    told: str


@dataclass(frozen=True, slots=True)
class Period:
    """A period of a check, and what happened in it."""

    history: CheckHistory
    hours: int
    incidents: Sequence[Incident]
    anomalies: Sequence[Anomaly]

    @property
    def points(self) -> list[Point]:
        """What was measured, oldest first."""
        return self.history.points

    @property
    def every(self) -> str:
        """How far one point is from the next."""
        step = int(self.history.step_s * SECOND)
        return {HOUR: "hour", HOUR // 60: "minute"}.get(step, words.span(step))

    @property
    def runs(self) -> int:
        """Runs in the period."""
        return sum(point.runs for point in self.points)

    @property
    def failures(self) -> int:
        """Runs that failed."""
        return sum(point.failures for point in self.points)

    @property
    def has_band(self) -> bool:
        """Whether it is known what is normal."""
        return any(point.high_ms is not None for point in self.points)

    @property
    def has_slowest(self) -> bool:
        """Whether most points stand for several runs of which the slowest is known; else it is the median again."""
        ran = [point for point in self.points if point.slowest_ms is not None]
        return sum(point.runs > 1 for point in ran) * 2 > len(ran)

    @property
    def rows(self) -> list[Row]:
        """The numbers, newest first: all that failed or was unusual, and some of the others."""
        marked, step = dict(_rings(self)), max(1, len(self.points) // PLAIN_ROWS)
        shown = [
            Row(point, _told(point, marked.get(index)))
            for index, point in enumerate(self.points)
            if point.runs and (index in marked or point.failures or index % step == 0)
        ]
        return shown[::-1]

    @property
    def picture(self) -> Markup | None:
        """The period as a plot; what was hardly measured has none."""
        if sum(point.latency_ms is not None for point in self.points) < 2:
            return None
        medians = [nan if point.latency_ms is None else point.latency_ms for point in self.points]
        slowest = [nan if point.slowest_ms is None else point.slowest_ms for point in self.points]
        highs = [point.high_ms for point in self.points if point.high_ms is not None]
        top, ticks = charts.scale(max([1.0, *highs, *(one for one in (*medians, *slowest) if not isnan(one))]))
        limit = self.history.check.timeout_s * 1_000
        also = Also(
            limit=(limit, f"gives up at {words.spent(limit)}") if limit <= top else None,
            marks=_marks(self),
            incidents=_washes(self),
            normal=_band(self.points) if highs else None,
        )
        frame = Frame(f"Latency of {self.history.check.name}", _finding(self), top, ticks, _labels(self.hours), 248)
        return charts.line_plot(frame, [medians, slowest] if self.has_slowest else [medians], also)


def _told(point: Point, unusual: Anomaly | None) -> str:
    told = [f"anomaly, {unusual.deviations:g} spreads off"] if unusual else []
    if point.failures:
        told.append(f"{point.failures} of {words.count(point.runs, 'run')} failed")
    return ", ".join(told)


def _rings(period: Period) -> list[tuple[int, Anomaly]]:
    """Where each anomaly of the latency was farthest out, of those in the period."""
    found = ((_worst(period.points, one), one) for one in period.anomalies if one.metric == "latency")
    return [(index, one) for index, one in found if index is not None]


def _worst(points: Sequence[Point], unusual: Anomaly) -> int | None:
    since = clock.parse(unusual.started_at) - BEFORE
    until = clock.parse(unusual.ended_at or unusual.last_at)
    inside = [
        (point.latency_ms, index)
        for index, point in enumerate(points)
        if point.latency_ms is not None and since <= clock.parse(point.at) <= until
    ]
    return max(inside)[1] if inside else None


def _band(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    low = [nan if point.low_ms is None else point.low_ms for point in points]
    return low, [nan if point.high_ms is None else point.high_ms for point in points]


def _marks(period: Period) -> list[Mark]:
    rings, count = _rings(period), len(period.points)
    told = {one.id for _, one in sorted(rings, key=lambda ring: -ring[1].value)[:TOLD_MARKS]}
    return [
        Mark(index, words.spent(one.value) if one.id in told else "", _anchor(index / count)) for index, one in rings
    ]


def _anchor(share: float) -> str:
    return "end" if share > 0.8 else "start" if share < 0.2 else "middle"


def _washes(period: Period) -> list[tuple[float, float]]:
    """When it was down, in percent of the width."""
    first = clock.parse(period.points[0].at)
    last = clock.parse(period.points[-1].at) + int(period.history.step_s * SECOND)
    found = []
    for one in period.incidents:
        begin = max(first, clock.parse(one.opened_at))
        end = last if one.resolved_at is None else min(last, clock.parse(one.resolved_at))
        if end >= begin:
            start, stop = (100 * (at - first) / (last - first) for at in (begin, end))
            # However short it was, it must be seen.
            found.append((min(start, 99.4), min(100.0, max(stop, start + 0.6))))
    return found


def _labels(hours: int) -> list[str]:
    unit, size = ("days", 24) if hours > 72 else ("h", 1)
    return [*(f"{hours * part // 4 // size} {unit} ago" for part in (4, 3, 2, 1)), "now"]


def _finding(period: Period) -> str:
    """What the picture shows, in words."""
    measured = [point.latency_ms for point in period.points if point.latency_ms is not None]
    low, high, now = (words.spent(value) for value in (min(measured), max(measured), measured[-1]))
    told = [f"The median was between {low} and {high}, and was {now} last."]
    if rings := _rings(period):
        worst = max((one for _, one in rings), key=lambda one: one.value)
        expected = f"the worst {words.spent(worst.value)} where {words.spent(worst.expected)} was expected"
        told.append(f"{words.count(len(rings), 'anomaly', 'anomalies')}, {expected}.")
    if washes := _washes(period):
        told.append(f"{words.count(len(washes), 'incident')} in this time.")
    if period.failures:
        told.append(f"{words.number(period.failures)} of {words.count(period.runs, 'run')} failed.")
    return " ".join(told)
