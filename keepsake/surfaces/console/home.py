"""Home: what the agents know, bank by bank; what waits or fails; and the first steps while nothing is remembered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import urlsplit

from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core.errors import NotFound
from keepsake.core.models import Memory
from keepsake.ops import approvals, browsing, incidents, overview
from keepsake.ops.overview import Day, Look
from keepsake.surfaces.console import approvals as inbox
from keepsake.surfaces.console import nav, scoring
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.scoring import Part
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.oauth import places
from keepsake.surfaces.pages import charts, icons, rendering, signin, words
from keepsake.surfaces.pages.charts import Frame
from keepsake.surfaces.pages.words import who

#: What waits and what was learned last, as far as a first look shows it.
SHOWN, NEWEST = 5, 5
#: A plot tells four kinds apart.
SERIES = 4


@dataclass(frozen=True, slots=True)
class Line:
    """A bank as the table shows it."""

    bank: Look
    parts: tuple[Part, ...]
    #: What is open in it: how many, of what, and the page that has them.
    open: tuple[tuple[str, str], ...]

    @property
    def growth(self) -> list[int]:
        """How many memories it knew at the end of each week."""
        return [sum(week) for week in zip(*self.bank.weeks.values(), strict=True)]

    @property
    def trend(self) -> str:
        """The same in words."""
        known = self.growth or [0]
        return f"{self.bank.name}: {words.number(known[0])} twelve weeks ago, {words.number(known[-1])} now"

    @property
    def learned(self) -> int:
        """How many of its memories are of this week."""
        return self.growth[-1] - self.growth[-2] if self.growth else 0

    @property
    def advice(self) -> str:
        """What would raise its score most."""
        return scoring.advice(self.parts)

    @property
    def last_by(self) -> str:
        """Who told it something last."""
        name = who(self.bank.last_author or "")
        return name[:1].upper() + name[1:]


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [
        console.page("", home),
        console.page("/", home),
        console.page("/b/{bank}", one_bank),
        console.page("/more", more),
        console.page("/switch", switch),
    ]


async def home(visit: Visit) -> Response:
    """What the agents know, by bank."""
    if not visit.may("memory:read"):
        return await visit.page("home_nothing.html", {}, at="home")
    offset = visit.number("offset")
    found = await visit.ask(overview.get, offset=offset)
    if not any(bank.memories for bank in found.banks) and not offset and found.total <= PAGE:
        address = urlsplit(places.base(visit.ctx.app.settings, visit.request)).netloc
        empty = {"address": address, "store": visit.ctx.store.engine.name}
        return await visit.page("home_empty.html", empty, at="home")
    waiting = inbox.listed(await visit.ask(approvals.list_, limit=PAGE))
    down = await _down(visit)
    lines = [_line(visit, bank, waiting, down) for bank in found.banks]
    last = max(found.banks, key=lambda bank: bank.last_learned_at or "", default=None)
    values: dict[str, object] = {
        "lines": lines,
        "total": found.total,
        "earlier": visit.to("", offset=offset + PAGE) if offset + PAGE < found.total else "",
        "waiting": waiting,
        "shown": SHOWN,
        "days": found.days,
        "plot": _tokens(found.days),
        "trouble": await _trouble(visit, down),
        "last": last,
        "who": who,
        "newest": await _newest(visit, last.name) if last and last.memories else [],
    }
    return await visit.page("home.html", values, at="home")


async def _down(visit: Visit) -> Mapping[str, int]:
    """Open incidents by bank, as far as whoever looks may know of them."""
    return (await visit.ask(overview.incidents)).banks if visit.may("watch:read") else {}


async def _trouble(visit: Visit, down: Mapping[str, int]) -> tuple[str, incidents.Incident] | None:
    """The newest incident of the bank that has most."""
    if not down:
        return None
    bank = max(down, key=lambda name: down[name])
    found = await visit.ask(incidents.list_, bank=bank, state="open", limit=1)
    return (bank, found.incidents[0]) if found.incidents else None


async def _newest(visit: Visit, bank: str) -> Sequence[Memory]:
    return (await visit.ask(browsing.browse, bank=bank, limit=NEWEST)).memories


def _line(visit: Visit, bank: Look, waiting: Sequence[inbox.Card], down: Mapping[str, int]) -> Line:
    chunks = bank.weeks.get("chunk", [0])[-1]
    counted: tuple[tuple[int, str, str, dict[str, str]], ...] = (
        (sum(card.bank == bank.name for card in waiting), "approval", "approvals", {}),
        (down.get(bank.name, 0), "incident", "health", {}),
        (bank.conflicts, "conflict", "/b/{bank}/conflicts", {}),
        (bank.operations.get("failed", 0), "failed operation", "operations", {"state": "failed"}),
    )
    told = tuple(
        (words.count(held, noun), place(visit, page, bank.name, **query)) for held, noun, page, query in counted if held
    )
    return Line(bank, tuple(scoring.parts(bank.breakdown, chunks)) if bank.project else (), told)


def place(visit: Visit, page: str, bank: str, **query: str) -> str:
    """The address of a page; nothing where it is not there."""
    path = nav.ITEMS[page].path if page in nav.ITEMS else page
    return visit.to(page, bank, **query) if path in visit.known else ""


def _tokens(days: Sequence[Day]) -> Markup | None:
    """What went and stayed, as bars; where there is nothing, words tell it."""
    most = max(max(day.saved, day.spent) for day in days)
    if not most:
        return None
    unit = 1_000 if most >= 10_000 else 1
    series = [[day.saved / unit for day in days], [day.spent / unit for day in days]]
    top, ticks = charts.scale(most / unit)
    names = [f"{date.fromisoformat(day.starts_at[:10]):%a}" for day in days[:-1]] + ["Today"]
    saved, spent = sum(day.saved for day in days), sum(day.spent for day in days)
    finding = f"{words.number(saved)} tokens saved and {words.number(spent)} spent in seven days."
    return charts.bar_plot(Frame("Tokens saved and spent per day", finding, top, ticks, names, 188), series)


async def one_bank(visit: Visit) -> Response:
    """One bank: what it knows, how it grew, and what is open in it."""
    found = await visit.ask(overview.get, banks=[visit.bank])
    if not found.banks:
        raise NotFound(f"No bank {visit.bank[:100]!r} that you may see. It may have been renamed or deleted.")
    waiting = [card for card in inbox.listed(await visit.ask(approvals.list_, limit=PAGE)) if card.bank == visit.bank]
    line = _line(visit, found.banks[0], waiting, await _down(visit))
    kinds = kinds_of(line.bank)
    values: dict[str, object] = {
        "line": line,
        "waiting": waiting[:SHOWN],
        "kinds": kinds,
        "plot": grown(line.bank),
        "newest": await _newest(visit, visit.bank) if line.bank.memories else [],
        "may_sync": visit.may("bank:admin"),
        "who": who,
    }
    return await visit.page("bank.html", values, at="home")


def kinds_of(bank: Look) -> list[tuple[str, list[int]]]:
    """What a bank holds by kind, most first, each as it grew; what a plot cannot tell apart is one."""
    every = [(icons.WORDS.get(kind, kind.capitalize()), weeks) for kind, weeks in bank.weeks.items()]
    if len(every) <= SERIES:
        return every
    rest = [sum(week) for week in zip(*(weeks for _, weeks in every[SERIES - 1 :]), strict=True)]
    return [*every[: SERIES - 1], ("Other", rest)]


def grown(bank: Look) -> Markup | None:
    """How a bank grew, as a picture; nothing while all is of one week."""
    kinds = kinds_of(bank)
    whole = [sum(week) for week in zip(*(weeks for _, weeks in kinds), strict=True)]
    if not whole or not whole[-2]:
        return None
    top, ticks = charts.scale(max(whole))
    finding = f"From {words.number(whole[0])} to {words.number(whole[-1])} memories in twelve weeks."
    frame = Frame("Memories by kind over 12 weeks", finding, top, ticks, ["12 weeks ago", "6 weeks", "now"], 196)
    return charts.stack_plot(frame, [[float(held) for held in weeks] for _, weeks in kinds])


async def more(visit: Visit) -> Response:
    """What a phone's lower edge has no room for."""
    return await visit.page("more.html", {}, at="more")


async def switch(visit: Visit) -> Response:
    """Another bank, at the page one comes from where that is about one bank."""
    bank, came = visit.query("bank"), urlsplit(visit.request.headers.get("referer", "")).path
    start = f"{places.CONSOLE}/b/"
    page = came.removeprefix(start).partition("/")[2].partition("/")[0] if came.startswith(start) else ""
    if bank not in visit.banks:
        return rendering.moved(places.CONSOLE)
    wanted = f"/b/{{bank}}/{page}"
    known = wanted if page and wanted in visit.known else "/b/{bank}"
    return rendering.moved(signin.onward(visit.to(known, bank)))
