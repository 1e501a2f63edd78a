"""Conversations in sections: who said what, nothing lost between them, and small ones together."""

from keepsake.core import conversation
from keepsake.core.conversation import ROOM, Said, Section

ASKED = Said("ada", "2026-01-01T00:00:00Z", "It crashes.")


def said(by: str, text: str, day: int = 2) -> Said:
    return Said(by, f"2026-01-{day:02}T00:00:00Z", text)


def test_the_opening_stands_under_its_title_and_answers_under_their_names() -> None:
    found = conversation.sections("Crash", ASKED, [said("bob", "Here too."), said("eve", "Mended.", 3)])

    assert found == [
        Section("Crash\n\nIt crashes.", "2026-01-01T00:00:00Z", ("ada",)),
        Section("bob: Here too.\n\neve: Mended.", "2026-01-02T00:00:00Z", ("bob", "eve")),
    ]


def test_a_title_alone_is_an_opening() -> None:
    assert [one.text for one in conversation.sections("Crash", said("ada", ""), [])] == ["Crash"]


def test_what_nobody_sees_is_not_said() -> None:
    told = "<!-- Thank you for your report! -->\r\nIt crashes.\r\n<!-- and what is never closed"

    assert conversation.shown(told) == "It crashes."
    assert conversation.sections("Crash", ASKED, [said("bob", "<!-- nothing -->")])[1:] == []


def test_a_later_answer_leaves_full_sections_as_they_were() -> None:
    answers = [said("bob", f"Answer {n}. " + "words " * 50) for n in range(12)]

    before = conversation.sections("Crash", ASKED, answers)
    after = conversation.sections("Crash", ASKED, [*answers, said("eve", "One more.")])

    assert after[: len(before) - 1] == before[:-1]
    assert all(len(one.text) <= ROOM + 50 for one in after)


def test_a_long_text_is_cut_between_words_and_keeps_every_one() -> None:
    words = [f"word{n}" for n in range(2_000)]

    found = conversation.sections("Crash", ASKED, [said("bob", " ".join(words))])

    assert " ".join(one.text.replace("bob: ", "") for one in found[1:]).split() == words
    assert all(one.text.startswith("bob: ") for one in found[1:])


def test_a_text_without_a_single_break_is_cut_all_the_same() -> None:
    assert "".join(conversation.parts("x" * 5_000)) == "x" * 5_000


def test_a_secret_is_gone_before_anything_is_cut() -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBg\n" * 200 + "-----END PRIVATE KEY-----"

    found = conversation.sections("Crash", ASKED, [said("bob", f"{'words ' * 250}{key}")])

    assert "MIIEvQIBADANBg" not in "".join(one.text for one in found)
    assert "[redacted:private-key]" in found[-1].text
