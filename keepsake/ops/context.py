"""The context pack: what a new session should know of a bank, within a token budget."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import Field

from keepsake.auth import policy
from keepsake.context import Ctx
from keepsake.core import clock, pack, rank, text
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.pack import Item, Pack
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.ops import embedding, handed_out, records
from keepsake.ops.records import Record
from keepsake.store import banks, embeddings, memories, packs, search
from keepsake.store.engine import Nearest, Tx

if TYPE_CHECKING:
    from keepsake.ops.embedding import Known, Vectors

#: Candidates that the question itself brings, by meaning and by words.
NEAREST, BEST = 40, 40
#: The share of the budget for which new memories are looked at beside them.
ASKED_SHARE = 4


class GetContext(InBank):
    """For which bank and task, and how much of it."""

    token_budget: int = Field(2_000, ge=1, le=1_000_000, description="Maximum tokens of items and summaries together.")
    query: Clean = Field("", max_length=20_000, description="What the task is about; the newest when left out.")


class ContextItem(Result):
    """A memory of the pack."""

    id: str = Field(description="Id of the memory.")
    bank: str = Field(description="Name of its bank.")
    title: str = Field(description="A short title, where there is one.")
    text: str = Field(description="What is remembered.")
    type: str = Field(description="Its subtype, else its kind.")
    at: str = Field(description="When it happened, else when it was learned, ISO 8601.")
    score: float = Field(description="Composite score, 0 to 1.")
    semantic: float = Field(description="Similarity in meaning to the query, 0 to 1.")
    words: float = Field(description="How much of the query's words it has, 0 to 1.")
    recency: float = Field(description="1 now, halved every 7 days.")
    project: float = Field(description="1 for this bank, 0.5 for what another bank shares.")
    trust: str = Field(description="How far its source is trusted: outside, agent or owner.")
    pinned: bool = Field(False, description="Whether someone pinned it.")


class ContextPack(Result):
    """What a new session should know."""

    bank: str = Field(description="Name of the bank.")
    items: list[ContextItem] = Field(description="Decisions, constraints and the like first, then by score.")
    summaries: list[Record] = Field(description="Summaries of the last sessions, newest first.")
    token_budget: int = Field(description="The budget that was given.")
    tokens_used: int = Field(description="What items and summaries cost together, never above the budget.")


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memories may enter."""

    bank: banks.Bank
    #: Every bank within reach, by id.
    banks: Mapping[int, banks.Bank]
    models: Sequence[embeddings.Model] = ()

    @property
    def others(self) -> list[int]:
        """The banks whose shared memories may enter."""
        return [id for id in self.banks if id != self.bank.id]


@operation("memory.context", effect=Effect.READ, scope="memory:read")
async def context(ctx: Ctx, given: GetContext) -> ContextPack:
    """Give what a new session should know of a bank within a token budget: decisions first, then the most relevant."""
    name, _ = bank_ops.wanted(ctx, given.bank)
    known: Known = {}

    async def body(tx: Tx) -> ContextPack:
        scope = await _scope(tx, ctx, name)
        if scope is None:
            return ContextPack(bank=name, items=[], summaries=[], token_budget=given.token_budget, tokens_used=0)
        return await _made(tx, ctx, scope, given, known)

    made = await embedding.reading(ctx, known, body)
    handed_out.told(ctx, [*made.items, *made.summaries])
    return made


async def _scope(tx: Tx, ctx: Ctx, name: str) -> Scope | None:
    if bank_ops.is_hidden(ctx, name):
        return None
    policy.check_bank(ctx.principal, name)
    bank = await banks.named(tx, ctx.org, name)
    if bank is None:
        return None
    seen = {one.id: one for one in await banks.listed(tx, ctx.org) if ctx.principal.sees(one.name)}
    return Scope(bank, seen | {bank.id: bank}, await embeddings.held(ctx.org, bank.id).of(tx))


