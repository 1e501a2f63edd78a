"""What is unusual for a check: its latest runs against its own history, by median and MAD."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from keepsake.core.clock import DAY, HOUR, MINUTE

Metric = Literal["latency", "errors"]
Season = Literal["hour of week", "hour of day", "all hours"]
#: Hours of history that a season must have; a check that is younger is not judged.
ENOUGH: dict[Season, int] = {"hour of week": 6, "hour of day": 7, "all hours": 24}
#: How far back history is looked at.
REACH = 60 * DAY
#: Runs that a value is made of at least, and how far back they are looked for.
LEAST, RECENT, RECENT_RUNS = 5, 15 * MINUTE, 8
#: So many spreads from what is expected is an anomaly, and so many are still one that has begun.
BEGINS, LASTS = 5.0, 2.5
#: Latency must also be so many times what is expected, and errors so many runs.
LEAST_TIMES, LEAST_FAILURES = 1.5, 3
#: A median that never moved has no spread: nothing is steadier than this share of it, or this many microseconds.
LEAST_SHARE, LEAST_LATENCY = 0.05, 1_000.0
#: No history is so long that failures could be rarer than this.
LEAST_RATE = 0.01
#: MAD of a normal distribution times this is its standard deviation.
NORMAL = 1.4826


@dataclass(frozen=True, slots=True)
class Hour:
    """An hour of a check, rolled up."""

    hour: int
    runs: int
    failures: int
    #: Median of the latency of what succeeded, and its MAD; None where nothing did.
    latency: int | None
    spread: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One run."""

    at: int
    ok: bool
    latency: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """A value beside what was expected of it: the numbers that make it an anomaly, or not."""

    metric: Metric
    value: float
    expected: float
    spread: float
    samples: int
    history: int
    season: Season
    #: Whether it is far enough out to be one, and to go on being one.
    begins: bool
    lasts: bool


def median(values: Sequence[float]) -> float:
    """The middle one, or the mean of the two."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return float(ordered[half]) if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def deviation(values: Sequence[float], middle: float) -> float:
    """The median distance from the middle (MAD), as a standard deviation."""
    return NORMAL * median([abs(value - middle) for value in values])


def rolled(samples: Sequence[Sample]) -> list[Hour]:
    """Samples by the hour, oldest first."""
    by_hour: dict[int, list[Sample]] = {}
    for sample in samples:
        by_hour.setdefault(sample.at // HOUR * HOUR, []).append(sample)
    return [_hour(hour, by_hour[hour]) for hour in sorted(by_hour)]


def _hour(hour: int, samples: Sequence[Sample]) -> Hour:
    latencies = [float(sample.latency) for sample in samples if sample.ok]
    failures = len(samples) - len(latencies)
    if not latencies:
        return Hour(hour, len(samples), failures, None, 0)
    middle = median(latencies)
    return Hour(hour, len(samples), failures, round(middle), round(deviation(latencies, middle)))


def recent(every: int) -> int:
    """How far back the runs lie that are judged together."""
    return max(RECENT, RECENT_RUNS * every)


def judged(samples: Sequence[Sample], history: Sequence[Hour], at: int) -> list[Verdict]:
    """What the latest runs say, for each metric that there is enough history for."""
    found = (_latency(samples, history, at), _errors(samples, history, at))
    return [verdict for verdict in found if verdict is not None]


def _latency(samples: Sequence[Sample], history: Sequence[Hour], at: int) -> Verdict | None:
    latencies = [float(sample.latency) for sample in samples if sample.ok]
    picked = seasonal([hour for hour in history if hour.latency is not None], at)
    if len(latencies) < LEAST or picked is None:
        return None
    season, hours = picked
    (expected, spread), value = _usual(hours), median(latencies)
    out = (value - expected) / spread
    is_slow = value >= LEAST_TIMES * expected
    return Verdict(
        "latency",
        value,
        expected,
        spread,
        len(latencies),
        len(hours),
        season,
        begins=is_slow and out >= BEGINS,
        lasts=out >= LASTS,
    )


def _usual(hours: Sequence[Hour]) -> tuple[float, float]:
    """The latency that such hours let expect, and how far it strays."""
    usual = [float(hour.latency or 0) for hour in hours]
    expected = median(usual)
    within = median([float(hour.spread) for hour in hours])
    return expected, max(deviation(usual, expected), within, LEAST_SHARE * expected, LEAST_LATENCY)


def _errors(samples: Sequence[Sample], history: Sequence[Hour], at: int) -> Verdict | None:
    picked = seasonal([hour for hour in history if hour.runs], at)
    if len(samples) < LEAST or picked is None:
        return None
    season, hours = picked
    usual = [hour.failures / hour.runs for hour in hours]
    failures = sum(not sample.ok for sample in samples)
    expected, value = median(usual), failures / len(samples)
    # So few runs vary by chance alone, however steady the hours were.
    rate = min(max(expected, LEAST_RATE), 1 - LEAST_RATE)
    spread = max(deviation(usual, expected), math.sqrt(rate * (1 - rate) / len(samples)))
    out = (value - expected) / spread
    is_some = failures >= LEAST_FAILURES
    return Verdict(
        "errors",
        value,
        expected,
        spread,
        len(samples),
        len(hours),
        season,
        begins=is_some and out >= BEGINS,
        lasts=out >= LASTS,
    )


def seasonal(history: Sequence[Hour], at: int) -> tuple[Season, list[Hour]] | None:
    """The hours of history that resemble this one most, where there are enough of them."""
    now = at // HOUR
    past = [hour for hour in history if hour.hour // HOUR < now]
    chosen: dict[Season, list[Hour]] = {
        "hour of week": [hour for hour in past if (now - hour.hour // HOUR) % 168 == 0],
        "hour of day": [hour for hour in past if (now - hour.hour // HOUR) % 24 == 0],
        "all hours": past,
    }
    return next(((season, hours) for season, hours in chosen.items() if len(hours) >= ENOUGH[season]), None)


def normal(history: Sequence[Hour], hours: Iterable[int]) -> dict[int, tuple[float, float]]:
    """Between which latencies each of these hours was expected to be; those without enough history are left out."""
    known = [hour for hour in history if hour.latency is not None]
    alike: dict[int, list[Hour]] = {}
    for hour in known:
        alike.setdefault(hour.hour // HOUR % 24, []).append(hour)
    found: dict[int, tuple[float, float]] = {}
    for at in hours:
        near = [one for one in alike.get(at // HOUR % 24, []) if at - REACH <= one.hour < at]
        if len(near) < ENOUGH["hour of day"]:
            near = [one for one in known if at - 7 * DAY <= one.hour < at]
        if (picked := seasonal(near, at)) is not None:
            expected, spread = _usual(picked[1])
            found[at] = max(0.0, expected - LASTS * spread), expected + LASTS * spread
    return found
