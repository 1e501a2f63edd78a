"""Truth over time: what repeats, what contradicts, what a person must look at, and what can both hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsake.core import truth


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The office is in Berlin.", "the office  is in BERLIN"),
        ("The office is in Berlin", "Office is in Berlin!"),
        ("We use Redis", "We now use Redis"),
        ("Alice is not in Berlin", "Alice isn't in Berlin"),
        ("The office is located in Berlin", "In Berlin the office is located"),
        (
            "The nightly job copies every table of the main database to cold storage",
            "The nightly job safely copies every table of the main database to cold storage",
        ),
        ("Maria: I live in Berlin.", "Maria: I live in Berlin"),
    ],
)
def test_a_repetition_is_the_same(older: str, newer: str) -> None:
    assert truth.verdict(older, newer, 0.95) == "same"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Alice manages Bob", "Bob manages Alice"),
        ("Tea is better than coffee", "Coffee is better than tea"),
        ("We moved from Oslo to Rome", "We moved to Oslo from Rome"),
        ("Alice is tall and is not old", "Alice is not tall and is old"),
        ("Alice is tall and is old", "Alice is not tall and is not old"),
        (
            "Snakes are fed by the man in the yard at noon daily",
            "No snakes are fed by the man in the yard at noon daily",
        ),
        ("Maria: Keep it up!", "Bob: Keep it up!"),
        ("Maria: I live in Berlin", "Bob: I live in Berlin"),
        ("!!!", "???"),
        ("The office is in Berlin", "The office was in Berlin"),
    ],
)
def test_the_same_words_that_say_something_else_are_not_the_same(older: str, newer: str) -> None:
    assert truth.verdict(older, newer, 1.0) != "same"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The office is in Berlin.", "The office is in Lisbon."),
        ("The office is in Berlin", "The office is located in Lisbon"),
        ("Our office is in Berlin", "The office is in Lisbon"),
        ("Alice lives in Berlin", "Alice now lives in Lisbon"),
        ("Maria: I live in Berlin", "Maria: I live in Lisbon now"),
        ("Bob reports to Alice", "Bob reports to Carol"),
        ("The CEO is Marta", "The CEO is Bob Smith"),
        ("Alice's favourite colour is blue", "Alice's favourite colour is green"),
        ("The status is green", "The status is red"),
        ("The deadline is 5 May", "The deadline is 12 May"),
        ("The timeout defaults to 30", "The timeout defaults to 60"),
    ],
)
def test_another_value_of_the_same_attribute_contradicts(older: str, newer: str) -> None:
    assert truth.verdict(older, newer, 0.9) == "contradicts"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("limit is 60", "limit is 100"),
        ("The plan costs 5 euros", "The plan costs 8 euros"),
        ("Alice has 2 cats", "Alice has 3 cats"),
        ("The tool requires Python 3.8", "The tool requires Python 3.9"),
        ("Sign-up is open", "Sign-up is closed"),
        ("Dark mode is enabled", "Dark mode is disabled"),
        ("We use Redis", "We no longer use Redis"),
        ("We use Redis", "We don't use Redis anymore"),
        ("We use Redis", "We stopped using Redis"),
        ("We use Redis", "We used to use Redis"),
        ("We don't use Redis", "We use Redis now"),
        ("Alice is tall and is old", "Alice is not tall and is not old"),
    ],
)
def test_another_number_an_opposite_or_a_negation_contradicts(older: str, newer: str) -> None:
    assert truth.verdict(older, newer, 0.9) == "contradicts"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("deploys run on Jenkins", "deploys moved from Jenkins to GitHub Actions"),
        ("deploys run on Jenkins", "deploys run on Buildkite now"),
        ("Alice prefers tea", "Alice prefers coffee now"),
        ("Alice works at Google", "Alice works at Meta now"),
        ("Alice lives in Berlin", "Alice moved to Lisbon"),
        ("We use Redis", "We replaced Redis with Valkey"),
        ("The project is called Foo", "The project was renamed to Bar"),
        ("We switched to Jenkins", "We switched from Jenkins to Buildkite"),
    ],
)
def test_a_change_that_is_told_contradicts(older: str, newer: str) -> None:
    assert truth.verdict(older, newer, 0.85) == "contradicts"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Alice prefers tea", "Alice prefers coffee"),
        ("Alice works at Google", "Alice works at Meta"),
        ("Alice lives in Portugal", "Alice lives in Lisbon"),
        ("The site is hosted on AWS", "The site is hosted on Kubernetes"),
        ("deploys run on Jenkins", "Jenkins was replaced by GitHub Actions"),
        ("The price is high", "The price is negotiable"),
    ],
)
def test_a_likely_contradiction_that_rules_cannot_settle_is_unclear(older: str, newer: str) -> None:
    assert truth.verdict(older, newer, 0.9) == "unclear"
    assert truth.verdict(older, newer, 0.5) == "other"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Alice likes tea", "Alice likes coffee"),
        ("Marta approved X", "Marta approved Y"),
        ("We use Redis", "We use Postgres"),
        ("Alice has a cat", "Alice has a dog"),
        ("Alice works at Google", "Alice works as an engineer"),
        ("Alice is at Google", "Alice is in Berlin"),
        ("The shop opens at 9", "The shop closes at 17"),
        ("The repo is owned by Acme", "The repo is managed by Bob"),
        ("The manager is Bob", "The manager is tired"),
        ("The lead is Bob", "The lead is on holiday"),
        ("The CEO is Marta", "The CTO is Bob"),
        ("Bob's phone is 5", "Alice's phone is 6"),
        ("Alice lives in a small flat", "Alice lives in Berlin"),
        ("The office is in Berlin", "The office is in Berlin Mitte"),
        ("The office is in Berlin", "The office is big"),
        ("The server is in Berlin", "The server is in Berlin and Lisbon"),
        ("tests run on Linux", "tests run on Linux and macOS"),
        ("A user is in Berlin", "A user is in Lisbon"),
        ("It is in Berlin", "It is in Lisbon"),
        ("One of the offices is in Berlin", "One of the offices is in Lisbon"),
        ("The dog is jumping on the dock", "The dog is jumping off the dock"),
        ("The man with a shirt is holding a ball", "The man with no shirt is holding a ball"),
        ("Alice doesn't only drink tea", "Alice drinks tea"),
        ("Python 3.11 is supported", "Python 3.12 is supported"),
    ],
)
def test_what_can_both_hold_is_left_standing(older: str, newer: str) -> None:
    assert truth.verdict(older, newer, 1.0) == "other"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Alice met Bob in Paris", "Alice met Bob in Rome"),
        ("Release 3.1", "Release 3.2"),
        ("Enable the cache", "Disable the cache"),
        ("Use Black for this", "Don't use Black for this"),
        ("The office was in Berlin", "The office is in Lisbon"),
        ("Alice had 2 cats", "Alice has 3 cats"),
        ("I have 2 meetings today", "I have 3 meetings today"),
        ("The meeting starts at 9 on Monday", "The meeting starts at 10 on Tuesday"),
        ("The timeout defaults to 30 in production", "The timeout defaults to 60 in staging"),
        ("The party is in May", "The party is in June"),
        ("Is the office in Berlin?", "The office is in Lisbon"),
        ("The office is in Berlin", "The office might be in Lisbon"),
        ("The office is in Berlin", "We should move the office to Lisbon"),
        ("Maria: I live in Berlin", "Bob: I live in Lisbon"),
    ],
)
def test_events_scopes_questions_wishes_and_other_voices_contradict_nothing(older: str, newer: str) -> None:
    assert truth.verdict(older, newer, 1.0) == "other"


def test_tastes_of_different_kinds_do_not_exclude_each_other() -> None:
    assert truth.verdict("Alice prefers tea", "Alice prefers dark mode now", 0.72) == "other"


def test_unrelated_statements_are_other_whatever_their_words() -> None:
    assert truth.verdict("The office is in Berlin", "The office is in Lisbon", 0.05) == "other"


WORDS = st.sampled_from(
    "The office is in Berlin Lisbon not no longer now moved from to 60 100 Alice prefers tea . ? and I used "
    "stopped using was replaced by renamed don't Bob: open closed on off".split()
)
TEXTS = st.one_of(st.text(), st.lists(WORDS, max_size=9).map(" ".join))


@given(TEXTS, TEXTS, st.floats(0, 1))
def test_any_two_texts_get_a_verdict(older: str, newer: str, similarity: float) -> None:
    assert truth.verdict(older, newer, similarity) in ("same", "contradicts", "unclear", "other")


@given(TEXTS, st.floats(0, 1))
def test_a_text_is_the_same_as_itself(text: str, similarity: float) -> None:
    assert truth.verdict(text, text, similarity) == "same"
