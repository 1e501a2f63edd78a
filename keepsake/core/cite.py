"""Answers that rest on memories: the sentences that answer best, and the [n] that say where each comes from."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepsake.core import text
from keepsake.core.lazy import lazy

if TYPE_CHECKING:
    from keepsake.core import facts
else:
    facts = lazy("keepsake.core.facts")

#: Who made a text that no language model made.
RULES = "rules"
#: Sentences taken from one memory, and characters of each.
MOST, LONGEST = 2, 600
#: Sentences that share more of their words than this say the same.
SAME = 0.85
_CITED = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")
_PIECE = re.compile(r"(?<=[.!?\]:])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A memory as an answer may cite it."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of an answer and the passages it rests on."""

    text: str
    numbers: tuple[int, ...]

    @property
    def cited(self) -> str:
        """The sentence with its citations."""
        return f"{self.text} {''.join(f'[{number}]' for number in self.numbers)}"


def sentences(whole: str) -> list[str]:
    """The sentences of a text, each on one line."""
    return [" ".join(whole[span.start : span.end].split()) for span in facts.split(whole)]


def best(query: str, whole: str, most: int = MOST) -> list[str]:
    """The sentences of a memory that answer best, in their order; the first one when none shares a word."""
    wanted, told = set(text.asked(query)), sentences(whole)
    shared = [len(wanted & set(text.lexemes(one))) for one in told]
    order = sorted(range(len(told)), key=lambda n: (-shared[n], n))[:most]
    kept = sorted(n for n in order if shared[n]) or [0]
    return [shortened(told[n]) for n in kept if n < len(told)]


def shortened(sentence: str, longest: int = LONGEST) -> str:
    """A sentence cut at a word where it is too long."""
    return sentence if len(sentence) <= longest else sentence[:longest].rsplit(" ", 1)[0] + " …"


def excerpt(query: str, whole: str, longest: int) -> str:
    """As much of a text as there is room for: all of it, or what answers best."""
    if len(whole) <= longest:
        return whole
    return shortened(" … ".join(best(query, whole, most=8)), longest)


def extract(query: str, passages: Sequence[Passage]) -> list[Line]:
    """The best sentences of each passage, in the order of the passages; what says the same is said once."""
    lines: list[Line] = []
    for passage in passages:
        for sentence in best(query, passage.text):
            twin = next((n for n, line in enumerate(lines) if alike(line.text, sentence) > SAME), None)
            if twin is None:
                lines.append(Line(sentence, (passage.number,)))
            elif passage.number not in lines[twin].numbers:
                lines[twin] = Line(lines[twin].text, (*lines[twin].numbers, passage.number))
    return lines


def alike(one: str, other: str) -> float:
    """How much of their words two sentences share, 0 to 1."""
    a, b = set(text.words(one)), set(text.words(other))
    return len(a & b) / len(a | b) if a | b else 1.0


def cited(answer: str) -> list[int]:
    """The numbers that an answer cites, each once, in order."""
    numbers = [int(number) for group in _CITED.findall(answer) for number in re.findall(r"\d+", group)]
    return list(dict.fromkeys(numbers))


def check(answer: str, known: Collection[int]) -> None:
    """Refuse an answer that is empty, cites nothing, or cites what it was not given."""
    if not answer.strip():
        raise ValueError("it is empty.")
    numbers = cited(answer)
    if not numbers:
        raise ValueError("it cites no memory; put the number of a memory, such as [1], after every claim.")
    if invented := [number for number in numbers if number not in known]:
        told = ", ".join(f"[{number}]" for number in invented[:5])
        raise ValueError(f"it cites {told}, which was not given; cite only the numbers that were.")


def shorter(answer: str) -> str:
    """The answer without its last sentence; empty when it has but one."""
    ends = [match.start() for match in _PIECE.finditer(answer.rstrip())]
    return answer[: ends[-1]].rstrip() if ends else ""


def supported(claim: str, evidence: str) -> bool:
    """Whether a claim could come from a text: it shares its words, and no number of it is new."""
    known, told = set(text.lexemes(evidence)), set(text.lexemes(claim))
    numbers = {word for word in told if any(letter.isdigit() for letter in word)}
    return numbers <= known and len(told & known) * 3 >= len(told) > 0
