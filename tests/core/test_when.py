"""Times in texts: what is read, against which moment, and what only looks like a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsake.core import clock, when
from keepsake.core.when import EARLIEST, LATEST, Window

#: A Wednesday.
NOW = clock.parse("2024-06-12T10:00:00")


def read(text: str, now: int = NOW) -> list[tuple[str, str]]:
    """The windows as dates; a time of day only where it is not midnight."""
    return [(shown(one.start), shown(one.end)) for one in when.windows(text, now)]


def shown(moment: int) -> str:
    return clock.iso(moment).removesuffix("Z").removesuffix(":00").removesuffix("T00:00")


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("on 2023-05-07", "2023-05-07", "2023-05-08"),
        ("at 2023-05-07T10:30:00Z", "2023-05-07T10:30", "2023-05-07T10:30:01"),
        ("at 2023-05-07 10:30", "2023-05-07T10:30", "2023-05-07T10:31"),
        ("at 2023-05-07T10:30:00+02:00", "2023-05-07T08:30", "2023-05-07T08:30:01"),
        ("in 2023-05", "2023-05-01", "2023-06-01"),
        ("on 7 May 2023", "2023-05-07", "2023-05-08"),
        ("1:56 pm on 8 May, 2023", "2023-05-08", "2023-05-09"),
        ("on May 7, 2023", "2023-05-07", "2023-05-08"),
        ("on May 7th", "2024-05-07", "2024-05-08"),
        ("on the 7th of August", "2023-08-07", "2023-08-08"),
        ("on Dec 25", "2023-12-25", "2023-12-26"),
        ("on 29 February", "2024-02-29", "2024-03-01"),
        ("from 3 to 5 May 2023", "2023-05-03", "2023-05-06"),
        ("May 3-5, 2023", "2023-05-03", "2023-05-06"),
        ("in May 2023", "2023-05-01", "2023-06-01"),
        ("What happened in 2022?", "2022-01-01", "2023-01-01"),
        ("2023", "2023-01-01", "2024-01-01"),
        ("in the 1990s", "1990-01-01", "2000-01-01"),
        ("Q3 2023", "2023-07-01", "2023-10-01"),
        ("2023 Q2", "2023-04-01", "2023-07-01"),
        ("the third quarter of 2022", "2022-07-01", "2022-10-01"),
        ("in Q1", "2024-01-01", "2024-04-01"),
    ],
)
def test_what_is_said_outright_is_read(text: str, start: str, end: str) -> None:
    assert read(text) == [(start, end)]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", "2024-06-12", "2024-06-13"),
        ("yesterday", "2024-06-11", "2024-06-12"),
        ("the day before yesterday", "2024-06-10", "2024-06-11"),
        ("last night", "2024-06-11", "2024-06-12"),
        ("tomorrow", "2024-06-13", "2024-06-14"),
        ("the day after tomorrow", "2024-06-14", "2024-06-15"),
        ("this morning", "2024-06-12", "2024-06-13"),
        ("3 days ago", "2024-06-09", "2024-06-10"),
        ("two weeks ago", "2024-05-27", "2024-06-03"),
        ("a couple of months ago", "2024-04-01", "2024-05-01"),
        ("a year ago", "2023-01-01", "2024-01-01"),
        ("an hour ago", "2024-06-12T09:00", "2024-06-12T10:00"),
        ("in 3 days", "2024-06-15", "2024-06-16"),
        ("this week", "2024-06-10", "2024-06-17"),
        ("last week", "2024-06-03", "2024-06-10"),
        ("last month", "2024-05-01", "2024-06-01"),
        ("next year", "2025-01-01", "2026-01-01"),
        ("last quarter", "2024-01-01", "2024-04-01"),
        ("last weekend", "2024-06-08", "2024-06-10"),
        ("last Tuesday", "2024-06-11", "2024-06-12"),
        ("last Wednesday", "2024-06-05", "2024-06-06"),
        ("on Friday", "2024-06-07", "2024-06-08"),
        ("on wednesday", "2024-06-12", "2024-06-13"),
        ("this Friday", "2024-06-14", "2024-06-15"),
        ("next Monday", "2024-06-17", "2024-06-18"),
        ("on Fri", "2024-06-07", "2024-06-08"),
        ("in March", "2024-03-01", "2024-04-01"),
        ("in july", "2023-07-01", "2023-08-01"),
        ("last June", "2023-06-01", "2023-07-01"),
        ("this May", "2024-05-01", "2024-06-01"),
        ("last spring", "2024-03-01", "2024-06-01"),
        ("last summer", "2023-06-01", "2023-09-01"),
        ("summer of 2022", "2022-06-01", "2022-09-01"),
        ("winter 2022", "2022-12-01", "2023-03-01"),
        ("in the fall", "2023-09-01", "2023-12-01"),
    ],
)
def test_relative_words_count_from_the_moment_given(text: str, start: str, end: str) -> None:
    assert read(text) == [(start, end)]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("between March and May 2024", "2024-03-01", "2024-06-01"),
        ("from November to February 2024", "2023-11-01", "2024-03-01"),
        ("between 2019 and 2021", "2019-01-01", "2022-01-01"),
        ("2019-05-01 to 2019-05-03", "2019-05-01", "2019-05-04"),
        ("the week before 9 June 2023", "2023-06-02", "2023-06-09"),
        ("the Friday before 22 October 2023", "2023-10-20", "2023-10-21"),
        ("the weekend after 3 May 2023", "2023-05-06", "2023-05-08"),
        ("two days after 3 May 2023", "2023-05-05", "2023-05-06"),
        ("the week of 7 June 2023", "2023-06-05", "2023-06-12"),
        ("the last three days", "2024-06-09T10:00", "2024-06-12T10:00:00.000001"),
    ],
)
def test_words_around_a_time_stretch_or_move_it(text: str, start: str, end: str) -> None:
    assert read(text) == [(start, end)]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("since June", clock.parse("2024-06-01"), NOW + 1),
        ("since yesterday", clock.parse("2024-06-11"), NOW + 1),
        ("after 2021", clock.parse("2022-01-01"), NOW + 1),
        ("after 2030-01-01", clock.parse("2030-01-02"), LATEST),
        ("before 2021", EARLIEST, clock.parse("2021-01-01")),
        ("until March 2020", EARLIEST, clock.parse("2020-04-01")),
    ],
)
def test_open_times_end_now_or_have_no_beginning(text: str, start: int, end: int) -> None:
    assert when.windows(text, NOW) == [Window(start, end)]


def test_months_joined_by_and_share_their_year() -> None:
    assert read("in May and June 2022") == [("2022-05-01", "2022-06-01"), ("2022-06-01", "2022-07-01")]


def test_the_more_specific_time_stands_for_the_wider_one() -> None:
    assert read("In 2023, on 7 May 2023, it rained.") == [("2023-05-07", "2023-05-08")]


def test_this_winter_in_january_began_in_december() -> None:
    assert read("this winter", clock.parse("2024-01-15")) == [("2023-12-01", "2024-03-01")]


@pytest.mark.parametrize(
    "text",
    [
        "we may march on",
        "May I ask you something?",
        "This may be wrong",
        "March was a verb here",
        "April said hello to June",
        "all 7 may be wrong",
        "march 5 miles with me",
        "we wed and sat in the sun",
        "they fall in love",
        "a spring in the mattress",
        "every Friday",
        "the deploy day is Tuesday",
        "the standups are Mondays and the review was moved to Thursday",
        "we meet on Fridays",
        "the limit is 2000.",
        "after 2000 iterations",
        "in 2000 rows",
        "port 2048",
        "v2.2023",
        "31 February 2023",
        "2023-13-45",
        "it took three days",
        "at the end of the day",
        "",
    ],
)
def test_what_only_looks_like_a_time_is_left_alone(text: str) -> None:
    assert when.windows(text, NOW) == []


PIECES = st.sampled_from(
    "May march 7 31 2023 9999-12-31 0001-01-01 Q3 last next this the week month ago before since until between and to "
    "Friday winter of in yesterday two 1999 - , . 2024-02-30".split()
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=12).map(" ".join)), st.integers())
def test_any_text_at_any_moment_gives_windows_that_can_be_written(text: str, now: int) -> None:
    for window in when.windows(text, now):
        assert EARLIEST <= window.start < window.end <= LATEST
        assert clock.iso(window.start) and clock.iso(window.end)