async def _made(tx: Tx, ctx: Ctx, scope: Scope, given: GetContext, known: "Known") -> ContextPack:
    is_asked = bool(given.query.strip())
    # What a question brings takes the place of most of what is merely new.
    newest = packs.newest(given.token_budget // ASKED_SHARE if is_asked else given.token_budget)
    found = await packs.candidates(tx, ctx.org, scope.bank.id, scope.others, newest)
    if is_asked:
        vectors = await embedding.within(tx, known, scope.bank.id, scope.models, given.query)
        items = await _relevant(tx, ctx, Asking(scope, given.query, vectors), found.items)
    else:
        items = [pack.recent(item, scope.bank.id, ctx.now) for item in found.items]
    packed = pack.packed(items, found.summaries, given.token_budget)
    rows = await memories.fetched(tx, ctx.org, scope.bank.id, [one.id for one in packed.summaries])
    told = await records.described(tx, scope.bank, [rows[one.id] for one in packed.summaries])
    return _shown(scope, packed, told)


@dataclass(frozen=True, slots=True)
class Asking:
    """A question about a bank."""

    scope: Scope
    query: str
    vectors: "Vectors"


async def _relevant(tx: Tx, ctx: Ctx, asking: Asking, found: Sequence[Item]) -> list[Item]:
    """The candidates, and those that the question brings, with all four signals."""
    bank, stems = asking.scope.bank, text.asked(asking.query)
    asked = search.Asked(bank.org, bank.id, stems, await search.corpus(tx, bank.org, bank.id, stems))
    hits = await search.candidates(tx, asked)
    best = heapq.nlargest(BEST, hits, key=lambda id: (hits[id].own, id))
    by_bank: dict[int, list[int]] = {}
    for item in found:
        by_bank.setdefault(item.bank, []).append(item.id)
    own = by_bank.pop(bank.id, [])
    semantic = await _nearest(tx, asking, [*own, *best])
    brought = {*semantic, *best}.difference(own)
    items = [*found, *await packs.items(tx, bank.org, bank.id, brought)]
    unread = {*own, *brought}.difference(hits)
    scores = {id: score.own for id, score in (hits | await search.scores(tx, asked, sorted(unread))).items()}
    for other, ids in by_bank.items():
        semantic |= await _among(tx, asking, other, ids)
        scores |= {id: one.own for id, one in (await search.scores(tx, replace(asked, bank=other), ids)).items()}
    ceiling = sum(asked.known.weight(word) for word in stems) * (rank.K1 + 1) / 2 or 1.0
    now = ctx.now
    return [
        pack.answering(item, bank.id, now, semantic.get(item.id, 0.0), min(1.0, scores.get(item.id, 0.0) / ceiling))
        for item in items
    ]


async def _nearest(tx: Tx, asking: Asking, also: Sequence[int]) -> dict[int, float]:
    """The similarity of the bank's nearest memories, and of these."""
    bank = asking.scope.bank
    return await _similar(tx, asking, Nearest(bank.org, bank.id, 0, None, NEAREST, also=list(dict.fromkeys(also))))


async def _among(tx: Tx, asking: Asking, bank: int, ids: Sequence[int]) -> dict[int, float]:
    """The similarity of what another bank shares."""
    return await _similar(tx, asking, Nearest(asking.scope.bank.org, bank, 0, None, len(ids), among=ids))


async def _similar(tx: Tx, asking: Asking, nearest: Nearest) -> dict[int, float]:
    found: dict[int, float] = {}
    models = [model for model in asking.scope.models if asking.vectors.get(model.id) is not None]
    asked = [replace(nearest, model=model.id, vector=asking.vectors[model.id]) for model in models]
    for model, near in zip(models, await tx.search_vectors(*asked) if asked else [], strict=True):
        for id, cosine in near:
            found[id] = min(1.0, max(0.0, (cosine - model.zero) / (model.one - model.zero)))
    return found


def _shown(scope: Scope, packed: Pack, summaries: list[Record]) -> ContextPack:
    return ContextPack.model_construct(
        bank=scope.bank.name,
        items=[_item(item, scope.banks[item.bank].name) for item in packed.items],
        summaries=summaries,
        token_budget=packed.budget,
        tokens_used=packed.used,
    )


def _item(item: Item, bank: str) -> ContextItem:
    return ContextItem.model_construct(
        id=str(item.id),
        bank=bank,
        title=item.title,
        text=item.content,
        type=item.type,
        at=clock.iso(item.at),
        score=round(item.score, 4),
        semantic=round(item.signals.semantic, 4),
        words=round(item.signals.words, 4),
        recency=round(item.signals.recency, 4),
        project=item.signals.project,
        trust=item.trust,
        pinned=item.is_pinned,
    )
