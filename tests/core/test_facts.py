"""Facts: where a note is cut, what stays together, and what kind of fact each is."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsake.core import facts
from keepsake.core.facts import FactType, Span


def cut(text: str) -> list[str]:
    return [text[span.start : span.end] for span in facts.split(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Alice moved to Berlin.",
        "Dr. Smith met Mr. Jones at 5 p.m. on Monday.",
        "The limit is 3.5 MB in v1.2.3 of the app.",
        "See https://x.org/a.b?c=d. for more of it",
        "Edit app.py or a.b.c first, e.g. with vim.",
        "J. K. Rowling wrote seven of them.",
        "Wait... I forgot the keys.",
        "He wanted more … Nobody knew.",
        'He said "Stop. Go away now." and left.',
        "It works (see fig. 2. It shows how) on both.",
        "Run `a. B` before anything else.",
        "Ask No. 5 about the U.S. market.",
        "no punctuation at all",
        "word",
    ],
)
def test_one_sentence_is_one_fact(text: str) -> None:
    assert facts.split(text) == [Span(0, len(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alice lives in Berlin. Bob lives in Rome.", ["Alice lives in Berlin.", "Bob lives in Rome."]),
        ("Did Alice move away? Bob surely did not!", ["Did Alice move away?", "Bob surely did not!"]),
        ("Use version 2.0. Never use the other.", ["Use version 2.0.", "Never use the other."]),
        ("We sell tea, cake, etc. The shop is open.", ["We sell tea, cake, etc.", "The shop is open."]),
        ('Bob said "Stop it." Alice went on anyway.', ['Bob said "Stop it."', "Alice went on anyway."]),
        ("alice lives in rome. bob lives in oslo.", ["alice lives in rome.", "bob lives in oslo."]),
        ("這是第一句話。這是第二句話！", ["這是第一句話。", "這是第二句話！"]),
    ],
)
def test_sentences_are_cut_apart(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Alice bought a house. It is in Berlin.",
        "We tried the new cache. However, nothing got faster.",
        "The tests failed on Friday. This blocked the release.",
        "Bob left the company. They miss him.",
        "Thanks! Alice moved to Berlin.",
        "Alice moved to Berlin. Great news!",
    ],
)
def test_what_leans_on_its_neighbour_stays_with_it(text: str) -> None:
    assert cut(text) == [text]


def test_a_time_that_begins_with_this_does_not_lean() -> None:
    text = "Alice shipped the parser. This week Bob ships the rest."

    assert cut(text) == ["Alice shipped the parser.", "This week Bob ships the rest."]


def test_joining_ends_where_a_fact_would_become_long() -> None:
    text = "Alice works on the parser all day long. " + "She really likes that kind of work very much. " * 20

    assert len(facts.split(text)) > 1
    assert all(span.end - span.start <= facts.LONG_JOIN for span in facts.split(text))


NOTE = """# Setup

Redis runs on port 6379.

## Ports

We chose these:
- 8080 is http,
  for now
- Others:
  - 9090 is metrics
1. first comes the lexer
2) then the parser

```python
a = 1.

b = 2
```

| a | b |
|---|---|
| 1 | 2 |

