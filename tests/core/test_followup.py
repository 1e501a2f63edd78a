"""Questions that lean on earlier ones."""

import pytest

from keepsake.core import followup, inquiry

EARLIER = ["Who knows the billing code?", "When was `reserve` introduced?", "And then?"]


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("and why?", "why"),
        ("Why was that?", "why"),
        ("Who did it?", "who"),
        ("Tell me more", "introduced"),
        ("What else?", "introduced"),
        ("Explain that in more detail, please", "introduced"),
    ],
)
def test_a_question_that_names_nothing_is_about_the_last_thing_named(question: str, kind: str) -> None:
    read = followup.read(question, EARLIER, 0)

    assert (read.kind, read.identifiers) == (kind, ("reserve",))
    assert read.question == f"{question} (When was `reserve` introduced?)"


def test_a_question_that_names_something_is_about_that() -> None:
    other = followup.read("And `settle`?", EARLIER, 0)
    whole = "How does the retry pause work?"

    assert (other.kind, other.identifiers) == ("introduced", ("settle",))
    assert followup.read(whole, EARLIER, 0) == inquiry.read(whole, 0)
    assert followup.read("And why?", [], 0) == inquiry.read("And why?", 0)
    assert followup.read("And why?", ["Why?"], 0) == inquiry.read("And why?", 0)
