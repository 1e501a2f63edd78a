"""The answer that rules give from what was found: a direct line where the question asks for one, then the evidence."""

import re
from collections.abc import Iterable, Iterator, Sequence

from keepsake.core import cite, clock, markdown
from keepsake.core.evidence import DEEDS, DOCUMENTS, Evidence, Findings, Person
from keepsake.core.inquiry import Inquiry
from keepsake.core.when import EARLIEST, LATEST, Window
from keepsake.core.words import cost, lexemes

NOTHING = "Nothing relevant is known."
#: People who are named, what shows it for each, and changed files that are told of a commit.
PEOPLE, PROOFS, FILES = 3, 2, 3
#: Evidence weaker than this share of the best is for a model to weigh; by itself it would only be noise.
WEAK = 0.5
#: Sentences that tell why, and characters of one line of evidence.
REASONS, LONGEST = 3, 400
_TRAILER = re.compile(
    r"(?:signed-off|co-authored|reviewed|acked|tested|reported|suggested)-by:|change-id:", re.IGNORECASE
)
#: Lines of a file that are shown.
SHOWN = 14


def extracted(inquiry: Inquiry, found: Findings, most: int) -> str:
    """As much of an answer as fits in so many tokens, every line of it with its citations."""
    kept: list[str] = []
    told: set[int] = set()
    for block, numbers in _blocks(inquiry, found):
        longer = [*kept, block]
        sources = listed(found.evidence, sorted(told | numbers))
        if kept and cost("\n".join([*longer, *sources])) > most:
            break
        kept, told = longer, told | numbers
    while kept and kept[-1].startswith("#"):
        kept.pop()
    return "\n".join(kept).strip()


def direct(inquiry: Inquiry, found: Findings) -> str:
    """What answers at once; empty where the question is of no kind that lookups understand."""
    return "\n".join(told for told, _ in _direct(inquiry, found)).strip()


def listed(evidence: Sequence[Evidence], numbers: Iterable[int]) -> list[str]:
    """The list of sources; the bank is named where there are several."""
    banks = {one.bank for one in evidence}
    lines = []
    for n in numbers:
        one = evidence[n - 1]
        bank, url = (f"{one.bank}: " if len(banks) > 1 else ""), (f" <{one.url}>" if one.url else "")
        lines.append(f"- [{n}] {bank}{one.label}{url}")
    return lines


Block = tuple[str, set[int]]


def _blocks(inquiry: Inquiry, found: Findings) -> Iterator[Block]:
    head = list(_direct(inquiry, found))
    yield from head
    said = {n for _, numbers in head for n in numbers} if inquiry.kind != "who" else set()
    lines = [line for line in _evidence(inquiry, found, bool(head)) if not line[1] <= said]
    if head and lines:
        yield "\n### Evidence\n", set()
    yield from lines


def _cited(found: Findings, evidence: Iterable[Evidence]) -> tuple[str, set[int]]:
    numbers = list(dict.fromkeys(n for one in evidence if (n := found.number(one))))
    return "".join(f"[{n}]" for n in numbers), set(numbers)


def _direct(inquiry: Inquiry, found: Findings) -> Iterator[Block]:
    """What answers at once, where the question is of a kind that lookups understand."""
    if inquiry.kind in ("introduced", "removed") and found.turn:
        yield from _turned(inquiry, found, found.turn)
    elif inquiry.kind == "who" and found.people:
        yield _known_by(found)
    elif inquiry.kind == "changed" and found.changes:
        yield from _changed(inquiry, found)
    elif inquiry.kind == "changed" and found.last:
        marks, numbers = _cited(found, [found.last])
        since = f"; the last one before was on {found.last.day}: {_title(found.last)}"
        yield f"**No** changes in {_paths(found.paths)}{_time(found.window)}{since} {marks}\n", numbers


