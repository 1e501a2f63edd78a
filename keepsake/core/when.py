"""The times a text speaks of, as windows; relative words count from a given moment."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from keepsake.core import clock


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A stretch of time in microseconds UTC: from `start` up to, but not including, `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Found:
    """A time in the text: where it stands and when it is; `month` is set where the year was not said."""

    at: int
    to: int
    window: Window
    month: int = 0


EARLIEST = clock.parse("0001-01-01")
LATEST = clock.parse("9999-12-31")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTH_NAMES = "january february march april may june july august september october november december".split()
_MONTHS = {name[:n]: at for at, name in enumerate(_MONTH_NAMES, 1) for n in (3, len(name))} | {"sept": 9}
_DAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday".split()
_DAYS = {name[:3]: at for at, name in enumerate(_DAY_NAMES)}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_COUNTS = {
    word: at for at, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
} | {"a": 1, "an": 1, "a couple of": 2, "couple of": 2, "a couple": 2, "a few": 3, "few": 3, "several": 4}
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": 4}
#: Months that are also other words: alone, they need a word such as "in" before them.
_OTHER_WORDS = frozenset("may march april june mar jun".split())
#: What tells a number of four digits from a year.
_MEASURES = frozenset("ms px kb mb gb rpm percent of or times more lines".split())
_NO_PLURALS = frozenset("was is has his this as its us".split())
_BEFORE_NUMBERS = frozenset("is are was to of than over about limit port at least most only under = by and or".split())

_MONTH = rf"(?P<month>{'|'.join(_MONTH_NAMES)}|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)(?!\w)"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?P<th>st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)(?![\w%°]|[.,:/-]\d)"
_TO = r"\s*(?:-|–|—|to|and|until|through|till)\s*"
_COUNT = rf"(?P<count>\d{{1,4}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})"
_WEEKDAY = rf"(?P<weekday>{'|'.join(_DAY_NAMES)}|(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)\b\.?)(?!\w)"
_UNIT = r"(?P<unit>minute|hour|day|week|month|quarter|year)"
_WHICH = r"(?P<which>last|this|next|past|previous|current|coming)"
_SEASON = r"(?P<season>spring|summer|autumn|fall|winter)\b"
_IN = r"(?P<cue>in|on|last|this|next|since|until|till|before|after|by|during|early|late|mid|of|from|between|past)"
_IN_YEAR = r"(?P<cue>in|since|until|till|before|after|by|during|early|late|mid|from|between|year)"
_FREE = r"(?<![\w.:/$€£#=-])"

#: Most texts speak of no time: one look tells.
_GATE = re.compile(
    rf"\b(?:\d{{4}}|Q[1-4]|yesterday|tomorrow|today|tonight|night|morning|afternoon|evening"
    rf"|{_UNIT}|{_SEASON}|{_MONTH}|{_WEEKDAY})",
    re.IGNORECASE,
)
Read = Callable[[re.Match[str], datetime], Window | None]


def windows(text: str, now: int) -> list[Window]:
    """Find the times a text speaks of, the most specific ones, in the order they are said."""
    if not _GATE.search(text):
        return []
    found = _joined(text, sorted(_atoms(text, _moment(now)), key=lambda one: one.at), now)
    kept = list(dict.fromkeys(Window(max(one.window.start, EARLIEST), min(one.window.end, LATEST)) for one in found))
    kept = [one for one in kept if one.start < one.end]
    return [one for one in kept if not any(one != it and one.start <= it.start and it.end <= one.end for it in kept)]


def _moment(now: int) -> datetime:
    """The moment as a date, kept far enough from the ends of the calendar to count both ways."""
    return _EPOCH + timedelta(microseconds=min(max(now, clock.parse("0200-01-01")), clock.parse("9800-01-01")))


def _stamp(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _months(year: int, month: int, count: int = 1) -> Window:
    """A stretch of whole months; a month past December counts on."""
    first, last = month - 1, month - 1 + count
    start = datetime(year + first // 12, first % 12 + 1, 1, tzinfo=UTC)
    return Window(_stamp(start), _stamp(datetime(year + last // 12, last % 12 + 1, 1, tzinfo=UTC)))


def _days(start: datetime, count: int = 1) -> Window:
    """A stretch of whole days from the midnight before a moment."""
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    return Window(_stamp(midnight), _stamp(midnight + timedelta(days=count)))


def _unit(unit: str, moment: datetime, shift: int) -> Window:
    """The calendar unit so many units from the one a moment is in."""
    if unit in ("minute", "hour"):
        size = clock.MINUTE if unit == "minute" else clock.HOUR
        start = (_stamp(moment) // size + shift) * size
        return Window(start, start + size)
    if unit == "day":
        return _days(moment + timedelta(days=shift))
    if unit == "week":
        return _days(moment + timedelta(days=7 * shift - moment.weekday()), 7)
    if unit == "month":
        return _months(moment.year, moment.month + shift)
    if unit == "quarter":
        return _months(moment.year, (moment.month - 1) // 3 * 3 + 1 + 3 * shift, 3)
    return _months(moment.year + shift, 1, 12)


def _yearly(make: Callable[[int], Window], now: datetime, which: str) -> Window | None:
    """What comes every year: the nearest that has begun, or the last, this or next one."""
    stamp = _stamp(now)
    near: list[Window] = []
    for year in range(now.year - 8, now.year + 9):
        with suppress(ValueError):  # the 29th of February is not in every year
            near.append(make(year))
    if which in ("next", "coming"):
        return next((one for one in near if one.start > stamp), None)
    if which in ("last", "previous"):
        return next((one for one in reversed(near) if one.end <= stamp), None)
    if which in ("this", "current"):
        open_now = next((one for one in near if one.start <= stamp < one.end), None)
        return open_now or next((one for one in near if _moment(one.start).year == now.year), None)
    return next((one for one in reversed(near) if one.start <= stamp), None)


def _part_of_year(match: re.Match[str], now: datetime, month: int, count: int) -> Window | None:
    """Some months of the year that was said, else of the one that the word before them means."""
    if year := _part(match, "year"):
        return _months(int(year), month, count)
    return _yearly(lambda year: _months(year, month, count), now, _part(match, "cue"))


def _part(match: re.Match[str], name: str) -> str:
    return (match.groupdict().get(name) or "").lower()


def _iso(match: re.Match[str], _: datetime) -> Window | None:
    year, month = int(match["y"]), int(match["m"])
    if not match["d"]:
        return _months(year, month) if 1900 <= year < 2100 and month <= 12 else None
    day = datetime(year, month, int(match["d"]), tzinfo=UTC)
    if not match["clock"]:
        return _days(day)
    start = clock.parse(f"{day:%Y-%m-%d}T{match['clock']}{(match['zone'] or 'Z').upper()}")
    return Window(start, start + (clock.SECOND if match["clock"].count(":") > 1 else clock.MINUTE))


def _date(match: re.Match[str], now: datetime) -> Window | None:
    """A day of a month, or a few days of it; may and march need more than a number beside them."""
    word = match["month"]
    if word.rstrip(".") in ("may", "march", "mar") and not (match["th"] or match["year"]):
        return None
    month, last = _MONTHS[_part(match, "month").rstrip(".")], int(match["day"])
    first = int(_part(match, "first") or last)

    def days(year: int) -> Window:
        start = datetime(year, month, first, tzinfo=UTC)
        return Window(_stamp(start), _days(datetime(year, month, last, tzinfo=UTC)).end)

    return days(int(match["year"])) if match["year"] else _yearly(days, now, "")


def _month(match: re.Match[str], now: datetime) -> Window | None:
    """A month with its year, or the nearest one where a word or the capital shows that a month is meant."""
    month = _MONTHS[_part(match, "month").rstrip(".")]
    if match.groupdict().get("year"):
        return _part_of_year(match, now, month, 1)
    word, cue = match["month"].rstrip("."), _part(match, "cue")
    is_capital = word[0].isupper()
    is_short = len(word) < 4 and word != "may"
    is_other = word.lower() in _OTHER_WORDS and (not cue or (cue in ("this", "by") and not is_capital))
    is_meant = (is_capital or (cue and not is_short)) and not is_other
    return _part_of_year(match, now, month, 1) if is_meant else None


def _quarter(match: re.Match[str], now: datetime) -> Window | None:
    said = _part(match, "quarter")
    number = int(said) if said.isdigit() else _ORDINALS[said]
    return _part_of_year(match, now, 3 * number - 2, 3)


def _season(match: re.Match[str], now: datetime) -> Window | None:
    return _part_of_year(match, now, _SEASONS[_part(match, "season")], 3)


def _which(match: re.Match[str], now: datetime) -> Window:
    """Last week, this month, next year; "the past week" ends now."""
    unit, which = _part(match, "unit"), _part(match, "which")
    shift = {"last": -1, "past": -1, "previous": -1, "next": 1, "coming": 1}.get(which, 0)
    if unit == "weekend":
        return _days(now + timedelta(days=5 - now.weekday() + 7 * shift), 2)
    if unit in ("morning", "afternoon", "evening"):
        return _days(now + timedelta(days=shift))
    return _rolling(unit, 1, now) if which == "past" else _unit(unit, now, shift)


def _rolling(unit: str, count: int, now: datetime) -> Window:
    days = {"day": 1, "week": 7, "month": 30, "quarter": 91, "year": 365}
    length = timedelta(days=days[unit] * count) if unit in days else timedelta(**{f"{unit}s": count})
    return Window(_stamp(now - length), _stamp(now) + 1)


def _counted(match: re.Match[str]) -> int:
    said = re.sub(r"\s+", " ", _part(match, "count"))
    return int(said) if said.isdigit() else _COUNTS[said]


def _off(match: re.Match[str], now: datetime) -> Window | None:
    """Three days ago, in two weeks, the last two months; `three days` alone is a length."""
    unit, count = _part(match, "unit"), _counted(match)
    if match["past"]:
        return _rolling(unit, count, now)
    return _unit(unit, now, -count if match["ago"] else count) if match["ago"] or match["ahead"] else None


def _word(match: re.Match[str], now: datetime) -> Window:
    said = re.sub(r"\s+", " ", match[0].lower())
    back = {"the day before yesterday": 2, "yesterday": 1, "last night": 1, "tomorrow": -1}
    return _days(now - timedelta(days=back.get(said, -2 if "after" in said and "tomorrow" in said else 0)))


def _weekday(match: re.Match[str], now: datetime) -> Window | None:
    """The nearest such day that has begun; last Friday is never today, and this Friday is of this week."""
    word, which = match["weekday"], _part(match, "cue")
    if len(word.rstrip(".")) < 6 and not (which and word[0].isupper()):
        return None
    day = _DAYS[word[:3].lower()]
    back = (now.weekday() - day) % 7
    back = {"last": back or 7, "past": back or 7, "this": now.weekday() - day, "next": back - 7}.get(which, back)
    return _days(now - timedelta(days=back))


def _year(match: re.Match[str], now: datetime) -> Window | None:
    """A number is a year when a word says so and it counts nothing, or when it stands alone and is near enough."""
    year, text = int(match["year"]), match.string
    counted = re.match(r"\s+([a-z]+)", text[match.end() : match.end() + 20])
    if counted and (counted[1] in _MEASURES or (counted[1].endswith("s") and counted[1] not in _NO_PLURALS)):
        return None
    if match["cue"]:
        return _months(year, 1, 12)
    before = next(iter(reversed(text[max(0, match.start() - 12) : match.start("year")].lower().split())), "")
    return _months(year, 1, 12) if 1950 <= year <= now.year + 5 and before not in _BEFORE_NUMBERS else None


def _years(match: re.Match[str], _: datetime) -> Window | None:
    """A decade, or from one year to another; `2019 and 2021` without `between` are two."""
    if "and" in match[0].lower() and not match["cue"]:
        return None
    first = int(match["first"])
    last = int(match["year"] or first + 9)
    return _months(first, 1, 12 * (last - first + 1)) if first <= last else None


def _reads(*pairs: tuple[str, Read]) -> list[tuple[re.Pattern[str], Read]]:
    return [(re.compile(pattern, re.IGNORECASE), read) for pattern, read in pairs]


#: From the most telling form to the least: what one has read, the next leaves alone.
_FORMS = _reads(
    (
        r"(?<![\w.-])(?P<y>\d{4})[-/](?P<m>\d\d)(?:[-/](?P<d>\d\d)"
        r"(?:[T ](?P<clock>\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(?P<zone>Z|[+-]\d\d:\d\d)?)?)?(?![\w/-])",
        _iso,
    ),
    (rf"(?:\b(?P<cue>between|from)\s+)?{_FREE}(?P<first>(?:19|20)\d\d){_TO}{_YEAR}", _years),
    (rf"{_FREE}(?P<first>[0-3]?\d)(?:st|nd|rd|th)?{_TO}{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?", _date),
    (rf"\b{_MONTH}\s+(?P<first>[0-3]?\d)(?:st|nd|rd|th)?{_TO}{_DAY}(?!\w)(?:,?\s+{_YEAR})?", _date),
    (rf"{_FREE}{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?", _date),
    (rf"\b{_MONTH}\s+{_DAY}(?![\w%]|[.:]\d)(?:,?\s+{_YEAR})?", _date),
    (rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}", _month),
    (rf"\bQ(?P<quarter>[1-4])(?:\s+(?:of\s+)?|/|-){_YEAR}", _quarter),
    (r"\b(?P<year>(?:19|20)\d\d)[\s-]?Q(?P<quarter>[1-4])\b", _quarter),
    (rf"\b(?P<quarter>first|second|third|fourth|last|1st|2nd|3rd|4th)\s+quarter\s+(?:of\s+)?{_YEAR}", _quarter),
    (r"\b(?-i:Q)(?P<quarter>[1-4])\b", _quarter),
    (rf"\b{_SEASON}(?:\s+of)?,?\s+{_YEAR}", _season),
    (rf"\b{_IN}\s+(?:the\s+)?{_SEASON}(?!\s+(?:of|back|behind|apart|under|into|cleaning)\b)", _season),
    (r"\b(?:(?:the day before )?yesterday|last night|to(?:day|night)|(?:the day after )?tomorrow)\b", _word),
    (rf"\b(?:(?P<past>last|past)\s+|(?P<ahead>in)\s+)?{_COUNT}\s+{_UNIT}s?(?P<ago>\s+(?:ago|back|earlier))?\b", _off),
    (rf"\b{_WHICH}\s+(?P<unit>weekend|week|month|quarter|year|morning|afternoon|evening)\b", _which),
    (rf"\b{_IN}\s+(?:the\s+)?{_WEEKDAY}", _weekday),
    (rf"(?<!every )(?<!each )(?<!\bis )(?<!\bare )(?<!\bbe )(?<!\bto )\b{_WEEKDAY}(?P<cue>)", _weekday),
    (rf"\b{_IN}[\s-]+(?:early\s+|late\s+|mid-?\s*)?{_MONTH}", _month),
    (rf"\b{_MONTH}(?P<cue>)", _month),
    (r"\b(?P<first>(?:19|20)\d0)['’]?s\b(?P<cue>)(?P<year>)", _years),
    (rf"\b{_IN_YEAR}[\s-]+(?:the\s+year\s+|early\s+|late\s+|mid-?\s*)?{_YEAR}", _year),
    (rf"(?<![^\s(])(?P<cue>){_YEAR}(?=\s*(?:$|[?!.;,)]|['’]s))", _year),
)
_SHIFT = re.compile(
    rf"\b(?:{_COUNT}\s+{_UNIT}s?|(?:the\s+)?(?P<one>day|week|month|year|weekend|{'|'.join(_DAY_NAMES)}))"
    r"\s+(?P<side>before|after|of|prior to)\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_OPEN = re.compile(r"\b(?P<side>since|before|after|until|till|prior to)\s+(?:the\s+)?(?:in\s+|on\s+)?$", re.IGNORECASE)
_CUED = re.compile(r"(since|before|after|until|till)\b", re.IGNORECASE)
_SHARES = re.compile(r",?\s*(?:and|or|&)?\s*(?:in\s+)?", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*(?:and|to|until|till|through|-|–|—)\s*(?:the\s+)?$", re.IGNORECASE)
_FROM = re.compile(r"\b(?:between|from)\b", re.IGNORECASE)


def _atoms(text: str, now: datetime) -> Iterator[Found]:
    """The single times in a text, none of them within another."""
    taken = bytearray(len(text))
    for pattern, read in _FORMS:
        for match in pattern.finditer(text):
            at, to = match.span()
            if any(taken[at:to]):
                continue
            # A date that is none, such as the 31st of February, is still not two other times.
            try:
                window = read(match, now)
            except (ValueError, OverflowError):
                taken[at:to] = b"\1" * (to - at)
                continue
            if window:
                taken[at:to] = b"\1" * (to - at)
                is_yearless = read is _month and not _part(match, "year")
                yield Found(at, to, window, _MONTHS[_part(match, "month").rstrip(".")] if is_yearless else 0)


def _joined(text: str, found: list[Found], now: int) -> Iterator[Found]:
    """Make one window of `between A and B`, and open ones of `since A` and `before A`."""
    until = 0
    for one, after in zip(found, [*found[1:], None], strict=False):
        if one.at < until:
            continue
        if after and (both := _stretched(text, one, after)):
            until = both.to
            yield both
            continue
        # In `the Friday before 22 October` the Friday is no time of its own.
        if after and (shift := _SHIFT.search(text, one.at, after.at)) and shift.start() <= one.at + 4:
            continue
        # A date at the end of the calendar has no week after it.
        try:
            yield _moved(text, _dated(text, one, after), now)
        except (ValueError, OverflowError):
            yield one


def _dated(text: str, one: Found, after: Found | None) -> Found:
    """A month that shares the year of the one after it, as in `May and June 2023`."""
    if not one.month or not after or after.month or not _SHARES.fullmatch(text, one.to, after.at):
        return one
    return replace(one, window=_months(_moment(after.window.start).year, one.month))


def _stretched(text: str, one: Found, after: Found) -> Found | None:
    """The time from one to another, where a word says so; a month without a year takes the other's."""
    gap = text[one.to : after.at]
    is_range = _FROM.search(text, max(0, one.at - 14), one.to) or "and" not in gap
    if not is_range or not _BETWEEN.fullmatch(gap):
        return None
    start = one.window.start
    if one.month:
        year = _moment(after.window.start).year
        start = _months(year, one.month).start
        start = start if start <= after.window.start else _months(year - 1, one.month).start
    return Found(one.at, after.to, Window(start, after.window.end)) if start < after.window.end else None


