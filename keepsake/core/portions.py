"""A long text in portions that one memory each can hold, every one with its exact place."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from keepsake.core import sections

#: Portions of one text that become memories; what stands behind them can be read, not searched.
MOST = 1_000
LONGEST_TITLE = 300
_BETWEEN = " › "
_LINE_END = re.compile(r"\r\n|\r|\n")
_HEADED = frozenset(("markdown", "md", "text/markdown"))


@dataclass(frozen=True, slots=True)
class Portion:
    """A portion: `text[start:end]`, and what it is called."""

    title: str
    start: int
    end: int


def split(title: str, type: str, text: str) -> list[Portion]:
    """The portions of a text, in order; a text that says something has at least one, and a short one no more."""
    if len(text) <= sections.LONG:
        return [Portion(_called(title, ""), a, b) for a, b in _stripped(text, 0, len(text))]
    ends = [match.span() for match in _LINE_END.finditer(text)]
    starts = [0, *(end for _, end in ends)]
    stops = [*(start for start, _ in ends), len(text)]
    found: list[Portion] = []
    for one in sections.split("a.md" if type in _HEADED else "a.txt", text, MOST):
        called = _called(title, one.title)
        found += [Portion(called, a, b) for a, b in _cut(text, starts[one.start - 1], stops[one.end - 1])]
        if len(found) >= MOST:
            return found[:MOST]
    # What is nothing but headings, or settings, has no section.
    return found or [Portion(_called(title, ""), a, b) for a, b in _cut(text, 0, len(text))][:MOST]


def _called(title: str, heading: str) -> str:
    """A portion's title: that of the whole, and the headings above it where they tell more."""
    headings = [part for part in heading.split(_BETWEEN) if part and part != title]
    return _BETWEEN.join([title, *headings])[:LONGEST_TITLE]


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A stretch without the blanks around it, in pieces where a line is endless."""
    while end - start > 2 * sections.LONGEST:
        at = text.rfind(" ", start + sections.LONG, start + sections.LONGEST)
        stop = at if at > 0 else start + sections.LONGEST
        yield from _stripped(text, start, stop)
        start = stop
    yield from _stripped(text, start, end)


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    told = text[start:end]
    if kept := told.strip():
        first = start + told.index(kept[0])
        yield first, first + len(kept)
