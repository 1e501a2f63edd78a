"""Approvals: what agents may not do alone, as an inbox, and each as a page that people open from a message."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core.approver import FRESH
from keepsake.core.errors import BadInput, NotFound
from keepsake.ops import approvals, deciding
from keepsake.ops.approvals import ProposalStatus
from keepsake.ops.invocations import Request
from keepsake.surfaces.console import approvals_run
from keepsake.surfaces.console.approvals_run import Run
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.pages import rendering, signin
from keepsake.surfaces.pages.forms import Fields

#: What a change is called: as a title, and as what its button does.
HEADLINES: Mapping[str, tuple[str, str]] = {
    "memory.forget": ("Forget", "Forget it for good"),
    "memory.purge": ("Forget several memories of {bank}", "Forget them for good"),
    "memory.clear": ("Clear the memories of {bank}", "Clear the memories"),
    "memory.redact": ("Take secrets out of {bank}", "Take them out"),
    "bank.delete": ("Delete the bank {bank}", "Delete the bank"),
    "document.delete": ("Delete a document of {bank}", "Delete the document"),
    "directive.delete": ("Delete a directive of {bank}", "Delete the directive"),
    "model.delete": ("Delete a mental model of {bank}", "Delete the model"),
    "artifact.delete": ("Delete an artifact of {bank}", "Delete the artifact"),
    "chat.delete": ("Delete a conversation of {bank}", "Delete the conversation"),
    "memory.correct": ("Correct", "Approve"),
}
#: Fields that hold someone's words.
SAID = ("content", "text")
#: Characters of a memory that stand in a title.
TITLE = 90
#: So many are listed at most.
MOST = 1_000
TABS = (("waiting", "Waiting"), ("approved", "Approved"), ("denied", "Denied"), ("expired", "Expired"))
#: How it is told what has become of a request.
STANDS = {
    "auto_ok": "It needs nobody’s approval.",
    "approved": "Approved. Whoever asked has 15 minutes to make the change.",
    "rejected": "Denied. Nothing was changed.",
    "expired": "Nobody decided in time. Nothing was changed.",
    "revoked": "It can no longer be made: what it would change has changed since.",
    "cancelled": "Whoever asked has taken it back.",
    "claimed": "The change is being made.",
    "succeeded": "The change was made.",
    "failed": "The change was tried and failed.",
    "unknown": "The server broke off in the middle. Look at what was changed.",
}


@dataclass(frozen=True, slots=True)
class Card:
    """One request, as its page and its line in the inbox show it."""

    id: str
    title: str
    is_destructive: bool
    is_run: bool
    state: str
    asked_by: str
    asked_for: str
    bank: str
    reason: str
    created_at: str
    expires_at: str
    #: What would change, each line with its mark; of what is destroyed, the words themselves and what is known of them.
    lines: tuple[tuple[str, str], ...]
    said: str
    #: Why it cannot be made any more, where that is so.
    trouble: str
    button: str
    #: As whom whoever looks may decide; nothing where they may not.
    decide_as: str
    decided_by: str
    note: str
    facts: tuple[tuple[str, str], ...]
    #: What would be run, where that is what was asked for.
    run: Run | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it can still be decided on."""
        return self.state in ("pending_approval", "awaiting_approval")

    @property
    def stands(self) -> str:
        """What has become of it."""
        return (approvals_run.STANDS if self.is_run else STANDS).get(self.state, "")


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [
        console.page("/approvals", inbox),
        console.page("/approve/{id}", show),
        console.form("/approve/{id}", decide),
    ]


async def inbox(visit: Visit) -> Response:
    """What waits, or what became of what did."""
    state = visit.query("state", "waiting")
    state = state if state in dict(TABS) else "waiting"
    # Two lists in one have no common place to go on from: "Earlier" shows a longer one.
    most = min(visit.number("most", PAGE) or PAGE, MOST)
    found = await visit.ask(approvals.list_, state=state, limit=most)
    cards = listed(found)
    more = most + PAGE if max(len(found.proposals), len(found.invocations)) >= most < MOST else 0
    chosen = await _card(visit, visit.query("id")) if visit.query("id") else None
    if chosen is None and cards and state == "waiting":
        chosen = await _card(visit, cards[0].id)
    values = {
        "cards": cards,
        "more": more,
        "chosen": chosen,
        "state": state,
        "tabs_of": TABS,
        **_deciding(visit, chosen),
    }
    return await visit.page("approvals.html", values, at="approvals")


def listed(found: approvals.Approvals) -> list[Card]:
    """Requests of both kinds as one list shows them: what waits oldest first, what is past newest first."""
    cards = [_of_proposal(one) for one in found.proposals] + [_of_run(one) for one in found.invocations]
    return sorted(cards, key=lambda card: card.created_at, reverse=not any(card.is_waiting for card in cards))


async def show(visit: Visit) -> Response:
    """One request, complete without the navigation."""
    return await _shown(visit, await _card(visit, visit.path("id")))


async def decide(visit: Visit, fields: Fields) -> Response:
    """Take what someone said."""
    card = await _card(visit, visit.path("id"))
    is_yes, note = fields.maybe("do") == "approve", fields.maybe("note", 500) or ""
    if _must_sign_in(visit, card):
        return rendering.moved(signin.link(f"/console/approve/{card.id}"))
    if is_yes and card.is_destructive and fields.maybe("sure") != "yes":
        return await _shown(visit, card, "Tick that you understand that this cannot be undone.", note)
    await visit.ask(approvals.say, id=card.id, approve=is_yes, reason=note)
    return rendering.moved(visit.to(f"/approve/{card.id}"))