def _turned(inquiry: Inquiry, found: Findings, turn: Evidence) -> Iterator[Block]:
    marks, numbers = _cited(found, [turn])
    what = " and ".join(markdown.span(term) for term in inquiry.terms[:2]) or "It"
    by = f" by {markdown.quoted(turn.author)}" if turn.author else ""
    deed = _deed(inquiry, found.is_shown)
    yield f"{what} {deed} on **{turn.day}**{by} in {turn.name}: {_title(turn)} {marks}", numbers
    if reasons := _reasons(turn):
        # What a message goes on to say may be about something else that came with it.
        word = "Why" if inquiry.is_why else "Its message says"
        yield f"\n**{word}:** {reasons} {marks}", numbers
    elif inquiry.is_why:
        yield f"\n**Why:** its message gives no reason {marks}", numbers


def _deed(inquiry: Inquiry, is_shown: bool) -> str:
    """What a commit did to a thing, no surer than it was found out."""
    if inquiry.kind == "introduced":
        return "was introduced" if is_shown else "first appears"
    if is_shown:
        return "was last removed or changed"
    return "was last changed" if inquiry.paths else "was last spoken of as removed"


def _title(one: Evidence) -> str:
    return cite.shortened(markdown.quoted(one.title or one.text), LONGEST)


def _reasons(one: Evidence) -> str:
    return cite.shortened(markdown.quoted(" ".join(cite.sentences(_body(one))[:REASONS])), LONGEST)


def _body(one: Evidence) -> str:
    """What a commit, a pull request or an issue says beyond its title and the names of who signed it."""
    body = one.text.removeprefix(one.title).strip()
    return "\n".join(line for line in body.splitlines() if not _TRAILER.match(line))


def _known_by(found: Findings) -> Block:
    told, numbers = [], set()
    for person in found.people[:PEOPLE]:
        marks, cited = _cited(found, person.proof[:PROOFS])
        told.append(f"**{markdown.quoted(person.name)}** ({_times(person)}) {marks}")
        numbers |= cited
    return f"Ask {', then '.join(told)}", numbers


def _times(person: Person) -> str:
    return f"{person.touched} {'change' if person.touched == 1 else 'changes'}, the last on {person.last}"


def _changed(inquiry: Inquiry, found: Findings) -> Iterator[Block]:
    many = len(found.changes) + found.more
    what = f" in {_paths(inquiry.paths or found.paths)}" if found.paths else ""
    busiest = sorted(found.people, key=lambda person: -person.touched)[:PEOPLE]
    by = ", ".join(f"{markdown.quoted(person.name)} ({person.touched})" for person in busiest)
    marks, numbers = _cited(found, found.changes[:1])
    count = f"More than **{many}**" if found.is_cut else f"**{many}**"
    told = f"{count} {'change' if many == 1 else 'changes'}{what}{_time(found.window)}"
    yield f"{told}{f', by {by}' if by else ''} {marks}\n", numbers
    for one in found.changes:
        marks, numbers = _cited(found, [one])
        yield f"- {_line(one, found.paths)} {marks}", numbers
    if found.more:
        yield f"- … and {found.more} more, before {found.changes[-1].day}", set()


def _paths(paths: Sequence[str]) -> str:
    told = ", ".join(markdown.span(path) for path in paths[:FILES])
    return told + (f" and {len(paths) - FILES} more files" if len(paths) > FILES else "")


def _time(window: Window | None) -> str:
    if window is None:
        return ""
    start = f" from {clock.iso(window.start)[:10]}" if window.start > EARLIEST else ""
    return start + (f" until {clock.iso(window.end - 1)[:10]}" if window.end < LATEST else "")


def _line(one: Evidence, paths: Sequence[str]) -> str:
    when = " · ".join(part for part in (one.day, markdown.quoted(one.author)) if part)
    asked = set(paths)
    order = sorted(zip(one.files, one.changes, strict=False), key=lambda pair: pair[0] not in asked)
    changed = "; ".join(markdown.quoted(change) for _, change in order[:FILES])
    more = f" (+{len(one.changes) - FILES} files)" if len(one.changes) > FILES else ""
    return f"{when}: {_title(one)}{f' ({changed}{more})' if changed else ''}"


