"""Markdown answers: citations outside of code, sentences that fall with theirs, and nothing that leads away."""

import pytest

from keepsake.core import markdown

ANSWER = """It is in `x[3]` now. [1] Then it moved [2][3].

- one [2]
- two [1]. three [2].

```py
a[2]
```
End [1, 2]."""


def test_brackets_in_code_are_no_citations() -> None:
    assert markdown.cited(ANSWER) == [1, 2, 3]


def test_what_rests_on_a_lost_source_alone_goes_with_it() -> None:
    assert markdown.without(ANSWER, {2}) == (
        "It is in `x[3]` now. [1] Then it moved [3].\n\n- two [1].\n\n```py\na[2]\n```\nEnd [1]."
    )


def test_an_answer_that_cites_nothing_lost_stays_as_it_is() -> None:
    assert markdown.without(ANSWER, {9}) == ANSWER


def test_citations_get_other_numbers_and_code_does_not() -> None:
    assert markdown.renumbered("a `b[1]` [1] and [2, 3].", {1: 4, 3: 1}) == "a `b[1]` [4] and [1]."


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("![x](https://evil.example/?q=1)", "x"),
        ("[here](https://evil.example)", "here"),
        ("[1](https://evil.example)", "[1]"),
        ("[PR](https://github.com/a/b/pull/1)", "[PR](https://github.com/a/b/pull/1)"),
        ("see https://evil.example/x.", "see `https://evil.example/x`."),
        ("<img src=https://evil.example>", "&lt;img src=`https://evil.example`>"),
        ("`<b>` 1 < 2", "`<b>` 1 < 2"),
        ("[r]: https://evil.example", ""),
    ],
)
def test_an_answer_leads_nowhere_but_to_its_sources(written: str, made: str) -> None:
    assert markdown.harmless(written, {"https://github.com/a/b/pull/1"}) == made


def test_foreign_words_cannot_cite_link_or_mark_up() -> None:
    made = markdown.quoted("Fix a[3],\n see [2] ![i](http://x) <script>")

    assert made == "Fix a\\[3\\], see \\[2\\] ![i]\\(http://x) &lt;script>"
    assert markdown.cited(made) == []


def test_a_block_of_code_cannot_be_ended_by_its_lines() -> None:
    assert markdown.block("a\n```\nb") == "````\na\n```\nb\n````"
