"""Portions: each stands exactly where it says, and together they hold what the text says."""

from itertools import pairwise

import pytest

from keepsake.core import portions, sections

LONG = "\r\n\r\n".join(f"## Part {n}\r\n\r\n{f'Crane {n} rolls on. ' * 40}" for n in range(6))


@pytest.mark.parametrize(
    "text", ["x", LONG, "word " * 9_000, "y" * 30_000, f"---\na: b\n---\n{LONG}", "# Only\n" * 900]
)
def test_a_portion_is_where_it_says_and_never_endless(text: str) -> None:
    found = portions.split("Yard", "markdown", text)

    told = [text[one.start : one.end] for one in found]
    assert told and all(one.strip() == one and 0 < len(one) <= 2 * sections.LONGEST + 20 for one in told)
    assert all(one.end <= other.start for one, other in pairwise(found))
    missing = set(text.replace("---\na: b\n---", "").split()) - set(" ".join(told).split())
    assert not missing or "y" in missing.pop()


def test_headings_are_told_and_a_short_text_is_one_portion() -> None:
    long = [one.title for one in portions.split("Yard", "markdown", LONG)]
    plain = {one.title for one in portions.split("Yard", "text", LONG)}
    short = portions.split("Yard", "markdown", "# Yard\n\n## Cranes\n\nThey are blue.\n")

    assert long == [f"Yard › Part {n}" for n in range(6)]
    assert plain == {"Yard"}
    assert [(one.title, one.start, one.end) for one in short] == [("Yard", 0, 33)]
