"""The one retrieval pipeline: candidates by word and by meaning, fused, floored, best first."""

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keepsake.context import Ctx
from keepsake.core import models, rank, text
from keepsake.core.models import Budget
from keepsake.ops import banks as bank_ops
from keepsake.ops import views
from keepsake.store import banks, embeddings, memories, search
from keepsake.store.engine import Nearest, Tx
from keepsake.store.memories import Filter, Memory

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = dict[int, npt.NDArray[np.float32]]

#: Candidates by meaning, and results at most, for each effort.
EFFORT: dict[Budget, tuple[int, int]] = {"low": (30, 10), "mid": (60, 20), "high": (90, 30)}
BY_WORD, BY_MEANING = 0.5, 0.5
#: Below this rescaled similarity, meaning alone does not make a memory relevant.
MEANING_FLOOR = 0.1
#: The share of the question's weight that words alone must cover.
WORD_FLOOR = 0.3
#: Results weaker than this share of the best one are noise beside it.
TAIL = 0.25
#: Fetched beyond what is returned, for those that turn out to be superseded.
SPARE = 10


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
    scores: dict[int, float]
    #: The best score that any memory could have.
    ceiling: float
    models: list[embeddings.Model]
    #: The only memories that count, where the question narrows them.
    among: list[int] | None


async def search_bank(ctx: Ctx, named: str | None, question: Question) -> list[Hit]:
    """Find the memories that best answer, best first; nothing relevant gives nothing."""
    words = await ctx.read(lambda tx: _by_word(tx, ctx, named, question))
    if words is None or (words.among is not None and not words.among):
        return []
    return await _answered(ctx, question, words, {})


async def _answered(ctx: Ctx, question: Question, words: Words, vectors: "Vectors") -> list[Hit]:
    """Fuse what words and meaning find; again, when the background has moved memories to another model meanwhile."""
    missing = [model for model in words.models if model.id not in vectors]
    vectors = vectors | {model.id: await _embedded(ctx, model, question.query) for model in missing}

    async def body(tx: Tx) -> tuple[list[embeddings.Model], list[Hit]]:
        held = await embeddings.held(tx, words.bank.org, words.bank.id)
        if any(model.id not in vectors for model in held):
            return held, []
        return [], await _fused(tx, question, replace(words, models=held), vectors)

    models, hits = await ctx.read(body)
    return await _answered(ctx, question, replace(words, models=models), vectors) if models else hits


async def _by_word(tx: Tx, ctx: Ctx, named: str | None, question: Question) -> Words | None:
    bank = await bank_ops.found(tx, ctx, named)
    if bank is None:
        return None
    asked = text.asked(question.query)
    given = Filter(bank.org, bank.id, question.at, question.types, question.tags, question.every_tag)
    known = await search.corpus(tx, bank.org, bank.id, asked)
    ceiling = sum(known.weight(word) for word in asked) * (rank.K1 + 1) / 2 or 1.0
    among = None if given.is_open else await memories.ids(tx, given)
    scores = await search.candidates(tx, bank.org, bank.id, known, asked)
    if among is not None:
        kept = set(among)
        scores = {id: score for id, score in scores.items() if id in kept}
    return Words(bank, scores, ceiling, await embeddings.held(tx, bank.org, bank.id), among)


async def _embedded(ctx: Ctx, model: embeddings.Model, query: str) -> "npt.NDArray[np.float32]":
    rows = await (ctx.app.embedding.static([query]) if model.state == "static" else ctx.app.embedding.sharp([query]))
    row: npt.NDArray[np.float32] = rows[0]
    return row


async def _by_meaning(tx: Tx, question: Question, words: Words, vectors: "Vectors") -> dict[int, float]:
    """Rescaled similarity of the nearest memories, and of the best that the words found."""
    depth, _ = EFFORT[question.budget]
    best = heapq.nlargest(depth // 2, words.scores, key=lambda id: words.scores[id])
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
    lexical, semantic = rank.spread(words.scores), rank.spread(meaning)
    relevant = [
        id
        for id in words.scores.keys() | meaning.keys()
        if meaning.get(id, 0.0) >= MEANING_FLOOR or words.scores.get(id, 0.0) >= WORD_FLOOR * words.ceiling
    ]
    scored = {id: BY_WORD * lexical.get(id, 0.0) + BY_MEANING * semantic.get(id, 0.0) for id in relevant}
    _, most = EFFORT[question.budget]
    order = sorted(scored, key=lambda id: (-scored[id], -id))[: most + SPARE]
    rows = await memories.fetched(tx, words.bank.org, words.bank.id, order)
    kept = [id for id in order if id in rows and held(rows[id], question.at)][:most]
    kept = [id for id in kept if scored[id] >= TAIL * scored[kept[0]]]
    told = await views.described(tx, words.bank, [rows[id] for id in kept])
    return [
        Hit(
            memory,
            round(scored[id], 4),
            {"words": round(lexical.get(id, 0.0), 4), "meaning": round(meaning.get(id, 0.0), 4)},
        )
        for id, memory in zip(kept, told, strict=True)
    ]


def held(memory: Memory, at: int) -> bool:
    """Whether the bank held this to be so at that moment."""
    superseded = memory.superseded_at is not None and memory.superseded_at <= at
    return memory.learned_at <= at and not superseded and memory.state == "live"