def _moved(text: str, one: Found, now: int) -> Found:
    """What stands before a time may shift it (`the week before`) or open it (`since`)."""
    before = text[max(0, one.at - 30) : one.at]
    if shift := _SHIFT.search(before):
        return replace(one, window=_shifted(shift, one.window))
    if not (side := _OPEN.search(before) or _CUED.match(text, one.at, one.to)):
        return one
    word, window = side[1].lower(), one.window
    if word not in ("since", "after"):
        return replace(one, window=Window(EARLIEST, window.end if word in ("until", "till") else window.start))
    start = window.start if word == "since" else window.end
    return replace(one, window=Window(start, now + 1 if start <= now else LATEST))


def _shifted(shift: re.Match[str], window: Window) -> Window:
    """The week before a date, the Friday after it, the week it is in, or two months from it."""
    is_before = _part(shift, "side") in ("before", "prior to")
    day, one = _moment(window.start if is_before else window.end - 1), _part(shift, "one")
    if _part(shift, "side") == "of":
        return _unit("week", day, 0) if one == "week" else window
    step = -1 if is_before else 1
    if not one:
        return _unit(_part(shift, "unit"), day, step * _counted(shift))
    if one in ("day", "week", "month", "year"):
        length = {"day": 1, "week": 7, "month": 30, "year": 365}[one] * clock.DAY
        return Window(window.start - length, window.start) if is_before else Window(window.end, window.end + length)
    wanted = 5 if one == "weekend" else _DAYS[one[:3]]
    away = (step * (wanted - day.weekday()) - 1) % 7 + 1
    return _days(day + timedelta(days=step * away), 2 if one == "weekend" else 1)
