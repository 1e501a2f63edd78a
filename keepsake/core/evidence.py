"""Evidence: commits, pull requests, issues, releases, files and memories that an answer about a project rests on."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from keepsake.core import clock, markdown
from keepsake.core.models import Memory
from keepsake.core.when import Window
from keepsake.core.words import line

#: What a repository tells, as `metadata.type` names it; anything else is a memory like any other.
KINDS = frozenset("commit tag readme file note tree pull issue release".split())
#: What of it has lines of a file.
DOCUMENTS = frozenset(("readme", "file", "note"))
#: What of it happened and was done by someone.
DEEDS = frozenset(("commit", "pull", "issue", "release", "tag"))
#: Days after which a change says half as much about who knows what it changed.
HALF_LIFE_DAYS = 180
LONGEST_TITLE = 120


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that an answer may cite."""

    bank: str
    kind: str
    #: Full name of the commit, `pr/12`, `issue/7`, `release/v1.0`, a path, `chat/n`, or the id of a memory.
    key: str
    title: str
    text: str
    #: ISO 8601; empty for what has no moment of its own.
    date: str = ""
    author: str = ""
    path: str = ""
    start: int = 0
    end: int = 0
    #: The commit at which the lines are these, and git's name for the file they stand in.
    revision: str = ""
    blob: str = ""
    url: str = ""
    #: The files that a commit changed, and what it changed in each, in a few signs.
    files: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    #: Whether it only brings together what others changed.
    is_merge: bool = False
    #: Id of the memory; empty for lines of a file that were read just now.
    memory: str = ""
    trust: str = "outside"
    score: float = 0.0

    @property
    def identity(self) -> tuple[str, str, str, int, int]:
        """What makes two pieces of evidence one citation."""
        return self.bank, self.kind, self.key, self.start, self.end

    @property
    def day(self) -> str:
        """The day it happened."""
        return self.date[:10]

    @property
    def name(self) -> str:
        """What it is called by those who work on the project."""
        if self.kind in DOCUMENTS:
            return f"{self.path}#L{self.start}-L{self.end}" if self.start else self.path
        number = self.key.rpartition("/")[2]
        names = {
            "commit": f"commit {self.key[:7]}",
            "pull": f"PR #{number}",
            "issue": f"issue #{number}",
            "release": f"release {self.key.removeprefix('release/')}",
            "tag": f"tag {self.key}",
            "tree": f"file tree at {self.revision[:7]}",
            "chat": f"message {number} of chat {self.key.rpartition('/')[0]}",
        }
        return names.get(self.kind, f"memory {self.key}")

    @property
    def label(self) -> str:
        """Its line in the list of sources."""
        told = ", ".join(markdown.quoted(part) for part in (self.day, self.author) if part)
        if self.kind in DOCUMENTS and self.revision:
            told = f"at {self.revision[:7]}"
        title = line(markdown.quoted(self.title), LONGEST_TITLE) if self.title not in ("", self.path) else ""
        return f"{markdown.quoted(self.name)}{f' ({told})' if told else ''}{f': {title}' if title else ''}"


def of_memory(memory: Memory, score: float = 0.0) -> Evidence:
    """A stored memory as evidence."""
    told = memory.metadata
    kind = str(told.get("type", ""))
    is_ours = kind in KINDS and memory.kind == "chunk"
    return Evidence(
        bank=memory.bank,
        kind=kind if is_ours else "memory",
        key=(memory.document or memory.id) if is_ours else memory.id,
        title=memory.title,
        text=memory.text,
        date=memory.happened_at or (_date(told) if is_ours else memory.learned_at),
        author=_text(told, "author") if is_ours else "",
        path=_text(told, "path") if is_ours else "",
        start=_number(told, "start_line") if is_ours else 0,
        end=_number(told, "end_line") if is_ours else 0,
        revision=_text(told, "revision") if is_ours else "",
        blob=_text(told, "blob") if is_ours else "",
        url=_text(told, "url") if is_ours else "",
        memory=memory.id,
        trust=memory.trust,
        score=score,
    )


def _text(told: dict[str, object], name: str) -> str:
    value = told.get(name)
    return value if isinstance(value, str) else ""


def _date(told: dict[str, object]) -> str:
    value = _text(told, "date")
    try:
        return clock.iso(clock.parse(value)) if value else ""
    except ValueError:
        return ""


def _number(told: dict[str, object], name: str) -> int:
    value = told.get(name)
    return value if isinstance(value, int) else 0


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who worked on what is asked about."""

    name: str
    touched: int
    #: The day of the last time.
    last: str
    weight: float
    #: What shows it, the latest first.
    proof: tuple[Evidence, ...]


def people(found: Iterable[Evidence], now: int) -> list[Person]:
    """Who did these things, by how often and how recently, whoever knows most first."""
    deeds: dict[str, list[Evidence]] = {}
    for one in found:
        if one.author and one.date and one.kind in DEEDS:
            deeds.setdefault(one.author, []).append(one)
    made = [_person(name, did, now) for name, did in deeds.items()]
    return sorted(made, key=lambda person: (-person.weight, person.name))


def _person(name: str, did: Sequence[Evidence], now: int) -> Person:
    latest = sorted(did, key=lambda one: one.date, reverse=True)
    ages = [max(0, now - clock.parse(one.date)) / clock.DAY for one in did]
    weight = sum(math.pow(0.5, age / HALF_LIFE_DAYS) for age in ages)
    return Person(name, len(did), latest[0].day, weight, tuple(latest))


@dataclass(frozen=True, slots=True)
class Findings:
    """All that was found for a question."""

    #: The evidence in the order of its numbers, from 1.
    evidence: tuple[Evidence, ...] = ()
    #: The commit with which the asked thing came or went, and whether its content shows it.
    turn: Evidence | None = None
    is_shown: bool = False
    people: tuple[Person, ...] = ()
    #: What was done in the asked time, the latest first, and how much more of it there is.
    changes: tuple[Evidence, ...] = ()
    more: int = 0
    #: Whether there was more than anyone read.
    is_cut: bool = False
    window: Window | None = None
    #: What was last done to the asked files, where nothing was in that time.
    last: Evidence | None = None
    #: The files that the question means.
    paths: tuple[str, ...] = ()

    def number(self, one: Evidence) -> int:
        """The number of a piece of evidence; 0 for one that is not among them."""
        return next((n for n, known in enumerate(self.evidence, 1) if known.identity == one.identity), 0)

    def without(self, gone: Iterable[Evidence]) -> "Findings":
        """The same without some evidence and all that rests on it."""
        lost = {one.identity for one in gone}

        def left(found: Iterable[Evidence]) -> tuple[Evidence, ...]:
            return tuple(one for one in found if one.identity not in lost)

        known = [replace(one, proof=left(one.proof)) for one in self.people]
        return replace(
            self,
            evidence=left(self.evidence),
            turn=self.turn if self.turn and self.turn.identity not in lost else None,
            people=tuple(person for person in known if person.proof),
            changes=left(self.changes),
            last=self.last if self.last and self.last.identity not in lost else None,
        )
