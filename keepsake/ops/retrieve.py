"""The one retrieval pipeline: candidates by word and by meaning, fused with who, when and what stands beside."""

import heapq
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keepsake.context import Ctx
from keepsake.core import models, names, rank, text
from keepsake.core.lazy import lazy
from keepsake.core.models import Budget
from keepsake.ops import banks as bank_ops
from keepsake.ops import views
from keepsake.store import banks, embeddings, entities, memories, search
from keepsake.store.engine import Nearest, Tx
from keepsake.store.memories import Filter, Memory

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from keepsake.core import when

    Vectors = dict[int, npt.NDArray[np.float32]]
else:
    when = lazy("keepsake.core.when")

#: Candidates by meaning, and results at most, for each effort.
EFFORT: dict[Budget, tuple[int, int]] = {"low": (30, 8), "mid": (60, 15), "high": (90, 20)}


@dataclass(frozen=True, slots=True)
class Weights:
    """What each signal adds; measured on talk and on commits, see docs/decisions/0005."""

    own: float
    around: float
    meaning: float
    beside: float = 0.2
    speaker: float = 0.45
    named: float = 0.05
    time: float = 0.2


SHARP = Weights(own=0.4, around=0.18, meaning=0.42)
#: The quick model knows less, so the words say more.
STATIC = Weights(own=0.47, around=0.2, meaning=0.33)
#: Below this rescaled similarity, meaning alone does not make a memory relevant.
MEANING_FLOOR = 0.05
#: The share of the question's weight that words alone must cover.
WORD_FLOOR = 0.1
#: Results weaker than this share of the best one are noise beside it.
TAIL = 0.25
#: Candidates whose neighbours, names and times are looked at.
LOOKED = 70
#: Fetched beyond what is returned, for those that turn out to be superseded.
SPARE = 6


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, of which memories, and how hard to look."""

    query: str
    #: The moment as of which it is answered.
    at: int
    budget: Budget = "high"
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    every_tag: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that answers, and why it is there."""

    memory: models.Memory
    score: float
    #: Each signal's part, 0 to 1.
    signals: dict[str, float]


@dataclass(frozen=True, slots=True)
class Words:
    """What the words found, and what the rest of the search must know."""

    bank: banks.Bank
    asked: search.Asked
    scores: dict[int, search.Scores]
    models: list[embeddings.Model]
    #: The entities that the question names.
    named: list[int]
    #: The question as it is embedded: without the names of persons, which drown the rest.
    told: str
    #: The only memories that count, where the question narrows them.
    among: list[int] | None

    @property
    def ceiling(self) -> float:
        """The best score that words could give."""
        return sum(self.asked.known.weight(word) for word in self.asked.words) * (rank.K1 + 1) / 2 or 1.0


async def search_bank(ctx: Ctx, named: str | None, question: Question) -> list[Hit]:
    """Find the memories that best answer, best first; nothing relevant gives nothing."""
    words = await ctx.read(lambda tx: _by_word(tx, ctx, named, question))
    if words is None or (words.among is not None and not words.among):
        return []
    return await _answered(ctx, question, words, {})


async def _answered(ctx: Ctx, question: Question, words: Words, vectors: "Vectors") -> list[Hit]:
    """Fuse what words and meaning find; again, when the background has moved memories to another model meanwhile."""
    missing = [model for model in words.models if model.id not in vectors]
    vectors = vectors | {model.id: await _embedded(ctx, model, words.told) for model in missing}

    async def body(tx: Tx) -> tuple[list[embeddings.Model], list[Hit]]:
        held = await embeddings.held(tx, words.bank.org, words.bank.id)
        if any(model.id not in vectors for model in held):
            return held, []
        return [], await _fused(tx, question, replace(words, models=held), vectors)

    moved, hits = await ctx.read(body)
    return await _answered(ctx, question, replace(words, models=moved), vectors) if moved else hits


async def _by_word(tx: Tx, ctx: Ctx, named: str | None, question: Question) -> Words | None:
    bank = await bank_ops.found(tx, ctx, named)
    if bank is None:
        return None
    stems = text.asked(question.query)
    asked = search.Asked(bank.org, bank.id, stems, await search.corpus(tx, bank.org, bank.id, stems))
    given = Filter(bank.org, bank.id, question.at, question.types, question.tags, question.every_tag)
    among = None if given.is_open else await memories.ids(tx, given)
    scores = await search.candidates(tx, asked)
    if among is not None:
        kept = set(among)
        scores = {id: score for id, score in scores.items() if id in kept}
    known = await entities.find(tx, bank.org, bank.id, _possible(question.query))
    persons = [found.folded for found in known if found.kind == "person"]
    told = names.cut(question.query, persons)
    held = await embeddings.held(tx, bank.org, bank.id)
    return Words(bank, asked, scores, held, [found.id for found in known], told, among)


def _possible(query: str) -> list[str]:
    """Every run of up to three words, as a name would be compared."""
    words = query.split()
    runs = [" ".join(words[n : n + size]) for size in (1, 2, 3) for n in range(len(words) - size + 1)]
    return sorted({names.folded(run.strip("?,.!;:\"'()")) for run in runs[:120]})


