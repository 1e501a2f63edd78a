"""The one retrieval pipeline: candidates by word, meaning, entity and time, fused with what stands beside."""

import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keepsake.context import Ctx
from keepsake.core import models, rank, text
from keepsake.core.lazy import lazy
from keepsake.core.models import Budget
from keepsake.ops import banks as bank_ops
from keepsake.ops import embedding, rerank, views
from keepsake.store import banks, embeddings, entities, memories, repos, search, times
from keepsake.store.engine import Nearest, Tx, both, together
from keepsake.store.filters import Filter
from keepsake.store.memories import Memory

if TYPE_CHECKING:
    from keepsake.core import names, when
    from keepsake.ops.embedding import Known, Vectors
else:
    names = lazy("keepsake.core.names")
    when = lazy("keepsake.core.when")

#: What each signal adds to each candidate.
Signals = dict[int, dict[str, float]]
#: The signals that make a memory relevant by themselves.
LINKS = ("named", "linked", "time")
#: Candidates by meaning, and results at most, for each effort.
EFFORT: dict[Budget, tuple[int, int]] = {"low": (30, 8), "mid": (45, 15), "high": (60, 20)}


@dataclass(frozen=True, slots=True)
class Weights:
    """What each signal adds; measured on talk and on commits, see docs/decisions/0005 and 0006."""

    own: float
    around: float
    meaning: float
    beside: float = 0.2
    speaker: float = 0.45
    named: float = 0.05
    time: float = 0.2
    linked: float = 0.1
    echo: float = 0.15
    exact: float = 0.3


