"""Search over one bank or all within reach: operators, or a question for the one pipeline; summaries apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import ids, query, text
from keepsake.core.models import BankName, Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Filled
from keepsake.ops import handed_out, records, retrieve
from keepsake.ops.records import MOST, Record
from keepsake.store import banks, memories, search
from keepsake.store import records as kept
from keepsake.store.engine import Match, Tx
from keepsake.store.memories import Memory

#: Banks that a question is asked of, and those that operators look through: the ones that know most of its words.
ASKED_BANKS, LOOKED_BANKS = 8, 50
#: Documents that operators fetch at a time, how often, and how many that fit are enough to rank.
CHUNK, ROUNDS, ENOUGH = 250, 4, 100
#: What a bank that knows none of the words keeps of its scores.
UNKNOWN = 0.5
SUMMARY = "summary"


class Search(Given):
    """What to look for, and where."""

    query: Filled = Field(
        max_length=20_000,
        description='A question in natural language, or words with AND, OR, NOT, "phrase", prefix*, column:word.',
    )
    banks: list[BankName] = Field(
        default_factory=list, max_length=MOST, description="Names of banks; every bank you may see when left out."
    )
    limit: int = Field(10, ge=1, le=MOST, description="How many memories at most, and how many summaries.")


class Found(Result):
    """What was found, best first."""

    memories: list[Record] = Field(description="Everything but summaries.")
    summaries: list[Record] = Field(description="Summaries of sessions.")


@dataclass(frozen=True, slots=True)
class Scored:
    """Something found, and how well it fits."""

    bank: banks.Bank
    id: int
    score: float


@dataclass(frozen=True, slots=True)
class Reach:
    """The banks to look in, those that know most of the words first, and the share they know."""

    banks: Sequence[banks.Bank]
    known: Mapping[int, float]
    #: Those that hold summaries.
    summed_up: frozenset[int]


@operation("memory.search", effect=Effect.READ, scope="memory:read")
async def search_(ctx: Ctx, given: Search) -> Found:
    """Search memories and summaries by words, operators or meaning, in one bank or in all that you may see."""
    meant = query.parsed(given.query)
    stems = query.telling(meant.tree) if meant else text.asked(given.query)
    reach = await ctx.read(lambda tx: _reach(tx, ctx, given.banks, stems))
    found: list[Scored] = []
    told: list[Scored] = []
    if meant:
        found, told = await ctx.read(lambda tx: _by_operators(tx, reach, meant.tree, stems))
    if meant is None or (meant.is_loose and not found and not told):
        found, told = await _by_question(ctx, reach, given)
    shown = await ctx.read(lambda tx: _shown(tx, ctx, found[: given.limit], told[: given.limit]))
    handed_out.told(ctx, [*shown.memories, *shown.summaries])
    return shown


async def _reach(tx: Tx, ctx: Ctx, named: Sequence[str], stems: Sequence[str]) -> Reach:
    wanted = list(dict.fromkeys(named))
    found = {bank.id: bank for name in wanted for bank in await records.reach(tx, ctx, name)}
    if not wanted:
        found = {bank.id: bank for bank in await records.reach(tx, ctx)}
    known = await search.coverage(tx, ctx.org, list(found), stems)
    order = sorted(found, key=lambda id: (-known[id], -found[id].updated_at, -id))[:LOOKED_BANKS]
    return Reach([found[id] for id in order], known, frozenset(await kept.summed_up(tx, ctx.org, order)))


async def _by_operators(
    tx: Tx, reach: Reach, tree: query.Node, stems: Sequence[str]
) -> tuple[list[Scored], list[Scored]]:
    found, told = [], []
    for bank in reach.banks:
        found += await _fitting(tx, bank, tree, stems, summaries=False)
        told += await _fitting(tx, bank, tree, stems, summaries=True) if bank.id in reach.summed_up else []
    return _ordered(found), _ordered(told)


def _ordered(found: list[Scored]) -> list[Scored]:
    return sorted(found, key=lambda one: (-one.score, -one.id))


async def _fitting(
    tx: Tx, bank: banks.Bank, tree: query.Node, stems: Sequence[str], *, summaries: bool
) -> list[Scored]:
    """The memories of a bank that fit, of the newest that may; by BM25."""
    match = Match(bank.org, bank.id, tree, search.prefix(bank.id), summaries, ids.LARGEST + 1, CHUNK)
    fit: list[int] = []
    for _ in range(ROUNDS):
        fetched = await tx.match(match)
        rows = await memories.fetched(tx, bank.org, bank.id, fetched)
        documents = await search.documents(tx, bank.org, bank.id, rows) if rows else {}
        fit += [id for id, document in documents.items() if query.holds(tree, document)]
        if len(fetched) < CHUNK or len(fit) >= ENOUGH:
            break
        match = replace(match, below=fetched[-1])
    if not fit:
        return []
    asked = search.Asked(bank.org, bank.id, stems, await search.corpus(tx, bank.org, bank.id, stems))
    scores = await search.scores(tx, asked, fit)
    return [Scored(bank, id, round(scores[id].own, 6)) for id in fit if id in scores]


async def _by_question(ctx: Ctx, reach: Reach, given: Search) -> tuple[list[Scored], list[Scored]]:
    """Ask the pipeline, of the banks that know most of the words; the question is embedded once."""
    question = retrieve.Question(given.query, ctx.now, most=given.limit)
    found, told = [], []
    for bank in reach.banks[:ASKED_BANKS]:
        share = UNKNOWN + (1 - UNKNOWN) * reach.known[bank.id]
        # Where there are summaries they may be the best, and are left out here: all that was looked at is asked for.
        most = retrieve.LOOKED if bank.id in reach.summed_up else given.limit
        hits = await retrieve.search_bank(ctx, bank.name, replace(question, most=most))
        found += [_scored(bank, hit, share) for hit in hits if hit.memory.kind != SUMMARY]
        if bank.id in reach.summed_up:
            hits = await retrieve.search_bank(ctx, bank.name, replace(question, kinds=(SUMMARY,)))
            told += [_scored(bank, hit, share) for hit in hits]
    return _ordered(found), _ordered(told)


def _scored(bank: banks.Bank, hit: retrieve.Hit, share: float) -> Scored:
    return Scored(bank, int(hit.memory.id), hit.score * share)


async def _shown(tx: Tx, ctx: Ctx, found: Sequence[Scored], told: Sequence[Scored]) -> Found:
    by_bank: dict[int, list[Scored]] = {}
    for one in (*found, *told):
        by_bank.setdefault(one.bank.id, []).append(one)
    made: dict[str, Record] = {}
    for several in by_bank.values():
        bank = several[0].bank
        rows: dict[int, Memory] = await memories.fetched(tx, ctx.org, bank.id, [one.id for one in several])
        made |= {record.id: record for record in await records.described(tx, bank, list(rows.values()))}
    return Found.model_construct(memories=_of(made, found), summaries=_of(made, told))


def _of(made: Mapping[str, Record], found: Sequence[Scored]) -> list[Record]:
    return [made[key] for one in found if (key := str(one.id)) in made]
