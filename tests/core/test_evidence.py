"""Evidence: how it is named to a reader, who knows most, and which lines of a file speak of something."""

from dataclasses import replace

import pytest

from keepsake.core import clock, evidence, passages
from keepsake.core.evidence import Evidence, Findings

NOW = clock.parse("2024-08-01")
COMMIT = Evidence("api", "commit", "1a2b3c4d5e", "Add reserve", "Add reserve", "2024-05-02T10:00:00Z", "Ada")


@pytest.mark.parametrize(
    ("one", "label"),
    [
        (COMMIT, "commit 1a2b3c4 (2024-05-02, Ada): Add reserve"),
        (replace(COMMIT, kind="pull", key="pr/12"), "PR #12 (2024-05-02, Ada): Add reserve"),
        (replace(COMMIT, kind="issue", key="issue/7", author=""), "issue #7 (2024-05-02): Add reserve"),
        (replace(COMMIT, kind="release", key="release/v1.0", title="v1.0"), "release v1.0 (2024-05-02, Ada): v1.0"),
        (
            Evidence("api", "file", "a.py", "a.py", "", path="a.py", start=10, end=40, revision="9f8e7d6c"),
            "a.py#L10-L40 (at 9f8e7d6)",
        ),
        (replace(COMMIT, title="See [2](http://x)"), "commit 1a2b3c4 (2024-05-02, Ada): See \\[2\\]\\(http://x)"),
        (Evidence("api", "memory", "77", "", "text", "2024-05-02T10:00:00Z"), "memory 77 (2024-05-02)"),
    ],
)
def test_every_source_reads_as_people_call_it(one: Evidence, label: str) -> None:
    assert one.label == label


def deed(author: str, day: str, key: str) -> Evidence:
    return replace(COMMIT, author=author, date=f"{day}T00:00:00Z", key=key)


def test_who_knows_counts_how_often_and_how_recently() -> None:
    old = [deed("Bob", "2020-01-01", f"b{n}") for n in range(9)]
    new = [deed("Ada", "2024-07-01", "a1"), deed("Ada", "2024-07-20", "a2")]

    known = evidence.people([*old, *new, deed("", "2024-07-30", "x")], NOW)

    assert [(one.name, one.touched, one.last) for one in known] == [("Ada", 2, "2024-07-20"), ("Bob", 9, "2020-01-01")]
    assert [one.key for one in known[0].proof] == ["a2", "a1"]


def test_findings_lose_what_rests_on_lost_evidence() -> None:
    one, two = deed("Ada", "2024-07-01", "a1"), deed("Bob", "2024-07-02", "b1")
    found = Findings((one, two), turn=one, people=tuple(evidence.people([one, two], NOW)), changes=(two, one))

    left = found.without([one])

    assert (left.evidence, left.turn, left.changes) == ((two,), None, (two,))
    assert [person.name for person in left.people] == ["Bob"]


def test_the_lines_that_make_a_thing_come_first() -> None:
    lines = ["import reserve", *[""] * 60, "def reserve(hold):", "    return hold", "", "", "def other():"]

    best, other = passages.windows(lines, ["reserve"], [])

    assert (best.start, best.end) == (62, 66)
    assert (other.start, other.end) == (1, 1)


def test_lines_that_say_nothing_of_it_give_no_window() -> None:
    assert passages.windows(["a = 1", "b = 2"], ["reserve"], ["hold"]) == []
    assert passages.windows([], ["reserve"], []) == []
