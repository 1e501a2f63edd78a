"""Scoring: BM25 over fetched candidates, the fusion of signals, and an order without repetitions."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from keepsake.core import words as text

K1, B = 1.2, 0.75
#: Punctuation around a run, and what makes a run more than a word: signs within it, or a digit.
_AROUND = "?!,;:.\"'()[]{}<>`"
_LETTERS = re.compile(r"[^\W\d_]{2}")
_IDENTIFIER = re.compile(r"\w[-_./@]+\w|\d|^[-#/.~]+\w")
#: Documents that every bank is taken to have besides its own, so that a young bank's words weigh something.
YOUNG = 100
#: The best memories whose telling words count, how many of these words, and in what share of the candidates at most.
LEADING, TELLING, COMMON = 3, 8, 0.1
#: What a result loses that says, word for word, what one above it says.
SAME = 0.3
#: The share of words that makes two results the same thing said again.
TWIN = 0.7


@dataclass(frozen=True, slots=True)
class Corpus:
    """What BM25 must know of a bank: its size and how common each asked word is."""

    documents: int
    words: int
    frequency: Mapping[str, int]

    def weight(self, word: str) -> float:
        """Inverse document frequency, never below a little."""
        seen = min(self.frequency.get(word, 0), self.documents)
        return max(0.01, math.log(1 + (self.documents + YOUNG - seen + 0.5) / (seen + 0.5)))

    @property
    def mean_length(self) -> float:
        """Words of an average document."""
        return max(1.0, self.words / max(1, self.documents))


def bm25(corpus: Corpus, asked: Mapping[str, str]) -> Callable[[str, int], float]:
    """Make the scorer of a question from its words as documents hold them: of a document, and how many words it has."""
    weights = [(needle, corpus.weight(word) * (K1 + 1)) for word, needle in asked.items()]
    base, slope = K1 * (1 - B), K1 * B / corpus.mean_length

    def score(document: str, length: int) -> float:
        norm, total = base + slope * length, 0.0
        for needle, weight in weights:
            if count := document.count(needle):
                total += weight * count / (count + norm)
        return total

    return score


def essential(corpus: Corpus, asked: Sequence[str], cap: int) -> list[tuple[str, ...]]:
    """Choose which words fetch candidates, so that no question touches more than about `cap` documents.

    The rarest words fetch alone while they stay under the cap; where even the rarest is too common, it must
    come together with another asked word. All words count in the score later.
    """
    present = sorted((word for word in asked if corpus.frequency.get(word, 0)), key=lambda w: corpus.frequency[w])
    if not present:
        return []
    alone: list[str] = []
    total = 0
    for word in present:
        total += corpus.frequency[word]
        if total > cap and alone:
            break
        alone.append(word)
    first = alone[0]
    if corpus.frequency[first] <= cap or len(present) == 1:
        return [(word,) for word in alone]
    return [(first, word) for word in present[1:]]


def spread(scores: Mapping[int, float], floor: float = 0.0) -> dict[int, float]:
    """Min-max scale to 0..1 over the candidates, counting from the floor."""
    if not scores:
        return {}
    low, high = min(floor, *scores.values()), max(scores.values())
    if high <= low:
        return dict.fromkeys(scores, 0.0)
    return {id: (score - low) / (high - low) for id, score in scores.items()}


def echoes(
    scores: Mapping[int, float], words: Mapping[int, Collection[str]], asked: Collection[str]
) -> dict[int, float]:
    """How much of the best memories' telling words each other one holds, 0 to 1; the question's own do not count."""
    leading = sorted(scores, key=lambda id: (-scores[id], -id))[:LEADING]
    if not leading or scores[leading[0]] <= 0:
        return {}
    seen = Counter(word for found in words.values() for word in found)
    most = max(2.0, COMMON * len(words))
    telling: dict[str, float] = {}
    for id in leading:
        part = scores[id] / scores[leading[0]]
        for word in words.get(id, ()):
            if word not in asked and 2 <= seen[word] <= most:
                telling[word] = telling.get(word, 0.0) + part * math.log(len(words) / seen[word])
    best = sorted(telling.items(), key=lambda one: (-one[1], one[0]))[:TELLING]
    total = sum(weight for _, weight in best)
    if total <= 0:
        return {}
    others = [id for id in scores if id not in leading and id in words]
    return {id: sum(weight for word, weight in best if word in words[id]) / total for id in others}


def identifiers(query: str) -> set[str]:
    """The versions, paths, numbers and names in code that a question consists of; none where it says much else."""
    runs = {run.strip(_AROUND).casefold() for run in query.split()}
    wanted = {run for run in runs if _IDENTIFIER.search(run)}
    told = set(text.lexemes(" ".join(wanted)))
    return wanted if 2 * len(told) >= len(text.asked(query)) else set()


def exact(wanted: Collection[str], texts: Mapping[int, str]) -> dict[int, float]:
    """How sure it is, 0 to 1, that a text is meant because it holds one of these identifiers as it is written.

    Numbers in another order are another version or address; words in another order are often the same matter.
    """
    if not wanted:
        return {}
    pattern = re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, sorted(wanted)))})(?![\w/-]|\.\w)")
    met = {id: {match[0] for match in pattern.finditer(told.casefold())} for id, told in texts.items()}
    return {id: 0.2 if all(_LETTERS.search(run) for run in runs) else 1.0 for id, runs in met.items() if runs}


def varied(
    order: Sequence[int], scores: Mapping[int, float], words: Mapping[int, Collection[str]], most: int
) -> list[int]:
    """Choose the best, and put what repeats one behind what says something else; the third of its kind far behind."""
    sets = {id: frozenset(words.get(id, ())) for id in order}
    likeness, twins = dict.fromkeys(order, 0.0), dict.fromkeys(order, 0)
    value = {id: scores[id] for id in order}
    chosen: list[int] = []
    while value and len(chosen) < most:
        best = max(value, key=value.__getitem__)
        chosen.append(best)
        del value[best]
        told = sets[best]
        for id in value:
            if not (shared := len(told & sets[id])):
                continue
            alike = shared / (len(told) + len(sets[id]) - shared)
            if alike >= TWIN or alike > likeness[id]:
                likeness[id] = max(likeness[id], alike)
                twins[id] += alike >= TWIN
                value[id] = scores[id] - SAME * (likeness[id] + max(0, twins[id] - 1))
    return chosen
