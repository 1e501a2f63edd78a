"""Telling a text that came from here from one that is new: without quotes, bullets, citations and dates around it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepsake.core.lazy import lazy

if TYPE_CHECKING:
    from keepsake.core import facts
else:
    facts = lazy("keepsake.core.facts")

#: A longer text is no repetition of an answer.
LONGEST = 20_000
_DATE = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?"
_ID = r"(?:(?:memory[ _])?id[:=]?\s*)?\d{12,19}"
_LEAD = re.compile(rf"(?:[-*+•>#|]+|\d{{1,3}}[.)]|\[\d{{1,4}}\]|[\[(](?:{_DATE}|{_ID})[\])]:?|{_DATE}:)\s+")
_TAIL = re.compile(
    rf"\s*(?:\[\d{{1,4}}(?:\s*[,;]\s*\d{{1,4}})*\]|[\[(](?:{_DATE}|{_ID})(?:,\s*(?:{_DATE}|{_ID}))*[\])])\s*[.;,]?$"
)
_AROUND = "\"'“”‘’«»*_` "


def plain(told: str) -> str:
    """A text as two are compared: blanks made even, without what stands around it and the full stop."""
    return " ".join(told.split()).strip(_AROUND).rstrip(".;,").strip(_AROUND)


def bare(line: str) -> str:
    """A line without what an answer or its reader puts before and behind a memory."""
    line, was = line.strip(), ""
    while line != was:
        was = line
        line = _LEAD.sub("", _TAIL.sub("", line).strip(_AROUND), count=1)
    return plain(line)


@dataclass(frozen=True, slots=True)
class Repeated:
    """A text as it may repeat others: as a whole, by lines, or by the sentences of a line."""

    whole: frozenset[str]
    lines: tuple[tuple[frozenset[str], tuple[frozenset[str], ...]], ...]

    @property
    def forms(self) -> frozenset[str]:
        """Everything that may be known."""
        found = set(self.whole)
        for line, sentences in self.lines:
            found |= line.union(*sentences)
        return frozenset(found)

    def is_known(self, known: Callable[[str], bool]) -> bool:
        """Whether all of it is known, and not only parts."""
        if any(map(known, self.whole)):
            return True
        return bool(self.lines) and all(
            any(map(known, line)) or (bool(parts) and all(any(map(known, part)) for part in parts))
            for line, parts in self.lines
        )


def _forms(told: str) -> frozenset[str]:
    return frozenset({plain(told), bare(told)}) - {""}


def repeated(told: str) -> Repeated | None:
    """How a text may repeat others; None when it is too long for that."""
    if len(told) > LONGEST:
        return None
    lines = [line for line in told.splitlines() if _forms(line)]
    return Repeated(_forms(told), tuple((_forms(line), _sentences(bare(line))) for line in lines))


def _sentences(line: str) -> tuple[frozenset[str], ...]:
    parts = [line[one.start : one.end] for one in facts.sentences(line, facts.Span(0, len(line)))]
    return tuple(_forms(part) for part in parts if _forms(part)) if len(parts) > 1 else ()


def handed(told: str) -> frozenset[str]:
    """The forms of an answer that someone may bring back: the whole, its lines and their sentences."""
    found = repeated(told[:LONGEST])
    return found.forms if found else frozenset()
