"""The memory score as pages explain it: each part, what it is of, and what would raise it."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.ops.score import COVERAGE, FOLDER, FRESHNESS, INGESTION, SYNTHESIS, Breakdown
from keepsake.surfaces.pages import words


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the score."""

    name: str
    now: int
    most: int
    #: What would raise it; what is so where nothing would.
    told: str
    #: Points that this would bring.
    gain: int

    @property
    def share(self) -> float:
        """How much of it there is."""
        return self.now / self.most


def parts(score: Breakdown, held: int) -> list[Part]:
    """The parts of a score; `held` memories came from the repository."""
    most, fresh = COVERAGE[0][1], FRESHNESS[0][1]
    return [
        _part("Reading", score.ingestion, INGESTION, "the repository were read to its end", "Read to its end"),
        _part("Profile", score.synthesis, SYNTHESIS, "its profile were written, which a sync does", "Written"),
        _coverage(score.coverage, most, held),
        _part("Freshness", score.freshness, fresh, "it were synced now", "Synced in the last 7 days"),
        _part("Notes", score.folder, FOLDER, "it had notes for agents in .keepsake or .keystone", "There are notes"),
    ]


def _part(name: str, now: int, most: int, wish: str, whole: str) -> Part:
    gain = most - now
    return Part(name, now, most, f"+{gain} if {wish}" if gain else whole, gain)


def _coverage(now: int, most: int, held: int) -> Part:
    steps = [(least, points) for least, points in reversed(COVERAGE) if points > now]
    if not steps:
        return Part("Coverage", now, most, f"{words.count(held, 'memory', 'memories')} from the repository", 0)
    least, points = steps[0]
    wish = f"+{points - now} once {words.count(least, 'memory', 'memories')} came from it, now {held or 'none'}"
    return Part("Coverage", now, most, wish, points - now)


def advice(found: Sequence[Part]) -> str:
    """What would raise the score most."""
    best = max(found, key=lambda part: part.gain)
    return best.told if best.gain else "Nothing to raise"
