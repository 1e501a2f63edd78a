"""What a reader gives: one thing that another tool remembers; no pydantic here, because it is only handed on."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from keepsake.core import clock
from keepsake.core.envelope import Envelope
from keepsake.core.project import Project

#: What our kinds of knowledge are called, here as in the tools that have them too.
KNOWLEDGE = ("decision", "constraint", "heuristic", "rejected")
#: The fields of a summary.
SUMMARY = ("request", "investigated", "learned", "completed", "next_steps", "notes")
TITLE = 500
_UNFIT = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that another tool remembers."""

    #: The tool, its table and its own id: what tells this record from all others, for ever.
    key: str
    kind: str
    text: str
    subtype: str = ""
    title: str = ""
    #: What the tool calls the project; empty where it knows none.
    project: str = ""
    session: str = ""
    #: Microseconds UTC; None where the tool does not know.
    at: int | None = None
    parts: dict[str, object] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    metadata: dict[str, object] = field(default_factory=dict)
    #: Who and what it is about, each with its type.
    entities: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a transcript, with the project that its folder belongs to."""

    envelope: Envelope
    project: Project
    #: Which transcript; a session may have several.
    file: str
    #: Bytes of it up to the line that told this.
    end: int


@dataclass(frozen=True, slots=True)
class Broken:
    """Something that could not be read."""

    where: str


@dataclass(frozen=True, slots=True)
class Step:
    """What a reader came to, and how far it has come."""

    given: Record | Event | Broken
    #: In the unit of `Found.size`, counted from the start.
    done: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Something that can be read."""

    source: str
    path: Path
    #: Rows of a database, bytes of files.
    size: int


Steps = Iterator[Step]


def fit(text: object) -> str:
    """Text that every store takes; what is no text is empty."""
    return _UNFIT.sub("\ufffd", text).strip() if isinstance(text, str) else ""


def short(text: str) -> str:
    """The first line of a text as a title."""
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= 120 else f"{line[:119]}…"


def moment(epoch: object, written: object) -> int | None:
    """A time from milliseconds (or seconds, as some versions wrote them), else from its ISO 8601 text."""
    if isinstance(epoch, int | float) and epoch > 0:
        return int(epoch * 1_000) if epoch > 100_000_000_000 else int(epoch * 1_000_000)
    try:
        return clock.parse(written) if isinstance(written, str) else None
    except ValueError:
        return None


def listed(told: object) -> list[str]:
    """A list as a tool wrote it: JSON, or words between commas."""
    text = fit(told)
    if not text.startswith("["):
        return [part for part in (piece.strip() for piece in text.split(",")) if part]
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    return [one for one in (fit(part) for part in parsed) if one]


def summed_up(parts: dict[str, object]) -> str:
    """The fields of a summary as one text."""
    return "\n".join(f"{name.replace('_', ' ').capitalize()}: {told}" for name, told in parts.items())


def filled(parts: dict[str, object]) -> dict[str, object]:
    """Only the parts that say something."""
    return {name: told for name, told in parts.items() if told}
