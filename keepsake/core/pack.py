"""A context pack: what a new session should know, scored and fitted to a budget; no pydantic here, hooks use it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import NamedTuple

from keepsake.core.clock import DAY
from keepsake.core.words import cost

#: What must not be forgotten: it stands first, whatever its score.
KNOWLEDGE = ("decision", "constraint", "heuristic", "rejected")
#: Recency halves in this time.
HALF_LIFE = 7 * DAY
OWN_PROJECT, OTHER_PROJECT = 1.0, 0.5
#: The parts of a summary, in the order that they are told.
SUMMARY = ("request", "investigated", "learned", "completed", "next_steps", "notes")
#: Summaries at most, and the share of the budget that they may take.
SUMMARIES, SUMMARIES_SHARE = 5, 0.25


class Signals(NamedTuple):
    """Why an item is in the pack, each 0 to 1; a tuple, for a pack weighs hundreds."""

    recency: float
    project: float = OWN_PROJECT
    semantic: float = 0.0
    words: float = 0.0

    @property
    def without_query(self) -> float:
        """The composite score where nothing was asked."""
        return 0.7 * self.recency + 0.3 * self.project

    @property
    def with_query(self) -> float:
        """The composite score of an answer."""
        return 0.45 * self.semantic + 0.35 * self.words + 0.1 * self.recency + 0.1 * self.project


class Item(NamedTuple):
    """A memory that may go into the pack."""

    id: int
    bank: int
    kind: str
    subtype: str
    title: str
    text: str
    at: int
    signals: Signals = Signals(0.0)
    score: float = 0.0
    trust: str = ""
    is_pinned: bool = False

    @property
    def type(self) -> str:
        """What it is called: its subtype, where it has one."""
        return self.subtype or self.kind

    @property
    def is_knowledge(self) -> bool:
        """Whether it stands first."""
        return self.kind in KNOWLEDGE or self.subtype in KNOWLEDGE

    @property
    def content(self) -> str:
        """What is told of it."""
        return self.text or self.title


@dataclass(frozen=True, slots=True)
class Summary:
    """A session in a few sentences."""

    id: int
    bank: int
    at: int
    text: str
    #: By the names of `SUMMARY`, those that say something.
    parts: dict[str, str] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """What it costs."""
        return cost("\n".join(self.parts.values()) or self.text)


@dataclass(frozen=True, slots=True)
class Pack:
    """What fits."""

    items: Sequence[Item]
    summaries: Sequence[Summary]
    budget: int
    used: int


def recency(at: int, now: int) -> float:
    """1 now, a half after a week; what lies ahead is as new as can be."""
    return float(0.5 ** (max(0, now - at) / HALF_LIFE))


def recent(item: Item, bank: int, now: int) -> Item:
    """An item of the pack of a bank for which nothing was asked."""
    signals = Signals(recency(item.at, now), _project(item, bank))
    return _scored(item, signals, signals.without_query)


def answering(item: Item, bank: int, now: int, semantic: float, words: float) -> Item:
    """An item of the pack of a bank that something was asked about."""
    signals = Signals(recency(item.at, now), _project(item, bank), semantic, words)
    return _scored(item, signals, signals.with_query)


def _project(item: Item, bank: int) -> float:
    return OWN_PROJECT if item.bank == bank else OTHER_PROJECT


def _scored(item: Item, signals: Signals, score: float) -> Item:
    # Not `_replace`, which takes as long as all the rest.
    id, bank, kind, subtype, title, text, at, _, _, trust, is_pinned = item
    return Item(id, bank, kind, subtype, title, text, at, signals, min(1.0, max(0.0, score)), trust, is_pinned)


def packed(items: Iterable[Item], summaries: Sequence[Summary], budget: int) -> Pack:
    """What is pinned, knowledge, the newest summaries, the rest, each by its score; what does not fit is left out."""
    order = sorted(items, key=lambda item: (not item.is_pinned, -item.score, -item.at, -item.id))
    first = [item.is_pinned or item.is_knowledge for item in order]
    knowledge, left = _fitting(compress(order, first), budget)
    told, room = [], min(left, int(budget * SUMMARIES_SHARE))
    for summary in sorted(summaries, key=lambda one: (-one.at, -one.id))[:SUMMARIES]:
        if summary.tokens <= room:
            told.append(summary)
            room, left = room - summary.tokens, left - summary.tokens
    others, left = _fitting((item for item, known in zip(order, first, strict=True) if not known), left)
    return Pack([*knowledge, *others], told, budget, budget - left)


def _fitting(items: Iterable[Item], room: int) -> tuple[list[Item], int]:
    kept = []
    for item in items:
        tokens = cost(item.content)
        if tokens <= room:
            kept.append(item)
            room -= tokens
    return kept, room
