"""The lines of a file that speak of something: windows around them, cut where the code itself pauses."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from keepsake.core.words import lexemes

#: Lines of a window.
HEIGHT = 30
#: What a line is worth that holds a name as it is written, or that makes the thing of that name.
WRITTEN, MADE = 3.0, 4.0
#: How much more words are worth in a line that makes something, and characters of a line that anyone reads.
TOLD, LONGEST = 2.0, 2_000
_MAKES = re.compile(
    r"^\s*(?:(?:export|public|private|protected|static|async|pub|default|final|abstract)\s+)*"
    r"(?:def|class|function|func|fn|struct|enum|interface|trait|type|impl|module|const|let|var|create table|#+)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Lines:
    """A run of lines, the first and the last counted from 1."""

    start: int
    end: int
    worth: float
    #: The share of what is asked that they hold, 0 to 1.
    covers: float = 0.0


def windows(lines: Sequence[str], names: Sequence[str], words: Sequence[str], most: int = 2) -> list[Lines]:
    """The runs of lines that hold most of what is asked, best first, none touching another."""
    wanted = set(lexemes(" ".join((*names, *words))))
    held = [wanted.intersection(lexemes(line)) if len(line) <= LONGEST else set[str]() for line in lines]
    seen = Counter(word for found in held for word in found)
    # A word that stands everywhere in a file tells little about where to look in it.
    weights = {word: 1 / (1 + math.log(count)) for word, count in seen.items()}
    written = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)") for name in names]
    worth = [
        _worth(line, written, sum(weights[word] for word in found)) for line, found in zip(lines, held, strict=True)
    ]
    found: list[Lines] = []
    while len(found) < most and (best := _best(worth)):
        window = _widened(lines, best)
        told = set().union(*held[window.start - 1 : window.end])
        found.append(replace(window, covers=len(told) / len(wanted)))
        worth[window.start - 1 : window.end] = [0.0] * (window.end - window.start + 1)
    return found


def _worth(line: str, written: Sequence[re.Pattern[str]], shared: float) -> float:
    if not shared:
        return 0.0
    named, makes = sum(1 for name in written if name.search(line)), bool(_MAKES.match(line))
    return shared * (1 + TOLD * makes) + named * (WRITTEN + MADE * makes)


def _best(worth: Sequence[float]) -> Lines | None:
    """The run of lines worth most; it begins at its own first line that is worth something."""
    best: Lines | None = None
    total = sum(worth[:HEIGHT])
    for start in range(max(1, len(worth))):
        if start and start + HEIGHT - 1 < len(worth):
            total += worth[start + HEIGHT - 1]
        if start:
            total -= worth[start - 1]
        if start < len(worth) and worth[start] > 0 and (best is None or total > best.worth + 1e-9):
            best = Lines(start + 1, min(len(worth), start + HEIGHT), total)
    return best


def _widened(lines: Sequence[str], window: Lines) -> Lines:
    """Begin up to three lines earlier, at a blank line or a decorator, and end where text ends."""
    start, end = window.start, window.end
    for _ in range(3):
        if start > 1 and lines[start - 2].strip():
            start -= 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return Lines(start, end, window.worth)
