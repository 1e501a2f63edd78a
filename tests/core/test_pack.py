"""The pack: the seed's formulas, knowledge first, never above the budget."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsake.core import pack
from keepsake.core.clock import DAY
from keepsake.core.pack import Item, Signals, Summary
from keepsake.core.words import cost

NOW = 1_772_366_400_000_000


def item(id: int, text: str = "x" * 40, kind: str = "observation", score: float = 0.5) -> Item:
    return Item(id, 1, kind, "", "", text, NOW - id, score=score)


def test_the_score_is_the_seeds() -> None:
    signals = Signals(recency=0.87, project=1.0, semantic=0.89, words=0.95)

    assert signals.with_query == pytest.approx(0.45 * 0.89 + 0.35 * 0.95 + 0.1 * 0.87 + 0.1)
    assert signals.without_query == pytest.approx(0.7 * 0.87 + 0.3)


def test_recency_halves_in_a_week_and_the_future_is_now() -> None:
    assert [pack.recency(NOW - days * DAY, NOW) for days in (0, 7, 14, -3)] == [1.0, 0.5, 0.25, 1.0]


def test_what_another_project_shares_counts_half() -> None:
    shared = pack.recent(Item(1, 2, "decision", "", "", "x", NOW), 1, NOW)

    assert shared.signals.project == 0.5
    assert shared.score == pytest.approx(0.85)


def test_knowledge_stands_first_whatever_its_score() -> None:
    items = [item(1, score=0.9), item(2, kind="decision", score=0.1), item(3, kind="rejected", score=0.2), item(4)]

    assert [one.id for one in pack.packed(items, [], 1_000).items] == [3, 2, 1, 4]


def test_what_does_not_fit_is_left_out_and_what_comes_after_may_fit() -> None:
    items = [item(1, "x" * 4_000, score=0.9), item(2, score=0.8), item(3, score=0.7)]

    made = pack.packed(items, [], 15)

    assert ([one.id for one in made.items], made.used) == ([2], 10)


def test_summaries_are_the_newest_and_take_a_quarter_at_most() -> None:
    summaries = [Summary(n, 1, NOW + n, "", {"completed": "y" * 40}) for n in range(9)]

    assert [one.id for one in pack.packed([], summaries, 1_000).summaries] == [8, 7, 6, 5, 4]
    made = pack.packed([item(1), item(2), item(3)], summaries, 40)
    assert ([one.id for one in made.summaries], len(made.items), made.used) == ([8], 3, 40)


ITEMS = st.builds(
    item,
    st.integers(1, 10**6),
    st.text(max_size=300),
    st.sampled_from(["observation", "decision", "fact"]),
    st.floats(0, 1),
)
TOLD = st.builds(Summary, st.integers(1, 99), st.just(1), st.integers(0, NOW), st.text(max_size=300))


@given(st.lists(ITEMS, max_size=40), st.lists(TOLD, max_size=10), st.integers(1, 500))
def test_the_whole_never_costs_more_than_the_budget(items: list[Item], told: list[Summary], budget: int) -> None:
    made = pack.packed(items, told, budget)

    assert made.used == sum(cost(one.content) for one in made.items) + sum(one.tokens for one in made.summaries)
    assert made.used <= budget


def test_a_hook_can_use_it_without_pydantic() -> None:
    script = "import sys; import keepsake.store.packs; print('pydantic' in sys.modules, 'numpy' in sys.modules)"

    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout.split() == ["False", "False"]
