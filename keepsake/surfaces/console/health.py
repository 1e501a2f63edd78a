"""Health: what is broken now and what broke before, how everything watched stands, and how this server is."""

from dataclasses import dataclass, replace

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake import __version__
from keepsake.core import clock
from keepsake.core.clock import HOUR
from keepsake.core.errors import BadInput, NotFound
from keepsake.ops import anomalies, check_history, checks, incidents, jobs
from keepsake.ops.check_history import Trend
from keepsake.ops.checks import CheckStatus
from keepsake.ops.incidents import Incident
from keepsake.surfaces.console.console import Console, reason
from keepsake.surfaces.console.health_plot import Period
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.pages import forms, rendering, words
from keepsake.surfaces.pages.forms import Fields

HERE = "/b/{bank}/health"
INCIDENT = HERE + "/incidents/{id}"
TABS = (
    ("incidents", "Incidents", HERE),
    ("checks", "Checks", HERE + "/checks"),
    ("anomalies", "Anomalies", HERE + "/anomalies"),
    ("server", "This server", HERE + "/server"),
)
#: How far back a plot goes.
PERIODS = ((12, "12 hours"), (24, "24 hours"), (72, "3 days"), (720, "30 days"))
STATES = {"up": ("passes", "ok", "ok"), "down": ("down", "bad", "x"), "new": ("waits", "", "")}
#: Checks that the incidents' page shows of all.
SOME = 5


@dataclass(frozen=True, slots=True)
class Line:
    """A check as tables show it."""

    check: CheckStatus
    hours: list[float]
    uptime: str
    #: What fills the height of its small line.
    top: float = 1.0

    @property
    def stamp(self) -> tuple[str, str, str]:
        """How it stands, in a word."""
        is_odd = self.check.state == "up" and self.check.anomalies
        return ("unusual", "warn", "warn") if is_odd else STATES[self.check.state]

    @property
    def is_timed(self) -> bool:
        """Whether its latency is measured."""
        return self.check.kind not in checks.TARGETLESS

    @property
    def trend(self) -> str:
        """What the small line says."""
        if not self.hours:
            return "nothing measured in the last 24 hours"
        low, high = min(self.hours), max(self.hours)
        if not self.is_timed:
            return f"{percent(low)} to {percent(high)} of runs were heard in time"
        return f"between {words.spent(low)} and {words.spent(high)}, last {words.spent(self.hours[-1])}"


@dataclass(frozen=True, slots=True)
class Event:
    """Something in the story of an incident."""

    at: str
    text: str
    said: str = ""


def percent(share: float | None) -> str:
    """A share of runs; 99.98 % is not rounded to all of them."""
    if share is None:
        return "not yet known"
    return f"{min(100 * share, 99.99) if share < 1 else 100:.4g} %"


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [
        console.page(HERE, listed),
        console.page(INCIDENT, opened),
        console.form(INCIDENT + "/acknowledge", acknowledge),
        console.form(INCIDENT + "/note", note),
        console.page(HERE + "/checks", watched),
        console.page(HERE + "/check", one_check),
        console.page(HERE + "/anomalies", unusual),
        console.page(HERE + "/server", server),
    ]


async def _page(visit: Visit, tab: str, values: dict[str, object], status: int = 200) -> Response:
    shared: dict[str, object] = {"tab": tab, "health_tabs": TABS, "may_write": visit.may("watch:write")}
    if "open_incidents" not in values:
        shared["open_incidents"] = (await visit.ask(incidents.list_, state="open", limit=1)).total
    return await visit.page(f"health_{tab}.html", shared | values, at="health", status=status)


async def listed(visit: Visit) -> Response:
    """The incidents, newest first; what is open now is shown whole."""
    state = visit.query("state") if visit.query("state") in ("open", "resolved") else ""
    offset = visit.number("offset", most=100_000)
    is_open = await visit.ask(incidents.list_, state="open", limit=1)
    found = await visit.ask(incidents.list_, state=state or None, limit=PAGE, offset=offset)
    is_first = not state and not offset
    first = is_open.incidents[0] if is_first and is_open.incidents else None
    values: dict[str, object] = {
        "open_incidents": is_open.total,
        "incidents": [one for one in found.incidents if first is None or one.id != first.id],
        "state": state,
        "next": offset + PAGE if found.total > offset + PAGE else 0,
        "lines": await _lines(visit, SOME, 0) if is_first else [],
        "all": await visit.ask(checks.status, limit=1) if is_first else None,
    }
    shown = await _shown(visit, first) if first else {"incident": None}
    return await _page(visit, "incidents", values | shown)


async def opened(visit: Visit) -> Response:
    """One incident: its plot, its story, and what is known from before."""
    return await _one(visit, {})


async def _one(visit: Visit, values: dict[str, object], status: int = 200) -> Response:
    found = await visit.ask(incidents.get, id=visit.path("id"))
    return await _page(visit, "incident", values | await _shown(visit, found), status)


