"""Memories: searched as agents search them, looked through, and each opened with all that stands behind it."""

import time
from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.ops import browsing, memory, overview, provenance, truth
from keepsake.ops.provenance import Provenance
from keepsake.surfaces.console import memories_changes, memories_conflicts, memories_forget
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.memories_view import FULL, Row, Wanted, address, may, of_hit
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.pages import words
from keepsake.surfaces.pages.words import who

#: Conflicts that are counted on the way in.
COUNTED = 20


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group; what is one memory's comes last, for its path takes any word."""
    return [
        console.page("/b/{bank}/memories", listed),
        *memories_conflicts.routes(console),
        *memories_forget.routes(console),
        *memories_changes.routes(console),
        console.page("/b/{bank}/memories/{id}", opened),
    ]


@dataclass(frozen=True, slots=True)
class Found:
    """A page of memories, and how it came about."""

    rows: tuple[Row, ...]
    told: str
    earlier: str = ""


async def listed(visit: Visit) -> Response:
    """What was found, or the newest."""
    wanted = Wanted.of(visit)
    found = await _found(visit, wanted)
    first = found.rows[0] if found.rows and not visit.query("select") else None
    return await _shown(visit, wanted, found, first)


async def opened(visit: Visit) -> Response:
    """One memory; beside it, where there is room, the list it was found in."""
    wanted = Wanted.of(visit)
    told = await visit.ask(provenance.get, id=visit.path("id"))
    found = await _found(visit, wanted)
    row = next((row for row in found.rows if row.memory.id == told.record.id), Row(told.record))
    return await _shown(visit, wanted, found, row, told)


async def _shown(
    visit: Visit, wanted: Wanted, found: Found, row: Row | None, told: Provenance | None = None
) -> Response:
    about = told or (await visit.ask(provenance.get, id=row.memory.id) if row else None)
    values: dict[str, object] = {
        "wanted": wanted,
        "found": found,
        "row": row,
        "about": about,
        "is_opened": told is not None,
        "is_choosing": bool(visit.query("select")) and may(visit, "memory:write"),
        "may_write": may(visit, "memory:write"),
        "full": FULL,
        "who": who,
        "address": address,
        "problem": "Choose at least one memory first." if visit.query("select") == "none" else "",
    }
    if visit.is_part:
        return visit.bare("memories_found.html", values)
    conflicts = await visit.ask(truth.list_, limit=COUNTED)
    return await visit.page(
        "memories.html", {**values, "conflicts": len(conflicts.conflicts), "counted": COUNTED}, at="memories"
    )


async def _found(visit: Visit, wanted: Wanted) -> Found:
    return await (_answers if wanted.q else _newest)(visit, wanted)


async def _answers(visit: Visit, wanted: Wanted) -> Found:
    started = time.perf_counter()
    narrowed = wanted.narrowed(visit.ctx.now)
    recalled = await visit.ask(memory.recall, query=wanted.q, limit=PAGE, max_tokens=1_000_000, **narrowed)
    rows = tuple(of_hit(hit) for hit in recalled.hits)
    took = words.spent(max(1, 1_000 * (time.perf_counter() - started)))
    many = words.count(len(rows), "memory", "memories")
    told = f"{many} for “{wanted.q[:200]}”, {took}. The same search your agents use."
    return Found(rows, told if rows else await _nothing(visit, wanted))


async def _nothing(visit: Visit, wanted: Wanted) -> str:
    held = await visit.ask(overview.get, banks=[visit.bank])
    if not (many := sum(bank.memories for bank in held.banks)):
        return f"Nothing is remembered in {visit.bank} yet."
    searched = words.count(many, "memory", "memories")
    return f"Nothing found for “{wanted.q[:200]}”. Searched {searched} in {visit.bank}."


async def _newest(visit: Visit, wanted: Wanted) -> Found:
    past = True if wanted.past else None
    narrowed = wanted.narrowed(visit.ctx.now)
    page = await visit.ask(browsing.browse, superseded=past, before=wanted.before or None, limit=PAGE, **narrowed)
    rows = tuple(Row(one) for one in page.memories)
    earlier = visit.to("memories", **wanted.without(), before=page.earlier) if page.earlier else ""
    return Found(rows, _counted(wanted, len(rows), bool(page.earlier)), earlier)


def _counted(wanted: Wanted, many: int, is_more: bool) -> str:
    """How many there are, and from where on."""
    if many:
        how = "from here back" if wanted.before else "newest first"
        return f"{words.count(many, 'memory', 'memories')}, {how}."
    if is_more:
        return "Nothing among the newest memories fits."
    return "Nothing fits." if wanted.without() else "Nothing here yet."
