"""Memories as pages show them: what was asked for, each signal's part, who and what stands behind them."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import get_args
from urllib.parse import urlsplit

from keepsake.core import clock
from keepsake.core.clock import DAY
from keepsake.core.models import FactType, Kind, Memory, Trust
from keepsake.core.words import line
from keepsake.ops.memory import Hit
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.pages import icons
from keepsake.surfaces.pages.words import who

#: Characters of a question that are asked.
LONGEST = 2_000
#: The part of a score at which a bar is full.
FULL = 0.6
#: Words of two texts that are compared.
COMPARED = 1_500
KINDS = {kind: icons.WORDS.get(kind, kind.capitalize()) for kind in get_args(Kind)}
TYPES = {kind: kind.capitalize() for kind in get_args(FactType)}
TRUST = dict(zip(get_args(Trust), ("Owner", "Agents", "Outside"), strict=True))
TIMES = {"day": ("Last day", 1), "week": ("Last week", 7), "month": ("Last month", 31), "year": ("Last year", 366)}
#: What a source is called, and the kinds that count as it.
SOURCES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "told": ("Just told", ("told",)),
    "session": ("Sessions", ("session", "transcript")),
    "document": ("Documents", ("document",)),
    "artifact": ("Artifacts", ("artifact",)),
    "repository": ("Repository", ("commit", "pull", "issue", "readme", "file", "tag", "release")),
    "web": ("Web pages", ("url",)),
}
#: Which parts of a score belong to which signal; always in this order.
SIGNALS = (
    ("Words", ("words", "exact")),
    ("Meaning", ("meaning",)),
    ("Links", ("named", "linked", "beside", "echo")),
    ("Time", ("time",)),
)
_WORD = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the address asks for; a value that is no choice counts as left out."""

    q: str = ""
    kind: str = ""
    type: str = ""
    tag: str = ""
    time: str = ""
    source: str = ""
    trust: str = ""
    as_of: str = ""
    past: str = ""
    before: str = ""

    @classmethod
    def of(cls, visit: Visit) -> "Wanted":
        """What this address asks for."""
        given = {name: visit.query(name).strip()[:LONGEST] for name in cls.__dataclass_fields__}
        known = {"kind": KINDS, "type": TYPES, "time": TIMES, "source": SOURCES, "trust": TRUST, "past": ("1",)}
        return cls(**{name: value for name, value in given.items() if value in known.get(name, (value,))})

    def without(self, *names: str) -> dict[str, str]:
        """The query of the same page with something left out; a page further back is none of it."""
        fields = {name: getattr(self, name) for name in Wanted.__dataclass_fields__}
        return {name: value for name, value in fields.items() if value and name not in (*names, "before")}

    @property
    def moment(self) -> str | None:
        """As of when; a day counts to its end."""
        is_day = len(self.as_of) == len("2026-11-16")
        return (f"{self.as_of}T23:59:59Z" if is_day else self.as_of) or None

    def narrowed(self, now: int) -> dict[str, object]:
        """The arguments that browsing and recalling have in common."""
        days = TIMES[self.time][1] if self.time else 0
        return {
            "kinds": [self.kind] if self.kind else None,
            "types": [self.type] if self.type else None,
            "tags": [self.tag] if self.tag else None,
            "sources": list(SOURCES[self.source][1]) if self.source else None,
            "trust": [self.trust] if self.trust else None,
            "since": clock.iso(now - days * DAY) if days else None,
            "as_of": self.moment,
        }

    @property
    def chips(self) -> list["Chip"]:
        """The filters that are choices, in the order of the page."""
        choices: tuple[tuple[str, str, Mapping[str, str]], ...] = (
            ("kind", "Kind", KINDS),
            ("type", "Type", TYPES),
            ("time", "Time", {name: told for name, (told, _) in TIMES.items()}),
            ("source", "Source", {name: told for name, (told, _) in SOURCES.items()}),
            ("trust", "Trust", TRUST),
        )
        return [Chip(name, label, values, getattr(self, name)) for name, label, values in choices]


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter: its choices, and the one that was made."""

    name: str
    label: str
    choices: Mapping[str, str]
    value: str

    @property
    def said(self) -> str:
        """What it says."""
        if self.name == "time":
            return self.choices.get(self.value, "Any time")
        return f"{self.label}: {self.choices.get(self.value, 'all').lower()}"


@dataclass(frozen=True, slots=True)
class Row:
    """A memory in a list, with why it is there."""

    memory: Memory
    score: float = 0.0
    #: Each signal's part of the score.
    signals: tuple[tuple[str, float], ...] = ()
    reranked: float | None = None

    @property
    def parts(self) -> tuple[float, ...]:
        """The parts alone, for the bars."""
        return tuple(part for _, part in self.signals)

    @property
    def said(self) -> str:
        """Its words, as far as a list shows them."""
        return line(self.memory.text or self.memory.title, 400)

    @property
    def source(self) -> str:
        """Where it came from, in a word or two."""
        return line(self.memory.document or "", 40) or f"said by {who(self.memory.author)}"


def of_hit(hit: Hit) -> Row:
    """A memory that answers."""
    parts = tuple((name, sum(hit.signals.get(one, 0.0) for one in of)) for name, of in SIGNALS)
    return Row(hit.memory, hit.score, parts, hit.signals.get("reranked"))


def address(uri: str) -> str:
    """An address that a link may lead to; nothing where it is no page of the web."""
    return uri if urlsplit(uri).scheme in ("http", "https") else ""


Said = list[tuple[str, bool]]


def compared(one: str, other: str) -> tuple[Said, Said]:
    """Two texts in pieces, each with whether the other says it otherwise."""
    left, right = _WORD.findall(one), _WORD.findall(other)
    if len(left) + len(right) > COMPARED:
        return [(one, False)], [(other, False)]
    told: tuple[Said, Said] = ([], [])
    for tag, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for side, words in ((told[0], left[a:b]), (told[1], right[c:d])):
            if words:
                side.append(("".join(words), tag != "equal"))
    return _joined(told[0]), _joined(told[1])


def _joined(pieces: Iterable[tuple[str, bool]]) -> Said:
    """Changed pieces with only a blank between them are one."""
    found: Said = []
    for text, is_changed in pieces:
        if found and (found[-1][1] == is_changed or (not text.strip() and found[-1][1])):
            found[-1] = (found[-1][0] + text, found[-1][1])
        else:
            found.append((text, is_changed))
    return found


def shared_beginning(one: str, other: str) -> str:
    """The words that two texts begin with alike; nothing where those are too few to tell what they are about."""
    left, right = one.split(), other.split()
    same = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    return f"{' '.join(left[:same])} …" if same >= 2 else ""


def tags_of(text: str) -> list[str]:
    """Tags as someone typed them, between commas."""
    return list(dict.fromkeys(tag for part in text.replace("\n", ",").split(",") if (tag := part.strip())))


def may(visit: Visit, scope: str) -> bool:
    """Whether whoever looks has a scope at this bank, be it elsewhere or not."""
    acting = visit.ctx.principal.acting(frozenset({scope}))
    return scope in acting.scopes and acting.sees(visit.bank)