SHARP = Weights(own=0.4, around=0.18, meaning=0.42)
#: The quick model knows less, so the words say more.
STATIC = Weights(own=0.47, around=0.2, meaning=0.33)
#: Below this rescaled similarity, meaning alone does not make a memory relevant.
MEANING_FLOOR = 0.05
#: How far below unrelated a similarity still tells which of two memories is nearer.
MEANING_LOW = -0.15
#: The share of the question's weight that words alone must cover.
WORD_FLOOR = 0.1
#: Results weaker than this share of the best one are noise beside it.
TAIL = 0.25
#: The best by words, from which the walk through entities begins; each must cover this share of the question.
SEEDS, SEED_FLOOR = 5, 0.2
#: Candidates that entities bring, that a time may bring, and those of the latter that are nearest in meaning.
LINKED, TIMED, TIMED_KEPT = 24, 100, 30
#: Results that an entity alone brings are kept behind the others, so many of them.
LINKED_TAIL = 3
#: Candidates whose neighbours, names and times are looked at.
LOOKED = 60
#: Fetched beyond what is returned, for those that turn out to be superseded.
SPARE = 6
#: A memory that holds an identifier of the question as it is written is at least so similar, whatever a model thinks.
EXACT = 0.5


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
    #: Results at most; 0 leaves it to the budget.
    most: int = 0
    kinds: tuple[str, ...] = ()
    said: tuple[int, int] | None = None
    sources: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    #: What is embedded, by model and text: asked of several banks, it is embedded once.
    vectors: "Known" = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that answers, and why it is there."""

    memory: models.Memory
    score: float
    #: Each signal's part, 0 to 1.
    signals: dict[str, float]
    #: How near it is, 0 (unrelated) to 1 (the same): comparable between banks, which the score is not.
    similarity: float = 0.0
    #: Its words as they are indexed, by which repetitions are told.
    words: frozenset[str] = field(default=frozenset(), repr=False)


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
    #: What entities lead to, and what lies in the times that the question speaks of.
    linked: list[int]
    timed: list[int]
    windows: "list[when.Window]"

    @property
    def weights(self) -> Weights:
        """What each signal adds here."""
        return SHARP if any(model.state != "static" for model in self.models) else STATIC

    @property
    def ceiling(self) -> float:
        """The best score that words could give."""
        return sum(self.asked.known.weight(word) for word in self.asked.words) * (rank.K1 + 1) / 2 or 1.0


async def search_bank(ctx: Ctx, named: str | None, question: Question) -> list[Hit]:
    """Find the memories that best answer, best first; nothing relevant gives nothing."""

    async def body(tx: Tx) -> tuple[int, list[Hit]]:
        bank = await bank_ops.found(tx, ctx, named)
        return (bank.id, await _found(tx, bank, _wider(ctx, question))) if bank else (0, [])

    bank, hits = await embedding.reading(ctx, question.vectors, body)
    return await _reranked(ctx, question, bank, hits)


async def search_banks(ctx: Ctx, named: Sequence[str], question: Question) -> tuple[list[Hit], dict[str, str]]:
    """The same in several banks on one snapshot, best first, and the repositories that they learn from, by bank."""

    async def body(tx: Tx) -> tuple[list[tuple[int, list[Hit]]], dict[str, str]]:
        asked = list((await bank_ops.several(tx, ctx, named)).values())
        names = await repos.full_names(tx, ctx.org, [bank.id for bank in asked])
        wider, told = _wider(ctx, question), {bank.name: names[bank.id] for bank in asked if bank.id in names}
        return [(bank.id, await _found(tx, bank, wider)) for bank in asked], told

    each, told = await embedding.reading(ctx, question.vectors, body)
    hits = [hit for bank, found in each for hit in await _reranked(ctx, question, bank, found)]
    if len(each) > 1:
        # A score tells how good a memory is for its bank; the best of a bank that knows nothing must not lead.
        hits.sort(key=lambda hit: -(hit.score + hit.similarity))
    return hits, told


def _most(question: Question) -> int:
    return question.most or EFFORT[question.budget][1]


def _wider(ctx: Ctx, question: Question) -> Question:
    """The same question with as many results as a reranker wants to choose from."""
    return replace(question, most=rerank.candidates(ctx.app, _most(question)))


async def _found(tx: Tx, bank: banks.Bank, question: Question) -> list[Hit]:
    """What words and meaning find in a bank."""
    words = await _by_word(tx, bank, question)
    if words.among is not None and not words.among:
        return []
    vectors = await embedding.within(tx, question.vectors, bank.id, words.models, words.told)
    asked = [model for model in words.models if vectors[model.id] is not None]
    return await _fused(tx, question, replace(words, models=asked), vectors)


async def _reranked(ctx: Ctx, question: Question, bank: int, hits: list[Hit]) -> list[Hit]:
    """The best as a reranker orders them; as they are where there is none, or it does not answer."""
    texts = [f"{hit.memory.title}\n{hit.memory.text}".strip() for hit in hits]
    scores = await rerank.scores(ctx, bank, question.query, texts)
    if scores is None:
        return hits[: _most(question)]
    judged = {
        n: replace(hit, score=round(score, 4), signals=hit.signals | {"reranked": round(score, 4)})
        for n, (hit, score) in enumerate(zip(hits, scores, strict=True))
    }
    order = sorted(judged, key=lambda n: -judged[n].score)
    spoken = {n: hit.words for n, hit in judged.items()}
    chosen = rank.varied(order, {n: hit.score for n, hit in judged.items()}, spoken, len(order))
    return [judged[n] for n in chosen[: _most(question)]]


async def _by_word(tx: Tx, bank: banks.Bank, question: Question) -> Words:
    stems = text.asked(question.query)
    counted, known, held = await together(
        tx,
        search.counting(bank.org, bank.id, stems),
        entities.meant(bank.org, bank.id, _possible(question.query)),
        embeddings.held(bank.org, bank.id),
    )
    asked = search.Asked(bank.org, bank.id, stems, counted)
    given = Filter(bank.org, bank.id, question.at, question.types, question.tags, question.every_tag)
    given = replace(given, kinds=question.kinds, said=question.said, sources=question.sources, trust=question.trust)
    among = None if given.is_open else await memories.ids(tx, given)
    scores = await search.candidates(tx, asked)
    if among is not None:
        kept = set(among)
        scores = {id: score for id, score in scores.items() if id in kept}
    persons = [found.folded for found in known if found.kind == "person"]
    told = names.cut(question.query, persons)
    windows = when.windows(question.query, question.at)
    words = Words(bank, asked, scores, held, [found.id for found in known], told, among, [], [], windows)
    linked = await _by_entity(tx, words)
    timed = [id for window in windows[:2] for id in await times.within(tx, given, window.start, window.end, TIMED)]
    if among is not None:
        linked, timed = [id for id in linked if id in kept], [id for id in timed if id in kept]
    return replace(words, linked=linked, timed=timed)


async def _by_entity(tx: Tx, words: Words) -> list[int]:
    """The memories that name what the question names, and those one step from the best that the words found."""
    low = SEED_FLOOR * words.ceiling
    best = heapq.nlargest(SEEDS, words.scores, key=lambda id: (words.scores[id].around, id))
    seeds = [id for id in best if words.scores[id].around >= low]
    if not seeds and not words.named:
        return []
    return await entities.around(tx, entities.Start(words.bank.org, words.bank.id, words.named, seeds), LINKED)


def _possible(query: str) -> list[str]:
    """Every run of up to three words, as a name would be compared."""
    words = query.split()
    runs = [" ".join(words[n : n + size]) for size in (1, 2, 3) for n in range(len(words) - size + 1)]
    return sorted({names.folded(run.strip("?,.!;:\"'()")) for run in runs[:120]})


async def _by_meaning(tx: Tx, question: Question, words: Words, vectors: "Vectors") -> dict[int, float]:
    """Rescaled similarity of the nearest memories and of all others that may count."""
    depth, _ = EFFORT[question.budget]
    best = heapq.nlargest(depth // 2, words.scores, key=lambda id: words.scores[id].around)
    wanted = dict.fromkeys([*best, *words.linked, *words.timed])
    org, bank, among = words.bank.org, words.bank.id, words.among
    nearest = [
        Nearest(org, bank, model.id, vectors[model.id], depth, among, also=list(wanted)) for model in words.models
    ]
    return await _compared(tx, words, nearest)


async def _compared(tx: Tx, words: Words, nearest: list[Nearest]) -> dict[int, float]:
    """Rescaled similarity of what is near, for each model that memories have their vectors of."""
    found: dict[int, float] = {}
    for model, near in zip(words.models, await tx.search_vectors(*nearest) if nearest else [], strict=True):
        for id, cosine in near:
            found[id] = min(1.0, max(MEANING_LOW, (cosine - model.zero) / (model.one - model.zero)))
    return found


@dataclass(frozen=True, slots=True)
class Candidates:
    """What words and meaning say of each memory that may answer."""

    lexical: dict[int, search.Scores]
    meaning: dict[int, float]

    def spoken(self, ids: Iterable[int]) -> dict[int, frozenset[str]]:
        """The words of these memories, as far as they were read."""
        return {id: frozenset(self.lexical[id].words.split()) for id in ids if id in self.lexical}


async def _fused(tx: Tx, question: Question, words: Words, vectors: "Vectors") -> list[Hit]:
    found = await _candidates(tx, question, words, vectors)
    signals = await _signals(tx, words, found)
    spoken = found.spoken(signals)
    scored = {id: sum(signals[id].values()) for id in _relevant(words, found, signals)}
    for id, part in rank.echoes(scored, spoken, words.asked.indexed).items():
        signals[id]["echo"] = words.weights.echo * part
        scored[id] += signals[id]["echo"]
    order = sorted(scored, key=lambda id: (-scored[id], -id))[: question.most + SPARE]
    rows = await memories.fetched(tx, words.bank.org, words.bank.id, order)
    order = [id for id in order if id in rows and held(rows[id], question.at)]
    for id, part in rank.exact(rank.identifiers(question.query), {id: rows[id].text for id in order}).items():
        signals[id]["exact"] = words.weights.exact * part
        scored[id] += signals[id]["exact"]
    kept = _without_tail(rank.varied(order, scored, spoken, question.most), scored, signals)
    near = await _similarity(tx, words, vectors, found, kept)
    told = await views.described(tx, words.bank, [rows[id] for id in kept])
    parts = [{name: round(part, 4) for name, part in signals[id].items() if part} for id in kept]
    return [
        Hit(
            memory,
            round(min(1.0, scored[id]), 4),
            part,
            round(max(near[id], EXACT if "exact" in part else 0.0), 4),
            spoken.get(id, frozenset()),
        )
        for id, memory, part in zip(kept, told, parts, strict=True)
    ]


async def _similarity(tx: Tx, words: Words, vectors: "Vectors", found: Candidates, kept: list[int]) -> dict[int, float]:
    """How near each result is: in meaning, raised by the share of the question that its words hold (decision 0009)."""
    near, org, bank, ceiling = found.meaning, words.bank.org, words.bank.id, words.ceiling
    if unknown := [id for id in kept if id not in near]:
        these = [Nearest(org, bank, model.id, vectors[model.id], len(unknown), unknown) for model in words.models]
        near = near | await _compared(tx, words, these)
    held = {id: min(1.0, found.lexical[id].own / ceiling) if id in found.lexical else 0.0 for id in kept}
    return {id: 1 - (1 - max(0.0, near[id])) * (1 - held[id] / 2) if id in near else held[id] for id in kept}


async def _candidates(tx: Tx, question: Question, words: Words, vectors: "Vectors") -> Candidates:
    """Read the words of the nearest memories, and of those that entities and times bring."""
    meaning = await _by_meaning(tx, question, words, vectors)
    timed = heapq.nlargest(TIMED_KEPT, words.timed, key=lambda id: meaning.get(id, MEANING_LOW))
    unread = [id for id in meaning if id not in words.scores]
    others = {*heapq.nlargest(LOOKED // 2, unread, key=lambda id: meaning[id]), *timed, *words.linked}
    return Candidates(
        words.scores | await search.scores(tx, words.asked, sorted(others.difference(words.scores))), meaning
    )


def _relevant(words: Words, found: Candidates, signals: Signals) -> list[int]:
    """Who counts: near enough in meaning or words, or linked to what the question names or to the time it speaks of."""
    low = WORD_FLOOR * words.ceiling
    return [
        id
        for id, parts in signals.items()
        if found.meaning.get(id, 0.0) >= MEANING_FLOOR
        or (id in found.lexical and found.lexical[id].around >= low)
        or any(parts[name] for name in LINKS)
    ]


def _without_tail(order: list[int], scored: dict[int, float], signals: Signals) -> list[int]:
    """Leave out what is noise beside the best one; of what only an entity brings, a little stays."""
    low = TAIL * max((scored[id] for id in order), default=0.0)
    weak = [id for id in order if scored[id] < low]
    spared = [id for id in weak if signals[id]["linked"]][:LINKED_TAIL]
    return [id for id in order if id not in weak or id in spared]


async def _signals(tx: Tx, words: Words, found: Candidates) -> Signals:
    """What each signal adds to each candidate."""
    own = rank.spread({id: score.own for id, score in found.lexical.items()})
    around = rank.spread({id: score.around for id, score in found.lexical.items()})
    near = rank.spread(found.meaning, MEANING_LOW)
    weights, linked, timed = words.weights, set(words.linked), set(words.timed)
    told = {id: weights.own * own.get(id, 0.0) + weights.around * around.get(id, 0.0) for id in found.lexical}
    base = {id: told.get(id, 0.0) + weights.meaning * near.get(id, 0.0) for id in {*told, *near}}
    org, bank = words.bank.org, words.bank.id
    bonus = {id: weights.linked * (id in linked) + weights.time * (id in timed) for id in base}
    ids = heapq.nlargest(LOOKED, base, key=lambda id: base[id] + bonus[id])
    outlines, naming = await both(tx, memories.outlines(org, bank, ids), entities.naming(org, bank, words.named, ids))
    lent = _lent(base, outlines)
    return {
        id: {
            "words": told.get(id, 0.0),
            "meaning": weights.meaning * near.get(id, 0.0),
            "beside": weights.beside * lent.get(id, 0.0),
            "named": _linked(weights, naming.get(id, ())),
            "linked": weights.linked if id in linked and id not in naming else 0.0,
            "time": weights.time if any(outlines[id].is_within(one.start, one.end) for one in words.windows) else 0.0,
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
