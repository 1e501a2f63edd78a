"""Conflicts between memories, and what clients are given of all of them."""

from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core.errors import BadInput
from keepsake.core.models import Memory
from keepsake.core.words import cost
from keepsake.ops import context, injecting, settling, truth
from keepsake.ops.context import ContextItem
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.memories_view import Row, Said, compared, may, shared_beginning
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.pages import forms, rendering
from keepsake.surfaces.pages.forms import Fields

#: Tokens of a context pack, unless told otherwise.
BUDGET, LARGEST = 2_000, 32_000
FIRST = ("decision", "constraint", "heuristic", "rejected")


def routes(console: Console) -> list[BaseRoute]:
    """The pages and forms of this group."""
    return [
        console.page("/b/{bank}/conflicts", inbox),
        console.form("/b/{bank}/conflicts/{id}", settle),
        console.page("/b/{bank}/preview", preview),
    ]


@dataclass(frozen=True, slots=True)
class Side:
    """One of two memories at odds."""

    name: str
    memory: Memory
    said: Said

    @property
    def row(self) -> Row:
        """As a list shows it."""
        return Row(self.memory)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories that cannot both be true."""

    id: str
    title: str
    found_at: str
    sides: tuple[Side, Side]


async def inbox(visit: Visit) -> Response:
    """What waits to be settled."""
    found = await visit.ask(truth.list_, limit=PAGE)
    pairs = [_pair(one) for one in found.conflicts]
    values = {"pairs": pairs, "may_settle": may(visit, "memory:write")}
    return await visit.page("conflicts.html", values, at="memories")


def _pair(one: truth.Conflict) -> Pair:
    older, newer = compared(one.older.text, one.newer.text)
    title = shared_beginning(one.older.text, one.newer.text) or "Which of these two is true?"
    sides = Side("older", one.older, older), Side("newer", one.newer, newer)
    return Pair(one.id, title, one.found_at, sides)


async def settle(visit: Visit, fields: Fields) -> Response:
    """Keep one, both, or what was written instead."""
    id, keep = visit.path("id"), fields.maybe("do") or fields.maybe("keep") or ""
    if keep == "write":
        content = forms.typed(fields, "content")
        if not content.strip():
            raise BadInput("Type what is true now, or choose one of the two.")
        pair = {"id": fields.one("newer"), "also": [fields.one("older")]}
        await visit.ask(truth.correct, content=content, if_current=True, **pair)
    else:
        await visit.ask(settling.settle, id=id, keep=keep)
    return rendering.moved(visit.to("/b/{bank}/conflicts"))


@dataclass(frozen=True, slots=True)
class Told:
    """An item of a pack, what it costs and why it is there."""

    item: ContextItem
    tokens: int
    why: str


async def preview(visit: Visit) -> Response:
    """What a client would be given for a prompt."""
    prompt, budget = visit.query("prompt")[:LARGEST], visit.number("tokens", BUDGET, LARGEST) or BUDGET
    hooks = await visit.ask(injecting.preview, prompt=prompt)
    pack = await visit.ask(context.context, query=prompt, token_budget=budget)
    items = [Told(item, cost(item.text), _why(item, bool(prompt.strip()))) for item in pack.items]
    values = {"prompt": prompt, "budget": budget, "hooks": hooks, "pack": pack, "items": items}
    return await visit.page("preview.html", values, at="memories")


def _why(item: ContextItem, is_asked: bool) -> str:
    """The strongest reason first."""
    if item.pinned:
        return "pinned: always first"
    if item.type in FIRST:
        return "stands before the rest, whatever the prompt"
    parts = [("meaning", item.semantic), ("words", item.words)] if is_asked else []
    told = [f"{name} {part:.2f}" for name, part in parts if part >= 0.01]
    shared = ["shared by another bank"] if item.project < 1 else []
    return ", ".join([*told, f"recency {item.recency:.2f}", *shared])
