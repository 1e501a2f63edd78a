"""Decisions: a board by how they stand, each with why and instead of what, and the form that records another."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core.errors import BadInput, Conflict, KeepsakeError, NotFound
from keepsake.ops import decisions
from keepsake.ops.decisions import Decisions, Standing
from keepsake.surfaces.console.console import Console, reason
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.pages import forms, rendering
from keepsake.surfaces.pages.forms import Fields

#: The columns of the board, each with its word and what it holds; and what has no column.
COLUMNS: Mapping[str, tuple[str, str]] = {
    "proposed": ("Proposed", "not decided yet"),
    "accepted": ("Accepted", "what holds"),
    "blocked": ("Blocked", "stands in the way"),
    "rejected": ("Rejected", "not to be tried again"),
    "reversed": ("Reversed", "taken back"),
}
STATUSES = {**COLUMNS, "superseded": ("Superseded", "another took its place")}
KINDS = {
    "decision": "Decision",
    "constraint": "Constraint",
    "heuristic": "Rule of thumb",
    "rejected": "Rejected option",
}
#: Cards of a column.
CARDS = 12
#: What can be made of a decision on its page: where it stands, and what the button says.
STEPS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "proposed": (("accepted", "Accept it"), ("rejected", "Reject it")),
    "blocked": (("accepted", "Unblock it"),),
    "accepted": (("reversed", "Reverse it"), ("blocked", "Mark it as blocked")),
    "rejected": (("proposed", "Propose it again"),),
    "reversed": (("accepted", "Accept it again"),),
}


@dataclass(frozen=True, slots=True)
class Typed:
    """What someone typed into the form."""

    title: str = ""
    decision: str = ""
    rationale: str = ""
    alternatives: str = ""
    kind: str = "decision"
    status: str = "accepted"
    supersedes: str = ""
    tags: str = ""
    blocker: bool = False


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [
        console.page("/b/{bank}/decisions", board),
        console.page("/b/{bank}/decisions/new", new),
        console.form("/b/{bank}/decisions/new", record),
        console.page("/b/{bank}/decisions/{id}", show),
        console.form("/b/{bank}/decisions/{id}/status", change),
    ]


async def board(visit: Visit) -> Response:
    """The columns; or a list, of one status or of what was looked for."""
    status, query = visit.query("status"), visit.query("q").strip()[:2_000]
    if status in STATUSES or query:
        return await _listed(visit, status if status in STATUSES else "", query)
    asked = [visit.ask(decisions.list_, status=[name], limit=CARDS) for name in STATUSES]
    found = dict(zip(STATUSES, await asyncio.gather(*asked), strict=True))
    values = {
        "columns": [(name, *COLUMNS[name], found[name]) for name in COLUMNS if _is_shown(name, found[name])],
        "superseded": found["superseded"].total,
        "is_empty": not any(page.total for page in found.values()),
        "may_write": visit.may("memory:write"),
    }
    return await visit.page("decisions.html", values, at="decisions")


def _is_shown(name: str, page: Decisions) -> bool:
    return bool(page.total) or name in ("proposed", "accepted")


async def _listed(visit: Visit, status: str, query: str) -> Response:
    offset = visit.number("offset")
    found = await visit.ask(decisions.list_, status=[status] if status else [], query=query, limit=PAGE, offset=offset)
    values = {
        "found": found,
        "status": status,
        "word": STATUSES[status][0] if status else "",
        "query": query,
        "next": offset + PAGE if found.total > offset + PAGE else 0,
        "may_write": visit.may("memory:write"),
    }
    return await visit.page("decisions_list.html", values, at="decisions")


async def show(visit: Visit) -> Response:
    """One decision with why, and what it took the place of."""
    return await _shown(visit, await visit.ask(decisions.get, id=visit.path("id")))


async def _shown(visit: Visit, one: Standing, problem: str = "") -> Response:
    named = [*one.supersedes[:10], *([one.superseded_by] if one.superseded_by else [])]
    values = {
        "one": one,
        "others": await _others(visit, named),
        "word": KINDS.get(one.kind, one.kind),
        "steps": STEPS.get(one.status, ()) if visit.may("memory:write") else (),
        "may_write": visit.may("memory:write"),
        "problem": problem,
    }
    return await visit.page("decision.html", values, at="decisions", status=409 if problem else 200)


async def _others(visit: Visit, named: list[str]) -> dict[str, Standing]:
    """Decisions by id; what is not one any more is left out."""
    found: dict[str, Standing] = {}
    for id in named:
        try:
            found[id] = await visit.ask(decisions.get, id=id)
        except NotFound:
            continue
    return found


async def change(visit: Visit, fields: Fields) -> Response:
    """Record the same decision as it stands now; what stood before stays in its history."""
    one = await visit.ask(decisions.get, id=visit.path("id"))
    if one.superseded_by:
        return await _shown(visit, one, "Someone has changed this decision since. Look at the one that holds now.")
    made = await visit.ask(
        decisions.record,
        title=one.title,
        decision=one.decision if one.decision != one.title else "",
        rationale=one.rationale,
        alternatives=[{"option": each.option, "why_not": each.why_not} for each in one.alternatives],
        kind=one.kind,
        status=fields.one("status", 20),
        supersedes=one.id,
        tags=[tag for tag in one.tags if tag != "blocker"],
    )
    return rendering.moved(visit.to(f"/b/{{bank}}/decisions/{made.decision.id if made.decision else one.id}"))


async def new(visit: Visit) -> Response:
    """The form, with the words of the decision whose place another shall take."""
    typed = Typed()
    if named := visit.query("supersedes")[:200]:
        old = await visit.ask(decisions.get, id=named)
        considered = "\n".join(f"{one.option}: {one.why_not}".rstrip(": ") for one in old.alternatives)
        typed = Typed(
            old.title, old.decision, old.rationale, considered, old.kind, "accepted", old.id, ", ".join(old.tags)
        )
    return await _form(visit, typed)


async def _form(visit: Visit, typed: Typed, error: KeepsakeError | None = None) -> Response:
    old = await _others(visit, [typed.supersedes]) if typed.supersedes else {}
    one = old.get(typed.supersedes)
    now = await _others(visit, [one.superseded_by]) if one and one.superseded_by else {}
    values = {
        "typed": typed,
        "old": one,
        "now": next(iter(now.values()), None),
        "kinds": KINDS,
        "statuses": COLUMNS,
        "may_write": visit.may("memory:write"),
        "problem": reason(error) if error else "",
    }
    return await visit.page("decision_new.html", values, at="decisions", status=error.status if error else 200)


async def record(visit: Visit, fields: Fields) -> Response:
    """Take the form."""
    typed = _typed(fields)
    try:
        made = await visit.ask(
            decisions.record,
            title=typed.title,
            decision=typed.decision,
            rationale=typed.rationale,
            alternatives=considered(typed.alternatives),
            kind=typed.kind,
            status=typed.status,
            supersedes=typed.supersedes or None,
            blocker=typed.blocker,
            tags=[tag.strip() for tag in typed.tags.split(",") if tag.strip()],
        )
    except (BadInput, Conflict, NotFound) as error:
        return await _form(visit, typed, error)
    if made.decision is None:
        return await _form(visit, typed, Conflict(made.note or "It was not stored."))
    return rendering.moved(visit.to(f"/b/{{bank}}/decisions/{made.decision.id}"))


def _typed(fields: Fields) -> Typed:
    def said(name: str) -> str:
        return forms.typed(fields, name).replace("\r\n", "\n").strip()

    return Typed(
        said("title"),
        said("decision"),
        said("rationale"),
        said("alternatives"),
        said("kind"),
        said("status"),
        said("supersedes"),
        said("tags"),
        blocker=said("blocker") == "yes",
    )


def considered(text: str) -> list[dict[str, str]]:
    """Options, one a line, each with why it was not taken behind a colon."""
    pairs = [line.partition(":") for line in text.splitlines() if line.strip()]
    return [{"option": option.strip(), "why_not": why.strip()} for option, _, why in pairs]
