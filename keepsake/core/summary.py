"""A session in six fields, by rules: from what was observed, what the agent said last, and the client's own summary."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keepsake.core import words
from keepsake.core.pack import SUMMARY

#: Lines of a field, characters of a line, and of a whole field.
LINES, LINE, FIELD = 8, 300, 1_500
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*(])|\n+")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)]|\[[ x]\])\s+")
_MARKUP = re.compile(r"^[#*_\s]+|[*_]+$|\*\*")
_LEARNED = re.compile(
    r"\b(?:turns out|root cause|because|the (?:issue|problem|bug|reason|cause) (?:was|is)|caused by|discovered|"
    r"found (?:that|out|the)|learned|realis?z?ed|it appears)\b",
    re.IGNORECASE,
)
_NEXT_HEAD = re.compile(
    r"^[#*_\s]*(?:next steps?|to ?do|remaining(?: work)?|follow[- ]?ups?|what(?:'s| is) left)\b", re.I
)
_NEXT = re.compile(
    r"^next(?: up)?:|\b(?:next,? (?:step|i(?:'ll| will)|we)|still (?:need|to do|missing|open|fail)|remains? to|"
    r"left to do|not yet|follow[- ]up|todo)\b",
    re.IGNORECASE,
)
_NEXT_MARK = re.compile(r"^next(?: up)?:\s*", re.IGNORECASE)
#: Headings of clients' own summaries, and the field that each tells.
_HEADINGS: tuple[tuple[str, str], ...] = (
    ("primary request", "request"),
    ("user's request", "request"),
    ("files and code", "investigated"),
    ("key technical", "investigated"),
    ("errors and fixes", "learned"),
    ("problem solving", "learned"),
    ("key findings", "learned"),
    ("discoveries", "learned"),
    ("learned", "learned"),
    ("current work", "completed"),
    ("work completed", "completed"),
    ("accomplished", "completed"),
    ("completed", "completed"),
    ("pending tasks", "next_steps"),
    ("next step", "next_steps"),
    ("optional next", "next_steps"),
    ("remaining", "next_steps"),
    ("goal", "request"),
    ("task", "request"),
)
_HEADING = re.compile(r"^\s*(?:#{1,4}\s+|\d+[.)]\s+|\*\*)\s*\**([A-Z][^:\n*]{2,60}?)\**:?\**\s*(?::|$)\s*(.*)$")


@dataclass(frozen=True, slots=True)
class Seen:
    """One observation of the session."""

    type: str
    title: str
    narrative: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """What a summary is made of."""

    seen: Sequence[Seen]
    #: What the agent said last, and the client's own summary where it gave one.
    said: str = ""
    compacted: str = ""
    #: What was summed up before.
    before: Mapping[str, str] | None = None
    #: Where it took place: client and branch.
    place: str = ""


def by_rules(session: Session) -> dict[str, str]:
    """The fields that have something to say."""
    before, own = session.before or {}, _sections(session.compacted)
    prompts = [one.narrative for one in session.seen if one.type == "prompt"]
    request = before.get("request") or (words.line(prompts[0], LINE) if prompts else own.get("request", ""))
    learned = [*before.get("learned", "").splitlines(), *own.get("learned", "").splitlines(), *_learned(session.said)]
    steps = _next(session.said) or own.get("next_steps", "").splitlines()
    made = {
        "request": request,
        "investigated": _investigated(session.seen) or own.get("investigated", ""),
        "learned": _lines(learned),
        "completed": _completed(session.seen) or own.get("completed", ""),
        # An answer that names nothing more to do has done what was left.
        "next_steps": _lines(steps) or ("" if session.said else before.get("next_steps", "")),
        "notes": _notes(session),
    }
    return {name: made[name][:FIELD] for name in SUMMARY if made[name].strip()}


def told(parts: Mapping[str, str]) -> str:
    """A summary as one text to be found by."""
    named = {name: name.replace("_", " ").capitalize() for name in SUMMARY}
    return "\n".join(f"{named[name]}: {parts[name]}" for name in SUMMARY if parts.get(name))


def _lines(found: Sequence[str]) -> str:
    kept = dict.fromkeys(words.line(line, LINE) for line in found if line.strip())
    return "\n".join(list(kept)[-LINES:])


def _investigated(seen: Sequence[Seen]) -> str:
    read = list(dict.fromkeys(path for one in seen if one.type == "file-read" for path in one.files))
    looked = list(dict.fromkeys(one.title for one in seen if one.type in ("research", "delegation")))
    told = [f"Read {', '.join(read[:12])}{' and more' if len(read) > 12 else ''}"] if read else []
    return "\n".join([*told, *looked[:6]])


def _completed(seen: Sequence[Seen]) -> str:
    written = dict.fromkeys(one.title for one in seen if one.type == "file-write")
    ran: dict[str, str] = {}
    for one in seen:
        if one.type == "command":
            ran.pop(one.title, None)
            ran[one.title] = one.narrative
    return ", ".join([*list(written)[-15:], *[words.line(line, 120) for line in list(ran.values())[-6:]]])


def _notes(session: Session) -> str:
    failed = {one.title: one for one in session.seen if one.type == "command"}
    open_ = [title for title, one in failed.items() if one.narrative.endswith("(failure)")]
    lines = [session.place, *(f"Failed last: {title}" for title in open_[-3:])]
    if session.compacted and not _sections(session.compacted):
        lines.append(words.line(session.compacted, FIELD - 200))
    return "\n".join(line for line in lines if line)


def _plain(line: str) -> str:
    return _MARKUP.sub("", _BULLET.sub("", line)).strip()


def _learned(said: str) -> list[str]:
    return [_plain(part) for part in _SENTENCE.split(said) if _LEARNED.search(part) and 20 <= len(part) <= LINE]


def _next(said: str) -> list[str]:
    """What an answer says is left: the list under such a heading, else the sentences that say so."""
    lines = said.splitlines()
    for n, line in enumerate(lines):
        if _NEXT_HEAD.match(line):
            listed = _listed(lines[n + 1 :])
            rest = line.partition(":")[2].strip(" *_")
            return [*([rest] if rest else []), *listed][:LINES]
    told = (_plain(part) for part in _SENTENCE.split(said) if _NEXT.search(part) and 10 <= len(part) <= LINE)
    return [_NEXT_MARK.sub("", sentence) for sentence in told]


def _listed(lines: Sequence[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        if _BULLET.match(line):
            found.append(_plain(line))
        elif found or line.strip():
            break
    return found


def _sections(compacted: str) -> dict[str, str]:
    """The parts of a client's own summary, by its headings."""
    found: dict[str, list[str]] = {}
    field = ""
    for line in compacted.splitlines():
        if heading := _HEADING.match(line):
            name = heading[1].lower()
            field = next((field for words_, field in _HEADINGS if words_ in name), "")
            if field and heading[2].strip():
                found.setdefault(field, []).append(_plain(heading[2]))
        elif field and line.strip():
            found.setdefault(field, []).append(_plain(line))
    return {name: _lines(lines[:LINES]) for name, lines in found.items()}
