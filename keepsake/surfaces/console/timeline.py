"""Timeline: what agents did, session by session, and what they kept from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core import clock
from keepsake.core.clock import DAY, MINUTE
from keepsake.ops import sessions, timeline
from keepsake.ops.records import MOST, Record
from keepsake.ops.sessions import Activity, Session
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.pages import charts, words

#: What each filter shows: kinds of memories, or sessions alone.
SHOWN: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "": ("Everything", ()),
    "sessions": ("Sessions", ()),
    "decisions": ("Decisions", ("decision", "constraint", "heuristic", "rejected")),
    "milestones": ("Milestones", ("milestone",)),
}
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
#: Minutes that a clock may be from UTC.
FARTHEST = 15 * 60


@dataclass(slots=True)
class Group:
    """What came from one session on a day, oldest first; or what came from none."""

    session: Session | None
    records: list[Record] = field(default_factory=list)


@dataclass(slots=True)
class Day:
    """A day of the reader's."""

    weekday: str
    date: str
    groups: list[Group] = field(default_factory=list)
    milestones: list[Record] = field(default_factory=list)


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [console.page("/b/{bank}/timeline", show), console.page("/b/{bank}/timeline/{id}", session)]


async def show(visit: Visit) -> Response:
    """The days, newest first."""
    asked, client, day = visit.query("show"), visit.query("client")[:100], visit.query("date")
    asked = asked if asked in SHOWN else ""
    offset = offset_of(visit.request)
    known = await visit.ask(sessions.activity, offset_minutes=offset)
    if asked == "sessions" or client:
        days, earlier = await _sessions(visit, client, offset)
    else:
        days, earlier = await _memories(visit, SHOWN[asked][1], offset)
    is_first = not (visit.query("before") or day)
    values = {
        "days": days,
        "earlier": earlier,
        "asked": "sessions" if client else asked,
        "shown": SHOWN,
        "client": client,
        "clients": known.clients,
        "date": day,
        "is_first": is_first,
        "activity": _drawn(known) if is_first and any(known.days) else None,
        "facts": _facts(known),
    }
    return await visit.page("timeline.html", values, at="timeline")


def offset_of(request: Request) -> int:
    """How many minutes the reader's clock is ahead of UTC, as their browser says."""
    told = request.cookies.get("offset", "")
    is_number = len(told) < 6 and told.removeprefix("-").isdecimal() and told.isascii()
    return int(told) if is_number and abs(int(told)) <= FARTHEST else 0


async def _sessions(visit: Visit, client: str, offset: int) -> tuple[list[Day], str]:
    """Sessions by the day on which they were last active, and the one to go on below."""
    found = await visit.ask(sessions.list_, client=client, before=visit.query("before")[:64] or None, limit=PAGE + 1)
    placed = [(clock.parse(one.last_at), Group(one)) for one in found.sessions[:PAGE]]
    return _dated(placed, offset), found.sessions[PAGE - 1].id if len(found.sessions) > PAGE else ""


async def _memories(visit: Visit, kinds: tuple[str, ...], offset: int) -> tuple[list[Day], str]:
    """Memories by day and session, and the one to go on before."""
    before, day = visit.query("before")[:64], visit.query("date")
    at = None if before else clock.iso(_end_of(day, offset, visit.ctx.now))
    found = await visit.ask(
        timeline.timeline, id=before or None, at=at, before=min(PAGE, MOST), after=0, kinds=list(kinds)
    )
    records = [entry.record for entry in found.entries if entry.position < 0]
    keys = sorted({record.session for record in records if record.session})
    known = (await visit.ask(sessions.list_, keys=keys, limit=len(keys))).sessions if keys else []
    by_key = {one.key: one for one in known}
    groups: dict[tuple[int, str], Group] = {}
    for record in records:
        day_number = (clock.parse(record.at) + offset * MINUTE) // DAY
        group = groups.setdefault((day_number, record.session), Group(by_key.get(record.session)))
        group.records.append(record)
    placed = [(clock.parse(group.records[-1].at), group) for group in groups.values()]
    return _dated(sorted(placed, key=lambda one: one[0], reverse=True), offset), records[0].id if len(
        records
    ) == PAGE else ""


def _dated(placed: list[tuple[int, Group]], offset: int) -> list[Day]:
    """Groups under the reader's days, newest first; milestones stand by themselves."""
    days: dict[int, Day] = {}
    for at, group in placed:
        number = (at + offset * MINUTE) // DAY
        day = days.setdefault(number, Day(WEEKDAYS[(number + 3) % 7], _date(number)))
        if group.session is None:
            day.milestones += [one for one in group.records if one.kind == "milestone"]
            group.records = [one for one in group.records if one.kind != "milestone"]
        if group.session is not None or group.records:
            day.groups.append(group)
    return [days[number] for number in sorted(days, reverse=True)]


def _date(number: int) -> str:
    year, month, day = clock.iso(number * DAY)[:10].split("-")
    return f"{int(day)} {MONTHS[int(month) - 1]} {year}"


def _end_of(day: str, offset: int, now: int) -> int:
    """The end of a day that someone named, else of now."""
    try:
        return min(clock.parse(f"{day[:10]}T00:00:00Z") + DAY - offset * MINUTE, now + MINUTE)
    except ValueError:
        return now + MINUTE


def _drawn(known: Activity) -> Markup:
    """The weeks as squares."""
    first = clock.parse(f"{known.starts_on}T00:00:00Z") // DAY
    months: list[tuple[int, str]] = []
    for week in range(-(-len(known.days) // 7)):
        name = _date(first + 7 * week).split()[1]
        if not months or (months[-1][1] != name and week - months[-1][0] > 1):
            months.append((week, name))
    label = f"Sessions per day in the last 26 weeks: {words.count(sum(known.days), 'session')} in all."
    return charts.heat(known.days, label, months)


def _facts(known: Activity) -> list[tuple[str, str]]:
    """The weeks in words."""
    if not any(known.days):
        return []
    first = clock.parse(f"{known.starts_on}T00:00:00Z") // DAY
    weeks = [sum(known.days[at : at + 7]) for at in range(0, len(known.days), 7)]
    busiest = max(range(len(weeks)), key=lambda week: weeks[week])
    week = f"Week of {_date(first + 7 * busiest)}, {words.count(weeks[busiest], 'session')}"
    active = sum(1 for day in known.days if day)
    return [
        ("Sessions", f"{words.number(sum(known.days))} in 26 weeks"),
        ("Active", f"on {words.count(active, 'day')}"),
        ("Busiest", week),
        ("Clients", words.listed(known.clients[:4])),
    ]


async def session(visit: Visit) -> Response:
    """One session with what came from it."""
    after = visit.query("after")[:64]
    found = await visit.ask(sessions.get, id=visit.path("id"), after=after or None, limit=PAGE)
    values = {"session": found, "is_first": not after}
    return await visit.page("session.html", values, at="timeline")