async def _shown(visit: Visit, one: Incident) -> dict[str, object]:
    """What is shown of an incident."""
    period = await _period(visit, one.check, _reach(visit, one))
    last = period.history.status if period else None
    events = [Event(said.at, f"{said.author} noted", said.text) for said in one.notes]
    if one.acknowledged_at:
        events.append(Event(one.acknowledged_at, f"{one.acknowledged_by} took it on"))
    if one.resolved_at:
        events.append(Event(one.resolved_at, f"Resolved after {_lasted(one)}"))
    elif last and last.last_at and last.reason:
        events.append(Event(last.last_at, f"Still so: it {last.reason}"))
    events.sort(key=lambda event: event.at, reverse=True)
    again = f", and came back {words.count(one.times - 1, 'time')}" if one.times > 1 else ""
    events.append(Event(one.opened_at, f"Opened: it {one.reason}{again}"))
    return {"incident": one, "lasted": _lasted(one), "events": events, "period": period}


def _lasted(one: Incident) -> str:
    until = clock.parse(one.resolved_at) if one.resolved_at else clock.now()
    return words.span(until - clock.parse(one.opened_at))


def _reach(visit: Visit, one: Incident) -> int:
    """The shortest period that has the incident in it, with what came before."""
    hours = (visit.ctx.now - clock.parse(one.opened_at)) // HOUR + 2
    return next((period for period, _ in PERIODS if period > hours), PERIODS[-1][0])


async def _period(visit: Visit, name: str, hours: int) -> Period | None:
    """A check's plot; nothing for one that was removed."""
    try:
        history = await visit.ask(check_history.history, name=name, hours=hours)
    except NotFound:
        return None
    down = await visit.ask(incidents.list_, check=name, limit=PAGE)
    odd = await visit.ask(anomalies.list_, check=name, limit=PAGE)
    return Period(history, hours, down.incidents, odd.anomalies)


async def acknowledge(visit: Visit, _: Fields) -> Response:
    """Take an incident on."""
    await visit.ask(incidents.acknowledge, id=visit.path("id"))
    return rendering.moved(_to(visit))


async def note(visit: Visit, fields: Fields) -> Response:
    """Say something of an incident."""
    said = forms.typed(fields, "text").replace("\r\n", "\n")
    try:
        await visit.ask(incidents.note, id=visit.path("id"), text=said)
    except BadInput as error:
        wrong = "Write what was found, done or decided." if not said.strip() else reason(error)
        return await _one(visit, {"wrong": wrong, "typed": said}, status=400)
    return rendering.moved(_to(visit))


def _to(visit: Visit) -> str:
    return visit.to(INCIDENT.replace("{id}", visit.path("id")))


async def watched(visit: Visit) -> Response:
    """Every check: how it stands, its last day, how much of the month it was up."""
    offset = visit.number("offset", most=100_000)
    found = await visit.ask(checks.status, limit=1)
    total = found.up + found.down + found.new
    values: dict[str, object] = {
        "all": found,
        "lines": await _lines(visit, PAGE, offset),
        "next": offset + PAGE if total > offset + PAGE else 0,
    }
    return await _page(visit, "checks", values)


async def _lines(visit: Visit, limit: int, offset: int) -> list[Line]:
    found = await visit.ask(checks.status, limit=limit, offset=offset)
    told = await visit.ask(check_history.trends, limit=limit, offset=offset)
    trends = {one.name: one for one in told.trends}
    lines = [_line(check, trends.get(check.name)) for check in found.checks]
    # What is told in one unit is drawn on one scale.
    top = max((value for line in lines if line.is_timed for value in line.hours), default=1.0)
    return [replace(line, top=top) if line.is_timed else line for line in lines]


def _line(check: CheckStatus, trend: Trend | None) -> Line:
    hours = [value for value in trend.hours if value is not None] if trend else []
    return Line(check, hours, percent(trend.uptime_30d if trend else None))


async def one_check(visit: Visit) -> Response:
    """One check: its latency beside what is normal, its incidents and anomalies."""
    hours = visit.number("hours", 24)
    hours = hours if hours in dict(PERIODS) else 24
    period = await _period(visit, visit.query("name")[:100], hours)
    if period is None:
        raise NotFound("No check of this name is in this bank. It may have been removed.")
    values: dict[str, object] = {
        "period": period,
        "check": period.history.check,
        "line": _line(period.history.status, None),
        "uptime": percent(period.history.uptime),
        "periods": PERIODS,
    }
    return await _page(visit, "check", values)


async def unusual(visit: Visit) -> Response:
    """The anomalies, newest first, each with the numbers that made it one."""
    state = visit.query("state") if visit.query("state") in ("open", "ended") else ""
    offset = visit.number("offset", most=100_000)
    is_open = state == "open" if state else None
    found = await visit.ask(anomalies.list_, open=is_open, limit=PAGE, offset=offset)
    more = offset + PAGE if found.total > offset + PAGE else 0
    return await _page(visit, "anomalies", {"anomalies": found.anomalies, "state": state, "next": more})


async def server(visit: Visit) -> Response:
    """How Keepsake itself is."""
    signs = (await visit.ask(checks.status, limit=1)).keepsake
    failing = await visit.ask(jobs.list_, state="failed", limit=SOME) if visit.may("memory:read") else None
    values: dict[str, object] = {
        "signs": signs,
        "failing": failing.jobs if failing else [],
        "version": __version__,
        "has_self": any(one.kind == "self" for one in (await visit.ask(checks.list_, limit=PAGE)).checks),
    }
    return await _page(visit, "server", values)