async def _embedded(ctx: Ctx, model: embeddings.Model, query: str) -> "npt.NDArray[np.float32]":
    rows = await (ctx.app.embedding.static([query]) if model.state == "static" else ctx.app.embedding.sharp([query]))
    row: npt.NDArray[np.float32] = rows[0]
    return row


async def _by_meaning(tx: Tx, question: Question, words: Words, vectors: "Vectors") -> dict[int, float]:
    """Rescaled similarity of the nearest memories, and of the best that the words found."""
    depth, _ = EFFORT[question.budget]
    best = heapq.nlargest(depth // 2, words.scores, key=lambda id: words.scores[id].around)
    found: dict[int, float] = {}
    for model in words.models:
        nearest = Nearest(words.bank.org, words.bank.id, model.id, vectors[model.id], depth, words.among)
        near = await tx.search_vector(nearest)
        seen = {id for id, _ in near}
        missing = [id for id in best if id not in seen]
        near += await tx.search_vector(replace(nearest, among=missing, limit=len(missing))) if missing else []
        for id, cosine in near:
            found[id] = min(1.0, max(0.0, (cosine - model.zero) / (model.one - model.zero)))
    return found


async def _fused(tx: Tx, question: Question, words: Words, vectors: "Vectors") -> list[Hit]:
    meaning = await _by_meaning(tx, question, words, vectors)
    unread = [id for id in meaning if id not in words.scores]
    others = heapq.nlargest(LOOKED // 2, unread, key=lambda id: meaning[id])
    lexical = words.scores | await search.scores(tx, words.asked, others)
    signals = await _signals(tx, question, words, lexical, meaning)
    low = WORD_FLOOR * words.ceiling
    relevant = [
        id for id in signals if meaning.get(id, 0.0) >= MEANING_FLOOR or (id in lexical and lexical[id].around >= low)
    ]
    scored = {id: sum(signals[id].values()) for id in relevant}
    _, most = EFFORT[question.budget]
    order = sorted(scored, key=lambda id: (-scored[id], -id))[: most + SPARE]
    rows = await memories.fetched(tx, words.bank.org, words.bank.id, order)
    kept = [id for id in order if id in rows and held(rows[id], question.at)][:most]
    kept = [id for id in kept if scored[id] >= TAIL * scored[kept[0]]]
    told = await views.described(tx, words.bank, [rows[id] for id in kept])
    return [
        Hit(
            memory, round(min(1.0, scored[id]), 4), {name: round(part, 4) for name, part in signals[id].items() if part}
        )
        for id, memory in zip(kept, told, strict=True)
    ]


async def _signals(
    tx: Tx, question: Question, words: Words, lexical: dict[int, search.Scores], meaning: dict[int, float]
) -> dict[int, dict[str, float]]:
    """What each signal adds to each candidate."""
    own = rank.spread({id: score.own for id, score in lexical.items()})
    around = rank.spread({id: score.around for id, score in lexical.items()})
    near = rank.spread(meaning)
    ids = {*lexical, *meaning}
    weights = SHARP if any(model.state != "static" for model in words.models) else STATIC
    told = {id: weights.own * own.get(id, 0.0) + weights.around * around.get(id, 0.0) for id in ids}
    base = {id: told[id] + weights.meaning * near.get(id, 0.0) for id in ids}
    org, bank = words.bank.org, words.bank.id
    ids = set(heapq.nlargest(LOOKED, base, key=lambda id: base[id]))
    outlines = await memories.outlines(tx, org, bank, sorted(ids))
    lent = _lent(base, outlines)
    naming = await entities.naming(tx, org, bank, words.named, sorted(ids)) if words.named else {}
    windows = when.windows(question.query, question.at)
    return {
        id: {
            "words": told[id],
            "meaning": weights.meaning * near.get(id, 0.0),
            "beside": weights.beside * lent.get(id, 0.0),
            "named": _linked(weights, naming.get(id, ())),
            "time": weights.time if any(window.start <= outlines[id].at < window.end for window in windows) else 0.0,
        }
        for id in ids
        if id in outlines
    }


def _linked(weights: Weights, roles: Collection[str]) -> float:
    """What a link to someone or something that the question names adds."""
    if "speaker" in roles:
        return weights.speaker
    return weights.named if roles else 0.0


def _lent(base: dict[int, float], outlines: dict[int, memories.Outline]) -> dict[int, float]:
    """The better neighbour's score, for memories that stand in one thread."""
    lent: dict[int, float] = {}
    for id, outline in outlines.items():
        if outline.before in base:
            lent[id] = max(lent.get(id, 0.0), base[outline.before])
            lent[outline.before] = max(lent.get(outline.before, 0.0), base[id])
    return lent


def held(memory: Memory, at: int) -> bool:
    """Whether the bank held this to be so at that moment."""
    superseded = memory.superseded_at is not None and memory.superseded_at <= at
    return memory.learned_at <= at and not superseded and memory.state == "live"
