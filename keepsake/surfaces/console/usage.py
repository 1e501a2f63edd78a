"""Usage: the week's budget of tokens, and what they were spent for."""

import csv
import io
from dataclasses import dataclass

from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core import clock
from keepsake.ops import usage
from keepsake.ops.usage import Week, Weeks
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.pages import charts, rendering, words
from keepsake.surfaces.pages.charts import Frame

#: How far back each period goes.
PERIODS = (("1", "Week"), ("12", "12 weeks"), ("53", "Year"))
PURPOSES = ("ask", "extraction", "reflection", "models", "other")
#: A plot tells four apart; the rest is one.
SERIES = 4


@dataclass(frozen=True, slots=True)
class Row:
    """A week as the table beside the plot shows it."""

    starts_at: str
    tokens: list[int]
    calls: int


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [console.page("/usage", show), console.page("/usage/weeks.csv", table)]


async def show(visit: Visit) -> Response:
    """How the budget stands, and where tokens went."""
    period = visit.query("weeks", "12")
    period = period if period in dict(PERIODS) else "12"
    mine, found = await visit.ask(usage.get), await _weeks(visit, int(period))
    purposes = [name for name in PURPOSES if any(week.tokens.get(name) for week in found.weeks)]
    values = {
        "usage": mine,
        "share": mine.spent / mine.limit if mine.limit else 0.0,
        "periods": PERIODS,
        "period": period,
        "purposes": purposes,
        "rows": [_row(week, purposes) for week in reversed(found.weeks)],
        "plot": _plot(found.weeks, purposes),
        "spenders": found.spenders,
        "is_all": visit.ctx.principal.is_manager,
    }
    return await visit.page("usage.html", values, at="usage")


async def _weeks(visit: Visit, weeks: int) -> Weeks:
    return await visit.ask(usage.weeks, weeks=weeks, everyone=visit.ctx.principal.is_manager)


def _row(week: Week, purposes: list[str]) -> Row:
    return Row(week.starts_at, [week.tokens.get(name, 0) for name in purposes], week.calls)


def _plot(weeks: list[Week], purposes: list[str]) -> Markup | None:
    """The weeks as a picture; one week, or nothing spent, is told in words."""
    sums = [sum(week.tokens.values()) for week in weeks]
    if len(weeks) < 2 or not any(sums):
        return None
    shown = purposes[:SERIES]
    series = [[float(week.tokens.get(name, 0)) for week in weeks] for name in shown]
    for name in purposes[SERIES:]:
        series[-1] = [held + week.tokens.get(name, 0) for held, week in zip(series[-1], weeks, strict=True)]
    top, ticks = charts.scale(max(sums))
    finding = f"{words.number(sums[-1])} tokens this week, {words.number(max(sums))} in the week that had most."
    labels = [_day(weeks[0]), _day(weeks[len(weeks) // 2]), "this week"]
    return charts.stack_plot(Frame("Tokens spent per week, by what for", finding, top, ticks, labels, 220), series)


def _day(week: Week) -> str:
    day = clock.iso(clock.parse(week.starts_at))[:10]
    months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
    return f"{int(day[8:])} {months[int(day[5:7]) - 1]}"


async def table(visit: Visit) -> Response:
    """The weeks as a file."""
    found = await _weeks(visit, visit.number("weeks", 12, most=53) or 12)
    sheet = io.StringIO()
    writer = csv.writer(sheet)
    writer.writerow(["week of", *PURPOSES, "calls"])
    for week in found.weeks:
        writer.writerow([week.starts_at[:10], *(week.tokens.get(name, 0) for name in PURPOSES), week.calls])
    headers = {**rendering.HEADERS, "Content-Disposition": 'attachment; filename="keepsake-usage.csv"'}
    return Response(sheet.getvalue(), headers=headers, media_type="text/csv")
