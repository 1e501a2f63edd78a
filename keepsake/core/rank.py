"""Scoring: BM25 over fetched candidates, and the fusion of signals."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

K1, B = 1.2, 0.75
#: Documents that every bank is taken to have besides its own, so that a young bank's words weigh something.
YOUNG = 100


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


def bm25(corpus: Corpus, asked: Sequence[str]) -> Callable[[Sequence[int], int], float]:
    """Make the scorer of a question: from how often each asked word stands in a document, and its length."""
    weights = [corpus.weight(word) * (K1 + 1) for word in asked]
    base, slope = K1 * (1 - B), K1 * B / corpus.mean_length

    def score(counts: Sequence[int], length: int) -> float:
        norm = base + slope * length
        return sum(weight * count / (count + norm) for weight, count in zip(weights, counts, strict=True) if count)

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
