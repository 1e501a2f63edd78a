"""Graph: how entities, decisions and milestones hang together, as a list and as a picture of the same."""

import csv
import io
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core import layout
from keepsake.ops import graph, picture
from keepsake.ops.graph import Edge, Graph, Node
from keepsake.ops.picture import Picture
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.pages import rendering

#: What can be shown or left out, each with its icon, its word and its kinds.
SORTS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "entity": ("fact", "Entities", ("entity",)),
    "decision": ("decision", "Decisions", ("decision", "constraint", "heuristic")),
    "rejected": ("reject", "Rejected", ("rejected",)),
    "milestone": ("flag", "Milestones", ("milestone",)),
    "artifact": ("doc", "Artifacts", ("artifact",)),
    "memory": ("memory", "Other memories", ("note", "fact", "insight", "observation", "summary", "chunk")),
}
SORT_OF = {kind: sort for sort, (_, _, kinds) in SORTS.items() for kind in kinds}
#: How far the picture can be zoomed, in percent of its own size; 0 fits it into its place.
ZOOMS = (0, 70, 100, 140, 200)
#: How wide a picture may be and still be read when it is fitted.
ROOM = 1_000
#: Relations of a line in the list, edges up to which each names its type, letters of a label.
TOLD, NAMED, LABEL = 4, 24, 24
STEPS = (1, 2, 3)
#: Nodes of the table and of a search.
WHOLE = 500


@dataclass(frozen=True, slots=True)
class Spot:
    """A node as it is drawn."""

    id: str
    sort: str
    label: str
    x: float
    y: float
    r: float
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Line:
    """An edge as it is drawn."""

    d: str
    kind: str
    word: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Row:
    """A node as the list tells it."""

    node: Node
    icon: str
    relations: list[str]
    more: int
    is_chosen: bool


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [console.page("/b/{bank}/graph", show), console.page("/b/{bank}/graph/relations.csv", table)]


async def show(visit: Visit) -> Response:
    """The list, and the picture beside it."""
    asked = _asked(visit)
    found = await visit.ask(picture.picture, **asked)
    chosen = next((node for node in found.graph.nodes if node.distance == 0), None) if asked["center"] else None
    sought = visit.query("q").strip()[:200]
    rows = await _sought(visit, sought) if sought else rows_of(found.graph, chosen)
    values = {
        "found": found,
        "chosen": chosen,
        "rows": rows,
        "sought": sought,
        "sorts": SORTS,
        "hidden": _hidden(visit),
        "query": _query(visit),
        "depth": asked["depth"],
        "steps": STEPS,
        "is_past": asked["include_superseded"],
        "spots": _spots(found, chosen),
        "lines": _lines(found, chosen),
        "zoom": _zoom(visit, found.width, chosen),
        "zooms": ZOOMS,
        "told": _told(found.graph, chosen),
    }
    return await visit.page("graph.html", values, at="graph")


def _zoom(visit: Visit, width: int, chosen: Node | None) -> int:
    """What was asked for; else a large picture is moved rather than read through a lens."""
    asked = visit.number("zoom", -1, most=ZOOMS[-1])
    if asked in ZOOMS:
        return asked
    return 0 if width <= ROOM else 100 if chosen else 70


def _hidden(visit: Visit) -> list[str]:
    return [name for name in visit.query("hide").split(",") if name in SORTS]


def _query(visit: Visit) -> dict[str, str]:
    """What the address says, to be said again with something changed."""
    names = ("around", "depth", "hide", "past", "zoom")
    return {name: visit.query(name)[:300] for name in names if visit.query(name)}


def _asked(visit: Visit) -> dict[str, object]:
    hidden = _hidden(visit)
    kinds = [kind for sort, (_, _, all_of) in SORTS.items() if sort not in hidden for kind in all_of]
    depth = visit.number("depth", 2, most=STEPS[-1])
    return {
        "center": visit.query("around")[:300] or None,
        "depth": depth if depth in STEPS else 2,
        "kinds": kinds if hidden else [],
        "include_superseded": visit.query("past") == "yes",
    }