The end is near now.
"""


def test_a_note_is_cut_by_its_layout_and_headings_become_context() -> None:
    spans = facts.split(NOTE)

    assert [(NOTE[span.start : span.end], span.heading) for span in spans] == [
        ("Redis runs on port 6379.", "Setup"),
        ("8080 is http,\n  for now", "Setup > Ports > We chose these"),
        ("9090 is metrics", "Setup > Ports > We chose these > Others"),
        ("first comes the lexer", "Setup > Ports > We chose these"),
        ("then the parser", "Setup > Ports > We chose these"),
        ("```python\na = 1.\n\nb = 2\n```", "Setup > Ports > We chose these"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "Setup > Ports > We chose these"),
        ("The end is near now.", "Setup > Ports"),
    ]


def test_a_heading_that_nothing_follows_is_a_fact() -> None:
    assert cut("# Release 2.0 is out") == ["Release 2.0 is out"]
    assert cut("# One thing\n\n# Another thing\n\nWith some text below.") == ["One thing", "With some text below."]


def test_an_underlined_line_is_a_heading() -> None:
    assert facts.split("Setup\n=====\n\nRedis runs on port 6379.") == [Span(13, 37, "Setup")]


def test_wrapped_lines_are_one_sentence_and_short_lines_are_their_own() -> None:
    wrapped = "The office that we rented last year is in the middle of the city of\nBerlin near the river."
    listed = "The office is in Berlin\nThe server is in Oslo"

    assert cut(wrapped) == [wrapped]
    assert cut(listed) == ["The office is in Berlin", "The server is in Oslo"]


def test_a_turn_is_one_fact_with_its_speaker() -> None:
    text = "Maria: I moved to Berlin. The flat is small.\nBob: Great news. When was it?\n\nAnd one more line."

    assert [(text[span.start : span.end], span.speaker) for span in facts.split(text)] == [
        ("Maria: I moved to Berlin. The flat is small.", "Maria"),
        ("Bob: Great news. When was it?", "Bob"),
        ("And one more line.", "Bob"),
    ]


def test_a_long_turn_is_cut_and_every_part_keeps_its_speaker() -> None:
    text = "Maria: " + "Alice wrote about the parser of the house. " * 20

    spans = facts.split(text)

    assert len(spans) == 20
    assert {span.speaker for span in spans} == {"Maria"}


def test_blank_text_has_no_facts() -> None:
    assert facts.split(" \n\t ") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I deployed the app.", "experience"),
        ("We met Bob in Paris.", "experience"),
        ("I've just finished the report.", "experience"),
        ("The tests were run twice.", "experience"),
        ("User asked for dark mode.", "experience"),
        ("User asked whether Bob likes tea.", "experience"),
        ("Deployed v2 to production.", "experience"),
        ("Maria: I went to Paris and I loved it.", "experience"),
        ("Alice prefers tea.", "opinion"),
        ("Bob thinks that Go is fast.", "opinion"),
        ("We should use tabs.", "opinion"),
        ("Redis is better than Memcached.", "opinion"),
        ("Alice likes coffee.", "opinion"),
        ("We decided that Redis stays.", "opinion"),
        ("I think I deployed it.", "opinion"),
        ("The view is really beautiful.", "opinion"),
        ("The office is in Berlin.", "world"),
        ("The bridge was built in 1932.", "world"),
        ("I need a car.", "world"),
        ("Port 8080 is used by the API.", "world"),
        ("", "world"),
    ],
)
def test_facts_are_told_apart_by_their_first_sign(text: str, expected: FactType) -> None:
    assert facts.fact_type(text) == expected


LAYOUT = ["\n", "\n\n", "# H\n", "- item ", "1. one\n", "```\n", "| a |\n", "Bob: hi there ", "---\n", ":", " "]
WORDS = ["Alice runs. ", "It is. ", "e.g. ", "... ", '"', "(", ")", "`", "x", "。", "é"]
PIECES = st.sampled_from([*LAYOUT, *WORDS])
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join))


@given(TEXTS)
def test_spans_are_stripped_ordered_and_apart(text: str) -> None:
    spans = facts.split(text)

    assert all(text[span.start : span.end] == text[span.start : span.end].strip() != "" for span in spans)
    assert all(before.end <= after.start for before, after in pairwise(spans))


@given(TEXTS)
def test_everything_but_headings_and_layout_is_in_some_fact(text: str) -> None:
    spans = facts.split(text)
    left, last = [], 0
    for span in spans:
        left.append(text[last : span.start])
        last = span.end
    left.append(text[last:])

    headings = "".join(span.heading for span in spans)
    lost = "".join(left).translate({ord(sign): None for sign in "#-*+•–_=:.)0123456789"})
    assert {letter for letter in lost if not letter.isspace()} <= set(headings)


@given(st.text())
def test_every_text_has_a_type(text: str) -> None:
    assert facts.fact_type(text) in ("world", "experience", "opinion")
