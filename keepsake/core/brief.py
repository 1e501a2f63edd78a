"""What a client is told of earlier work: statements of fact, each with its id, within a size, between our marks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from keepsake.core import clock, marks
from keepsake.core.pack import Item, Summary
from keepsake.core.words import line

#: Bytes, not characters: a text in Chinese has a token for every three of them. 2,000 tokens of English.
LARGEST = 8_000
#: What prompt-time context may take.
SMALL = 1_600
#: Characters of one statement.
KNOWN, TOLD = 600, 280
_PINNED = "Pinned by people here:"
_HEADINGS = {
    "decision": "Decided:",
    "constraint": "Constraints that hold:",
    "rejected": "Tried or considered, and given up:",
    "heuristic": "Preferred ways:",
}
_STEPS = "Open next steps from the last session:"
_SESSIONS = "Last sessions:"
_DONE = "Done lately:"
_FACTS = "Also known:"
#: Observations that tell of work; what was only looked at is found by asking.
_WORK = ("file-write", "command", "delegation")
MOST_DONE, MOST_FACTS = 12, 12


@dataclass(frozen=True, slots=True)
class Brief:
    """A text for a client, and the memories that it tells."""

    text: str = ""
    ids: tuple[int, ...] = ()


@dataclass(slots=True)
class _Page:
    """Lines under headings, as many as there is room for."""

    room: int
    sections: dict[str, list[str]] = field(default_factory=dict)
    ids: list[int] = field(default_factory=list)

    def add(self, heading: str, said: str, id: int) -> None:
        """Add a line where it fits."""
        costs = size(said) + 3 + (0 if heading in self.sections else size(heading) + 1)
        if said and costs <= self.room:
            self.room -= costs
            self.sections.setdefault(heading, []).append(f"- {said}")
            self.ids.append(id)


def size(text: str) -> int:
    """Bytes of a text."""
    return len(text.encode())


def start(project: str, items: Iterable[Item], summaries: Sequence[Summary], largest: int = LARGEST) -> Brief:
    """What a session begins with; empty when nothing is known."""
    known = sorted(items, key=lambda item: (-item.score, -item.at, -item.id))
    head = f"Keepsake's record of earlier work on {project}. More on any line: ask Keepsake for its id."
    page = _Page(largest - size(head) - size(marks.OPEN) - size(marks.CLOSE) - 3)
    for item in (one for one in known if one.is_pinned):
        page.add(_PINNED, _line(item, KNOWN), item.id)
    known = [item for item in known if not item.is_pinned]
    for kind, heading in _HEADINGS.items():
        for item in known:
            if kind in (item.kind, item.subtype):
                page.add(heading, _line(item, KNOWN), item.id)
    _sessions(page, sorted(summaries, key=lambda one: (-one.at, -one.id)))
    work = [item for item in known if item.kind == "observation" and item.subtype in _WORK]
    for item in work[:MOST_DONE]:
        page.add(_DONE, _line(item, TOLD), item.id)
    facts = [item for item in known if item.kind in ("fact", "note", "insight", "milestone") and not item.is_knowledge]
    for item in facts[:MOST_FACTS]:
        page.add(_FACTS, _line(item, TOLD), item.id)
    return _marked(head, page, (_PINNED, *_HEADINGS.values(), _STEPS, _SESSIONS, _DONE, _FACTS))


def _sessions(page: _Page, summaries: Sequence[Summary]) -> None:
    for summary in summaries[:1]:
        for step in summary.parts.get("next_steps", "").splitlines():
            page.add(_STEPS, _ended(line(step, TOLD), summary.id), summary.id)
    for summary in summaries:
        page.add(_SESSIONS, _session(summary), summary.id)


def _session(summary: Summary) -> str:
    named = (("request", "asked"), ("completed", "done"), ("learned", "learned"))
    told = [f"{word}: {line(summary.parts[part], TOLD)}" for part, word in named if summary.parts.get(part)]
    said = "; ".join(told) or line(summary.text, TOLD)
    return _ended(f"{clock.iso(summary.at)[:10]} {said}", summary.id)


def prompt(items: Sequence[Item], largest: int = SMALL) -> Brief:
    """What fits a question, in few words; empty when nothing does."""
    head = "Keepsake's record has this on the question:"
    page = _Page(largest - size(head) - size(marks.OPEN) - size(marks.CLOSE) - 3)
    for item in items:
        page.add("", _line(item, TOLD), item.id)
    return _marked(head, page, ("",))


def _line(item: Item, longest: int) -> str:
    title, told = " ".join(item.title.split()), " ".join(item.text.split())
    said = told if not title or told.startswith(title) or item.kind == "observation" else f"{title}: {told}"
    return _ended(line(said or title, longest), item.id, clock.iso(item.at)[:10])


def _ended(said: str, id: int, day: str = "") -> str:
    # What is told is data: it must not close our own marks.
    safe = said.replace("<", "‹").replace(">", "›") if "keepsake-memory" in said else said
    return f"{safe} ({f'{day}, ' if day else ''}id {id})" if safe else ""


def _marked(head: str, page: _Page, order: Sequence[str]) -> Brief:
    if not page.ids:
        return Brief()
    lines = [head]
    for heading in order:
        if heading in page.sections:
            lines += [*([heading] if heading else []), *page.sections[heading]]
    return Brief("\n".join((marks.OPEN, *lines, marks.CLOSE)), tuple(dict.fromkeys(page.ids)))
