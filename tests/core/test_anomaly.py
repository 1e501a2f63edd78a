"""The robust statistic: it sees what is unusual, is not fooled by outliers, and is silent without history."""

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsake.core import anomaly
from keepsake.core.anomaly import Hour, Sample, Verdict
from keepsake.core.clock import DAY, HOUR, MINUTE

#: A Monday, 12:00 UTC.
NOON = 1_800_273_600_000_000 // DAY * DAY + 12 * HOUR
latencies = st.lists(st.integers(1, 10_000_000), min_size=1, max_size=60)


def hours(count: int, latency: int = 50_000, failures: int = 0, until: int = NOON) -> list[Hour]:
    """So many steady hours before this one."""
    return [Hour(until - n * HOUR, 60, failures, latency, latency // 50) for n in range(1, count + 1)]


def runs(latency: int, count: int = 15, failing: int = 0) -> list[Sample]:
    return [Sample(NOON + n * MINUTE, n >= failing, latency) for n in range(count)]


def verdicts(samples: Sequence[Sample], history: Sequence[Hour]) -> dict[str, Verdict]:
    return {verdict.metric: verdict for verdict in anomaly.judged(samples, history, NOON + 10 * MINUTE)}


def test_slowness_is_told_with_the_numbers_that_make_it_one() -> None:
    found = verdicts(runs(400_000), hours(48))["latency"]

    assert found == Verdict("latency", 400_000, 50_000, 2_500, 15, 48, "all hours", begins=True, lasts=True)


def test_failures_are_told_with_the_numbers_that_make_them_one() -> None:
    found = verdicts(runs(50_000, failing=5), hours(48))["errors"]

    assert (found.value, found.expected, found.samples, found.begins) == (5 / 15, 0.0, 15, True)
    assert found.spread == pytest.approx(math.sqrt(0.01 * 0.99 / 15))


@pytest.mark.parametrize("count", [0, 1, 23])
def test_nothing_is_unusual_without_enough_history(count: int) -> None:
    assert verdicts(runs(10_000_000, failing=15), hours(count)) == {}


def test_a_handful_of_runs_is_no_verdict() -> None:
    assert verdicts(runs(10_000_000, count=4), hours(48)) == {}


def test_what_is_usual_at_this_hour_is_no_anomaly_though_it_is_at_others() -> None:
    nightly = [
        Hour(hour.hour, 60, 0, 900_000 if (hour.hour // HOUR) % 24 == 12 else 50_000, 1_000) for hour in hours(240)
    ]

    found = verdicts(runs(900_000), nightly)["latency"]

    assert (found.season, found.expected, found.begins) == ("hour of day", 900_000, False)


def test_with_weeks_of_history_the_day_counts_too() -> None:
    weekly = [
        Hour(hour.hour, 60, 0, 900_000 if (NOON - hour.hour) % (7 * DAY) == 0 else 50_000, 1_000)
        for hour in hours(24 * 7 * 7)
    ]

    found = verdicts(runs(900_000), weekly)["latency"]

    assert (found.season, found.history, found.begins) == ("hour of week", 7, False)


def test_a_check_that_always_fails_a_little_is_not_unusual_when_it_does() -> None:
    found = verdicts(runs(50_000, failing=3), hours(48, failures=12))["errors"]

    assert (found.expected, found.begins) == (0.2, False)


@given(latencies)
def test_the_order_of_samples_says_nothing(values: list[int]) -> None:
    shuffled = random.Random(1).sample(values, len(values))

    assert anomaly.median(values) == anomaly.median(shuffled)
    assert anomaly.deviation(values, 5) == anomaly.deviation(shuffled, 5)


@given(latencies, st.integers(2, 1000))
def test_other_units_give_the_same_judgement(values: list[int], factor: int) -> None:
    middle = anomaly.median(values)

    assert anomaly.median([value * factor for value in values]) == pytest.approx(middle * factor)
    assert anomaly.deviation([value * factor for value in values], middle * factor) == pytest.approx(
        anomaly.deviation(values, middle) * factor
    )


@given(
    st.lists(st.integers(40_000, 60_000), min_size=25, max_size=60),
    st.lists(st.integers(0, 10**9), max_size=24),
)
def test_less_than_half_of_history_gone_mad_moves_nothing(clean: list[int], mad: list[int]) -> None:
    history = [Hour(NOON - n * HOUR, 60, 0, value, 100) for n, value in enumerate([*clean, *mad], 1)]
    history = [hour for hour in history if (NOON - hour.hour) % DAY]

    found = anomaly.seasonal(history, NOON)
    assert found is not None
    usual = [float(hour.latency or 0) for hour in found[1]]

    kept = sum(40_000 <= value <= 60_000 for value in usual)
    if kept > len(usual) / 2:
        assert 40_000 <= anomaly.median(usual) <= 60_000
        assert anomaly.deviation(usual, anomaly.median(usual)) <= anomaly.NORMAL * 20_000


@given(st.integers(1, 10**8), st.integers(1, 10**8), st.integers(1_000, 10**6))
def test_what_is_slower_is_never_less_unusual(one: int, two: int, usual: int) -> None:
    faster, slower = sorted((one, two))
    history = hours(48, latency=usual)

    less, more = verdicts(runs(faster), history)["latency"], verdicts(runs(slower), history)["latency"]

    assert more.begins or not less.begins
    assert more.lasts or not less.lasts
    assert less.lasts or not less.begins


@given(st.integers(0, 60))
def test_usual_behaviour_never_begins_an_anomaly(failures: int) -> None:
    found = verdicts(runs(50_000, failing=round(failures / 60 * 15)), hours(48, failures=failures))

    assert [verdict.metric for verdict in found.values() if verdict.begins] == []


def test_hours_are_rolled_up_by_the_clock() -> None:
    samples = [Sample(NOON + n * 20 * MINUTE, n != 1, 1_000 * n) for n in range(6)]

    assert anomaly.rolled(samples) == [
        Hour(NOON, 3, 1, 1_000, 1_483),
        Hour(NOON + HOUR, 3, 0, 4_000, 1_483),
    ]


def test_an_hour_without_a_success_has_no_latency() -> None:
    assert anomaly.rolled([Sample(NOON, False, 10_000_000)]) == [Hour(NOON, 1, 1, None, 0)]