async def _sought(visit: Visit, sought: str) -> list[Row]:
    """Nodes of the whole graph whose titles hold some words."""
    whole = await visit.ask(graph.get, limit=WHOLE)
    words = sought.casefold()
    kept = [row for row in rows_of(whole, None) if words in row.node.title.casefold()]
    return kept[: layout.MOST]


def rows_of(found: Graph, chosen: Node | None) -> list[Row]:
    """Every node with its relations, the strongest first."""
    titles = {node.id: short(node.title, 60) for node in found.nodes}
    told: dict[str, list[str]] = defaultdict(list)
    # What someone said comes before what was only mentioned.
    for edge in sorted(found.edges, key=lambda edge: edge.type == "mentions"):
        word = spoken(edge.type)
        told[edge.origin].append(f"{word} {titles[edge.target]}")
        told[edge.target].append(f"{titles[edge.origin]} {word} this")
    return [
        Row(
            node,
            SORTS[SORT_OF.get(node.kind, "memory")][0],
            told[node.id][:TOLD],
            max(0, len(told[node.id]) - TOLD),
            chosen is not None and node.id == chosen.id,
        )
        for node in found.nodes
    ]


def spoken(type: str) -> str:
    """A type of relation as people say it."""
    return type.replace("_", " ")


def short(text: str, most: int) -> str:
    """The beginning of a title."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _spots(found: Picture, chosen: Node | None) -> list[Spot]:
    return [
        Spot(
            node.id,
            SORT_OF.get(node.kind, "memory"),
            short(node.title, LABEL),
            place.x,
            place.y,
            min(13.0, 7 + math.sqrt(node.weight)),
            chosen is not None and node.id == chosen.id,
        )
        for node, place in zip(found.graph.nodes, found.places, strict=True)
    ]


def _lines(found: Picture, chosen: Node | None) -> list[Line]:
    """Edges, once each, whatever relates the two; those of the chosen node stand out."""
    at = {place.id: (place.x, place.y) for place in found.places}
    between: dict[tuple[str, str], list[Edge]] = defaultdict(list)
    for edge in found.graph.edges:
        between[edge.origin, edge.target].append(edge)
    drawn: list[Line] = []
    for ends, edges in between.items():
        said = [spoken(edge.type) for edge in edges if edge.type != "mentions"]
        is_hot = chosen is not None and chosen.id in ends
        kind = "edge hot" if is_hot else "edge" if said else "edge weak"
        word = said[0] if said and (is_hot or len(between) <= NAMED) else ""
        (x, y), (to_x, to_y) = at[ends[0]], at[ends[1]]
        d = f"M{x:.0f} {y:.0f} L{to_x:.0f} {to_y:.0f}"
        drawn.append(Line(d, kind, word, round((x + to_x) / 2), round((y + to_y) / 2)))
    return drawn


def _told(found: Graph, chosen: Node | None) -> str:
    """The picture in words."""
    rows = [row for row in rows_of(found, chosen) if row.relations][:5]
    return " ".join(f"{short(row.node.title, 60)}: {', '.join(row.relations[:2])}." for row in rows)


async def table(visit: Visit) -> Response:
    """The relations as a file."""
    found = await visit.ask(graph.get, limit=WHOLE, include_superseded=True)
    nodes = {node.id: node for node in found.nodes}
    sheet = io.StringIO()
    writer = csv.writer(sheet)
    writer.writerow(["from", "kind", "relation", "to", "kind", "note"])
    for edge in found.edges:
        origin, target = nodes[edge.origin], nodes[edge.target]
        cells = (origin.title, origin.kind, spoken(edge.type), target.title, target.kind, edge.note)
        writer.writerow([_cell(cell) for cell in cells])
    headers = {**rendering.HEADERS, "Content-Disposition": 'attachment; filename="keepsake-graph.csv"'}
    return Response(sheet.getvalue(), headers=headers, media_type="text/csv")


def _cell(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
