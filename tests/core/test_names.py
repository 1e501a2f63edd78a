"""Names found by rules: who and what a text speaks of, and what is left of a question without them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsake.core import names
from keepsake.core.names import Mention


def found(text: str) -> dict[str, str]:
    return {mention.name: mention.kind for mention in names.entities(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alice prefers tea.", {"Alice": "person"}),
        ("The office is in Berlin.", {"Berlin": "name"}),
        ("We met Maria Lopez in New York.", {"Maria Lopez": "person", "New York": "name"}),
        ("New York is big.", {"New York": "name"}),
        ("That was Bob's dog.", {"Bob": "person"}),
        ("He read O'Brien's letter.", {"O'Brien": "name"}),
        ("Hey Mel! Good to see you!", {"Mel": "person"}),
        ("See you soon, Quentin!", {"Quentin": "person"}),
        ("Dr. Smith called.", {"Smith": "person"}),
        ("She works at Bank of America.", {"Bank of America": "name"}),
        ("I read Lord of the Rings.", {"Lord of the Rings": "name"}),
        ("J. K. Rowling wrote it.", {"J. K. Rowling": "person"}),
        ("We talked with NASA.", {"NASA": "name"}),
        ("Réunion avec François à Montréal.", {"François": "name", "Montréal": "name"}),
        ("Redis keeps the families of tokens.", {"Redis": "name"}),
        ("Kafka and Redis are watched.", {"Kafka": "name", "Redis": "name"}),
    ],
)
def test_people_and_names_are_found(text: str, expected: dict[str, str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Call table.transform(rename=1) first.", {"table.transform": "code"}),
        ("Set max_tokens to 5.", {"max_tokens": "code"}),
        ("The class TableBuilder is gone.", {"TableBuilder": "code"}),
        ("Run it with --no-cache=1 please.", {"--no-cache": "code"}),
        ("Then `git push` it.", {"git push": "code"}),
        ("It hosts on GitHub Actions now.", {"GitHub Actions": "name"}),
        ("We chose PostgreSQL.", {"PostgreSQL": "name"}),
        ("Look at src/app/db.py and README.md.", {"src/app/db.py": "file", "README.md": "file"}),
        ("Edit /etc/hosts or ./run.sh.", {"/etc/hosts": "file", "./run.sh": "file"}),
        ("Read https://example.com/a.b?c=d, please.", {"https://example.com/a.b?c=d": "url"}),
        ("Mail bob@example.com about it.", {"bob@example.com": "email"}),
        ("It reads UTF-8 and SHA-256.", {"UTF-8": "name", "SHA-256": "name"}),
        ("It closes ABC-123 and #45.", {"ABC-123": "ticket", "#45": "ticket"}),
        ("It came with v2.1 and 1.2.3.", {"v2.1": "version", "1.2.3": "version"}),
        ("It needs Python 3.11.", {"Python": "name", "3.11": "version"}),
    ],
)
def test_code_files_addresses_tickets_and_versions_are_found(text: str, expected: dict[str, str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Thanks! That's great. I'm glad. Don't worry.",
        "On Monday in May we rest.",
        "Preserve the order of columns.",
        "Access tokens live 15 minutes.",
        "Public beta of the gateway",
        "- Alerts came after the damage.",
        "Running is fun. Yes, And/or no.",
        "It took 3.5 hours, 24/7.",
        "e.g. this and i.e. that",
        "THIS WHOLE TEXT IS SHOUTED AT YOU",
        "Let's see what it does",
        "I went home.Then I slept.",
        "Co-authored-by: ",
        "```\nclass Hidden: pass\n```",
        "",
    ],
)
def test_common_words_dates_and_noise_name_nobody(text: str) -> None:
    assert found(text) == {}


def test_a_first_word_counts_when_it_recurs_within_a_sentence() -> None:
    assert found("Sterling is a word.") == {}
    assert found("Sterling is a town and we love Sterling.") == {"Sterling": "name"}


def test_the_speaker_of_a_turn_has_that_role_and_is_named_once() -> None:
    assert names.entities("Maria: Bob told Maria so.") == [
        Mention("Maria", "person", 0, 5, "speaker"),
        Mention("Bob", "person", 7, 10),
    ]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Maria: hello there", "Maria"),
        ("Maria Lopez: hello there", "Maria Lopez"),
        ("**Maria**: hello there", "Maria"),
        ("[2023-05-07 10:00] Maria: hello", "Maria"),
        ("Maria (10:32): hello", "Maria"),
        ("user: what is it", "user"),
        ("Assistant: it is this", "Assistant"),
    ],
)
def test_a_leading_name_is_a_speaker(line: str, name: str) -> None:
    spoken = names.speaker(line)

    assert spoken and spoken.name == name


@pytest.mark.parametrize(
    "line", ["Note: mind this", "TODO: fix it", "Maria:", "https://x.org", "port: 80", "The end: x"]
)
def test_a_label_is_no_speaker(line: str) -> None:
    assert names.speaker(line) is None


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("Maria Lopez", "maria lopez"),
        ("MARIA  lopez", "maria lopez"),
        ("Maria's", "maria"),
        ("Zoë", "zoe"),
        ("the Beatles", "beatles"),
        ("run()", "run"),
    ],
)
def test_names_are_compared_folded(name: str, folded: str) -> None:
    assert names.folded(name) == folded


@pytest.mark.parametrize(
    ("query", "known", "left"),
    [
        ("What did Maria paint last year?", ["Maria"], "What did paint last year?"),
        ("What did Maria's sister paint?", ["Maria Lopez"], "What did sister paint?"),
        ("What do Maria and Bob paint together?", ["Maria", "Bob"], "What do paint together?"),
        ("what did maria paint", ["Maria"], "what did paint"),
        ("will it rain", ["Will"], "will it rain"),
        ("Who is Maria?", ["Maria"], "Who is Maria?"),
        ("Maria", ["Maria"], "Maria"),
        ("What is painted?", [], "What is painted?"),
    ],
)
def test_known_people_are_cut_from_a_question_that_keeps_something(query: str, known: list[str], left: str) -> None:
    assert names.cut(query, known) == left


PIECES = st.sampled_from(
    ["Maria", "new", "New York", "a_b", "x.py", "`q", "```", "#1", "v1.", "'s", ": ", ". ", "\n", "É", " "]
)


@given(st.one_of(st.text(), st.lists(PIECES).map("".join)))
def test_any_text_gives_mentions_in_order_that_stand_where_they_say(text: str) -> None:
    mentions = names.entities(text)

    assert [text[one.start : one.end] for one in mentions] == [one.name for one in mentions]
    assert mentions == sorted(mentions, key=lambda one: one.start)
    assert len({names.folded(one.name) for one in mentions}) == len(mentions)


@given(st.text(), st.lists(st.text(max_size=8), max_size=4))
def test_a_question_with_words_never_becomes_empty(query: str, known: list[str]) -> None:
    assert names.cut(query, known) or not query


@pytest.mark.parametrize("text", ["a.a" * 60_000, "Ab " * 60_000, "`a` http://x.y " * 8_000, "Running. Runs. " * 9_000])
def test_long_noise_takes_no_more_than_linear_time(text: str) -> None:
    before = time.process_time()

    names.entities(text)

    assert time.process_time() - before < 5
