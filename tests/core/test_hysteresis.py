"""Up and down: not by one sample, and not ten times in an hour."""

from hypothesis import given
from hypothesis import strategies as st

from keepsake.core import hysteresis
from keepsake.core.clock import HOUR, MINUTE
from keepsake.core.hysteresis import Limits, Standing

LIMITS = Limits(open_after=2, resolve_after=3)


def turns(samples: str, limits: Limits = LIMITS) -> list[tuple[int, str]]:
    """What turns at which sample; `+` succeeds, `-` fails."""
    standing = Standing()
    found: list[tuple[int, str]] = []
    for n, sample in enumerate(samples):
        standing, turn = standing.after(sample == "+", n, limits)
        found += [(n, turn)] if turn else []
    return found


def test_it_opens_after_failures_in_a_row_and_resolves_after_successes_in_a_row() -> None:
    assert turns("++-+--+-+++") == [(5, "opens"), (10, "resolves")]


def test_one_that_never_worked_opens_too() -> None:
    assert turns("--") == [(1, "opens")]


def test_flapping_by_single_samples_turns_nothing() -> None:
    assert turns("+-" * 20) == []
    assert turns("--" + "+-" * 20) == [(1, "opens")]


def test_one_that_came_back_must_hold_for_longer() -> None:
    assert turns("--+++++++++", Limits(2, 3, flaps=2)) == [(1, "opens"), (10, "resolves")]
    assert Limits(2, 3, flaps=100).to_resolve == 15


def test_since_tells_when_the_state_began() -> None:
    standing = Standing()
    for at, ok in enumerate([True, True, False, False, False]):
        standing, _ = standing.after(ok, at, LIMITS)

    assert standing == Standing("down", -3, 3)


def test_an_incident_that_opens_again_soon_is_the_same_one() -> None:
    assert hysteresis.is_same(0, 15 * MINUTE, MINUTE)
    assert not hysteresis.is_same(0, 16 * MINUTE, MINUTE)
    assert hysteresis.is_same(0, 10 * HOUR, HOUR)


@given(st.text("+-", max_size=200), st.integers(1, 5), st.integers(1, 5))
def test_turns_alternate_and_each_has_its_run_of_samples(samples: str, open_after: int, resolve_after: int) -> None:
    found = turns(samples, Limits(open_after, resolve_after))

    assert [turn for _, turn in found] == (["opens", "resolves"] * 100)[: len(found)]
    for n, turn in found:
        wanted = "-" * open_after if turn == "opens" else "+" * resolve_after
        assert samples[: n + 1].endswith(wanted)