def _evidence(inquiry: Inquiry, found: Findings, is_answered: bool) -> Iterator[Block]:
    """Each piece of evidence by what it says about the question; the same words once."""
    low = WEAK * max((one.score for one in found.evidence), default=0.0)
    # What was looked up has no score, and is there for a reason.
    near = {n: one for n, one in enumerate(found.evidence, 1) if not one.score or one.score >= low}
    told = {n: _said(inquiry, one) for n, one in near.items() if not _is_code(one)}
    twins: dict[str, set[int]] = {}
    for n, said in told.items():
        twins.setdefault(said, set()).add(n)
    # Who did what when is not told by the lines as they are now.
    has_lines = not is_answered or inquiry.kind not in ("who", "changed")
    for n, one in enumerate(found.evidence, 1):
        if _is_code(one) and has_lines:
            yield f"- {markdown.span(one.name)} [{n}]\n\n{_code(inquiry, one)}\n", {n}
        elif n in told and told[n] and n == min(twins[told[n]]) and _belongs(inquiry, found, one):
            when = " · ".join(part for part in (one.day, markdown.quoted(one.author)) if part)
            marks = "".join(f"[{number}]" for number in sorted(twins[told[n]]))
            yield f"- {when}{': ' if when else ''}{told[n]} {marks}", twins[told[n]]


def _said(inquiry: Inquiry, one: Evidence) -> str:
    """What a piece of evidence says about the question: its title, and the sentences that share most with it."""
    if one.kind not in DEEDS:
        told = " ".join(_document(inquiry, markdown.unfenced(one.text)))
        return cite.shortened(markdown.quoted(told), LONGEST)
    body = _body(one)
    most = REASONS if one.key in inquiry.tickets or inquiry.kind == "why" else cite.MOST
    told = " ".join(cite.best(inquiry.question, body, most) if body else [])
    if len(body) <= LONGEST // 2 or one.key in inquiry.tickets:
        told = " ".join(cite.sentences(body)[:REASONS])
    title = _title(one)
    return f"{title} — {cite.shortened(markdown.quoted(told), LONGEST)}" if told else title


def _document(inquiry: Inquiry, text: str) -> list[str]:
    """The sentences of a document that answer best; of one that is nothing but a table, its rows."""
    rows = [line for line in text.splitlines() if line.lstrip().startswith("|")]
    prose = "\n".join(line for line in text.splitlines() if line not in rows).strip()
    if prose or not rows:
        return cite.best(inquiry.question, prose) if prose else []
    wanted = set(lexemes(inquiry.question))
    return sorted(rows, key=lambda row: -len(wanted.intersection(lexemes(row))))[: cite.MOST]


def _belongs(inquiry: Inquiry, found: Findings, one: Evidence) -> bool:
    """Whether it belongs to an answer that is told already: deeds of the asked time, or what people did."""
    if inquiry.kind == "who" and found.people:
        return one.kind in DEEDS and one.author in {person.name for person in found.people[:PEOPLE]}
    if inquiry.kind != "changed" or not found.changes or found.window is None:
        return True
    return one.kind in DEEDS and bool(one.date) and found.window.start <= clock.parse(one.date) < found.window.end


def _is_code(one: Evidence) -> bool:
    """Lines that were read from a file just now; they are shown as they stand."""
    return one.kind in DOCUMENTS and not one.memory


def _code(inquiry: Inquiry, one: Evidence) -> str:
    lines = one.text.splitlines()
    first = next((n for n, line in enumerate(lines) if any(term in line for term in inquiry.terms)), 0)
    shown = lines[max(0, first - 2) : max(0, first - 2) + SHOWN]
    return markdown.block("\n".join(shown), "  ")
