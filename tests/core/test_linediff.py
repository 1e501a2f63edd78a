"""Diffs: what they say is how to get from one text to the other, and nobody waits for them."""

import random

from keepsake.core import linediff


def applied(old: list[str], new: list[str]) -> list[str]:
    made, at = [], 0
    for one in linediff.changes(old, new):
        made += [*old[at : one.a], *new[one.c : one.d]]
        at = one.b
    return made + old[at:]


def test_changes_lead_from_one_text_to_the_other() -> None:
    chance = random.Random(7)

    for _ in range(300):
        old, new = ([chance.choice("abcd") for _ in range(chance.randrange(12))] for _ in range(2))
        assert applied(old, new) == new


def test_a_unified_diff_shows_what_changed_and_three_lines_around_it() -> None:
    old = "a b c d e f g h i j k l m n o p".split()
    new = [*old[:5], "X", *old[6:14], "o", "p", "q"]

    assert list(linediff.unified(old, new)) == [
        *("@@ -3,7 +3,7 @@", " c", " d", " e", "-f", "+X", " g", " h", " i"),
        *("@@ -14,3 +14,4 @@", " n", " o", " p", "+q"),
    ]
    assert list(linediff.unified(old, old)) == []


def test_texts_that_share_little_are_told_as_one_change() -> None:
    chance = random.Random(7)
    old, new = ([str(chance.randrange(3)) for _ in range(9_000)] for _ in range(2))

    found = linediff.changes(["same", *old], ["same", *new])

    assert applied(["same", *old], ["same", *new]) == ["same", *new]
    assert len(found) == 1
