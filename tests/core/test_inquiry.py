"""Questions about projects: their kind, and the names, paths, numbers, versions and times in them."""

import pytest

from keepsake.core import clock, inquiry

NOW = clock.parse("2026-11-16T12:00:00Z")


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When and why was `reserve` introduced?", "introduced"),
        ("Why was usage.reserve added?", "introduced"),
        ("When did we switch to PostgreSQL?", "introduced"),
        ("Who introduced parse()?", "introduced"),
        ("Which commit added the spool?", "introduced"),
        ("When was retry_count removed?", "removed"),
        ("Who knows about keepsake/ops/budget.py?", "who"),
        ("Who knows how budgets were introduced?", "who"),
        ("Who should I ask about retries?", "who"),
        ("Who wrote parse()", "who"),
        ("What changed in store/ since June?", "changed"),
        ("What was added to ops/ in May 2026?", "changed"),
        ("What's new since v1.2.0?", "changed"),
        ("How has the scoring evolved?", "changed"),
        ("Why is the timeout 30 seconds?", "why"),
        ("How does the worker claim jobs?", "other"),
        ("Where is HybridSearch implemented?", "other"),
        ("state management", "other"),
    ],
)
def test_the_kind_of_a_question(question: str, kind: str) -> None:
    assert inquiry.read(question, NOW).kind == kind


@pytest.mark.parametrize(
    ("question", "identifiers", "paths", "words"),
    [
        ("When was `reserve` introduced?", ("reserve",), (), ()),
        ("Where is HybridSearch used?", ("HybridSearch",), (), ()),
        ("Who wrote parse()?", ("parse",), (), ()),
        ("What changed in store/ since June?", (), ("store",), ()),
        ("Is ops/retrieve.py fast, and README.md true?", (), ("ops/retrieve.py", "README.md"), ("fast", "true")),
        ("Who knows about the retry logic?", (), (), ("retry", "logic")),
        ("What is in https://example.com/a/b.py today?", (), (), ()),
    ],
)
def test_what_a_question_names(
    question: str, identifiers: tuple[str, ...], paths: tuple[str, ...], words: tuple[str, ...]
) -> None:
    asked = inquiry.read(question, NOW)

    assert (asked.identifiers, asked.paths, asked.words) == (identifiers, paths, words)


def test_numbers_of_pull_requests_and_issues_and_names_of_commits() -> None:
    asked = inquiry.read("Do PR #12, issue 7 and #3 explain 1a2b3c4?", NOW)

    assert asked.tickets == ("pr/12", "issue/7", "pr/3", "issue/3")
    assert asked.commits == ("1a2b3c4",)


@pytest.mark.parametrize("question", ["Is the limit 1234567 tokens?", "Is it defaced?", "a/1a2b3c4/b.py", "deadbeef"])
def test_numbers_words_and_parts_of_paths_are_no_commits(question: str) -> None:
    assert inquiry.read(question, NOW).commits == ()


def test_versions_and_times() -> None:
    asked = inquiry.read("What changed between v1.2 and 1.3.1 since June?", NOW)

    assert asked.versions == ("v1.2", "1.3.1")
    assert [clock.iso(one.start)[:10] for one in asked.windows] == ["2026-06-01"]


def test_a_hostile_question_is_read_in_time_and_within_bounds() -> None:
    asked = inquiry.read("a/" * 9_000 + "`" * 1_000 + "x_y " * 400 + "#1 " * 300, NOW)

    assert max(len(asked.identifiers), len(asked.paths), len(asked.words), len(asked.tickets)) <= inquiry.MOST