async def _card(visit: Visit, id: str) -> Card:
    """A request by its id, be it a change or something to run."""
    try:
        return _of_proposal(await visit.ask(approvals.get, id=id))
    except (NotFound, BadInput):
        pass
    try:
        return _of_run(await visit.ask(approvals.request, id=id), visit.ctx.principal.name)
    except (NotFound, BadInput) as error:
        raise NotFound("No request under this address is yours to decide. Another approver may have it.") from error


async def _shown(visit: Visit, card: Card, problem: str = "", note: str = "") -> Response:
    if visit.is_part:
        return visit.bare("approve_state.html", {"card": card})
    waiting = await visit.ask(approvals.list_, limit=PAGE)
    more = len(waiting.proposals) + len(waiting.invocations) - (1 if card.is_waiting and card.decide_as else 0)
    values = {"card": card, "problem": problem, "note": note, "more": more, **_deciding(visit, card)}
    return visit.bare("approve.html", values, status=400 if problem else 200)


def _deciding(visit: Visit, card: Card | None) -> dict[str, object]:
    """Whether a password has to be given again first, and where."""
    again = signin.link(f"/console/approve/{card.id}") if card else ""
    return {"must_sign_in": bool(card) and _must_sign_in(visit, card), "again": again}


def _must_sign_in(visit: Visit, card: Card | None) -> bool:
    """Whether someone decides on what their own agent asked, and gave their password too long ago."""
    signed = visit.ctx.signed_in_at
    is_self = card is not None and card.is_waiting and card.decide_as == deciding.SELF
    return is_self and signed is not None and visit.ctx.now - signed > FRESH


def _of_proposal(one: ProposalStatus) -> Card:
    trouble, told = _split(one.diff)
    lines = tuple((line[:1], line[2:]) if line[:1] in ("-", "+") else ("", line) for line in told)
    said, known = _destroyed(lines) if one.effect == "destructive" else ("", ())
    title, button = HEADLINES.get(one.operation, ("", "Approve"))
    is_destructive = one.effect == "destructive"
    return Card(
        id=one.id,
        title=_title(one, title, lines),
        is_destructive=is_destructive,
        is_run=False,
        state=one.state,
        asked_by=one.client or _named(one.proposed_by),
        asked_for=one.user or "",
        bank=one.bank or "",
        reason=one.reason,
        created_at=one.created_at,
        expires_at=one.expires_at,
        lines=() if said else lines,
        said=said,
        trouble=trouble,
        button=button if is_destructive else "Approve",
        decide_as=one.decide_as or "",
        decided_by=_decider(one.decided_by),
        note=one.outcome,
        facts=(("Operation", one.operation), *(known if said else ()), ("Asked", one.created_at)),
    )


def _split(diff: str) -> tuple[str, list[str]]:
    """Why a change cannot be made any more, and its lines without the sentence that names the operation."""
    first, *rest = diff.splitlines() or [""]
    if first.startswith("This can no longer be applied"):
        return first, rest[1:]
    return "", rest


def _destroyed(lines: tuple[tuple[str, str], ...]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The words that go for good, apart from the numbers and names around them."""
    fields: list[tuple[str, str]] = []
    for _, text in lines:
        if text.startswith("  ") and fields:
            # Every further line of a value begins with two blanks.
            fields[-1] = (fields[-1][0], f"{fields[-1][1]}\n{text[2:]}")
        else:
            name, _, value = text.partition(": ")
            fields.append((name, value))
    said = "\n".join(value for name, value in fields if name in SAID)
    return said, tuple((name.capitalize(), value) for name, value in fields if name not in SAID)


def _title(one: ProposalStatus, title: str, lines: tuple[tuple[str, str], ...]) -> str:
    """A verb and its object; a memory is named by its own words."""
    if one.operation not in ("memory.forget", "memory.correct"):
        return title.format(bank=one.bank or "the default bank") if title else f"Run {one.operation}"
    words = next((text.removeprefix("content: ") for mark, text in lines if mark == "-" and "content:" in text), "")
    cut = words if len(words) <= TITLE else f"{words[:TITLE].rsplit(' ', 1)[0]}…"
    return f"{title} “{cut}”" if cut else f"{title} a memory"


def _of_run(one: Request, me: str = "") -> Card:
    run = Run(one, any(said.by == me for said in one.decisions))
    return Card(
        id=one.id,
        title=run.title,
        is_destructive=one.effect == "destructive",
        is_run=True,
        state=one.status,
        asked_by=one.client or _named(one.requested_by),
        asked_for=one.user or "",
        bank=one.bank or "",
        reason=one.reason,
        created_at=one.created_at,
        expires_at=one.expires_at,
        lines=(),
        said="",
        trouble="" if one.is_current else "The tool is not the one that was asked for any more, so it cannot be run.",
        button=f"Run {one.tool}",
        decide_as=(one.decide_as or "") if one.is_current else "",
        decided_by=", ".join(_decider(said.by) for said in one.decisions),
        note=one.outcome,
        facts=(("Tool", one.tool), ("Effect", one.effect), ("Asked", one.created_at)),
        run=run,
    )


def _named(principal: str) -> str:
    """Who asked, as people say it."""
    kind, _, name = principal.partition(":")
    if kind == "key":
        return f"The key {name}"
    return name or "An agent on this machine"


def _decider(by: str | None) -> str:
    if by is None:
        return ""
    return "the one person here" if by == deciding.SELF else by.partition(":")[2] or "the owner at the machine"
