"""Replies while they are made: only whole sentences that cite what was given, and nothing that is taken back."""

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keepsake.core import cite, markdown, unfinished

#: What an answer is made of, and what could be taken for something else half-way.
PARTS = (
    *(
        "Held before a call",
        "It is",
        "e.g.",
        "a",
        ".",
        ".",
        "!",
        "…",
        "**",
        '"',
        "\\",
        "/",
        "é",
        "😀",
        "\u2028",
        "\x7f",
    ),
    *(" ", " ", " ", "\n", "\n", "\n\n", "\t", "- ", "1. ", "> ", "# ", "`", "`", "``", "\n```py\n", "\n~~~\n", "~~~"),
    *("[1]", "[1]", "[2]", "[1, 2]", "[3;1]", "[0]", "[99]", "[1,\n99]", "[", "]", "(", "[1](https://evil.example)"),
    *("![x](https://evil.example)", "<img src=x>", "{", "}", ":", "</think>"),
)
KNOWN = 3
ANSWERS = st.lists(st.sampled_from(PARTS), max_size=24).map("".join)
LOOKS = st.lists(st.fixed_dictionaries({"path": ANSWERS, "start": st.integers(0, 99)}), max_size=2)


def in_json(answer: str, look: object, form: int) -> str:
    """A reply in one of the forms that models give it."""
    told = {"look": look, "answer": answer} if form & 1 else {"answer": answer, "look": look}
    made = json.dumps(told, ensure_ascii=bool(form & 2), indent=2 if form & 4 else None)
    return f"```json\n{made}\n```" if form & 8 else made


def shown_of(reply: str) -> list[str]:
    """What is shown after every sign."""
    return [unfinished.ready(unfinished.answer(reply[:end]), KNOWN) for end in range(len(reply) + 1)]


def check(reply: str, answer: str) -> None:
    shown = shown_of(reply)
    for before, after in pairwise(shown):
        assert after.startswith(before)
    for one in set(shown):
        assert answer.startswith(one)
        assert {*cite.cited(markdown.prose(one))} <= {*range(1, KNOWN + 1)}
        assert not one or cite.cited(markdown.prose(one))
        one.encode()


@given(ANSWERS, LOOKS, st.integers(0, 15))
@example("[1]`[0]\n```py\n`Held before a call", [], 0)
def test_of_a_reply_in_json_more_and_more_is_shown_and_nothing_taken_back(answer: str, look: object, form: int) -> None:
    reply = in_json(answer, look, form)

    assert unfinished.answer(reply) == answer
    check(reply, answer)


@given(ANSWERS)
@example("[1]`\n```py\n")
@example("[1]`Held before a call`\n```py\n")
@example("[1]\t`Held before a call`\u2028")
def test_of_prose_more_and_more_is_shown_and_nothing_taken_back(answer: str) -> None:
    said = f"So. {answer}"

    assert unfinished.answer(said) == said
    check(said, said)


@given(st.text(max_size=80), st.text('{}[]:,"\\ answer019`jso\n', max_size=60))
def test_whatever_a_model_says_is_read_without_a_fault(said: str, more: str) -> None:
    for reply in (said, f'{{"answer": "{said}', more, f"{{{more}", f"```json\n{{{more}"):
        unfinished.ready(unfinished.answer(reply), KNOWN).encode()


@pytest.mark.parametrize(
    ("said", "ready"),
    [
        ("Held before a call [1]", ""),
        ("Held before a call [1].", ""),
        ("Held before a call [1]. A", "Held before a call [1]."),
        ("Held before a call. [1] A", "Held before a call. [1]"),
        ("Held [1]. [", ""),
        ("Held [1]. [9", ""),
        ("Held [1]. [9] A", ""),
        ("First. Held [1]. Then", "First. Held [1]."),
        ("Held [1]. Then. And", "Held [1]."),
        ("- one [1]\n- two [2]", "- one [1]"),
        ("- one [1]\n- two [2]\n- ten [9]\n- one [1]\n", "- one [1]\n- two [2]"),
        ("Held [0]. Then [1]. A", ""),
        ("See `x[1]. B` and", ""),
        ("See `x[1]. B", ""),
        ("See `x[1].\n\nB", "See `x[1]."),
        ("One [1].\n```py\na[2]\n", "One [1]."),
        ("One [1].\n```py\na[2]\n```\nTwo [2].\n", "One [1].\n```py\na[2]\n```\nTwo [2]."),
    ],
)
def test_a_sentence_is_shown_when_it_is_whole_and_one_that_cites_has_come(said: str, ready: str) -> None:
    assert unfinished.ready(said, KNOWN) == ready


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ('{"look": [{"path": "\\"answer\\": \\"no"}], "answer": "Yes', "Yes"),
        ('{"look": [{"answer": "no"}], "ans', ""),
        ('{"answer": 7, "x": "', ""),
        ('{"answer": "a\\', "a"),
        ('{"answer": "a\\u00e', "a"),
        ('{"answer": "a\\u00e9', "aé"),
        ('{"answer": "a\\ud83d', "a"),
        ('{"answer": "a\\ud83d\\ude00 b', "a😀 b"),
        ('{"answer": "a\\ud83d b', "a"),
        ('{"answer": "a\nb', "a"),
        ("``", ""),
        ("```js", ""),
        ("```py\nx", "```py\nx"),
        ('  \n```\n{"answer": "a', "a"),
    ],
)
def test_an_answer_is_read_as_far_as_it_is_certain(reply: str, answer: str) -> None:
    assert unfinished.answer(reply) == answer
