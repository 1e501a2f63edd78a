"""The text index: what is written for a memory, and how a question fetches candidates."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepsake.core import words as text
from keepsake.core.lazy import lazy
from keepsake.core.rank import Corpus, bm25, essential
from keepsake.store import memories
from keepsake.store.engine import Ask, Doc, Found, Row, Tx, Value, Wanted
from keepsake.store.memories import Memory

if TYPE_CHECKING:
    from keepsake.core import query
else:
    query = lazy("keepsake.core.query")

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
#: No question reads more documents than this, however common its words.
CANDIDATES = 120
FEW = 20
#: The row of `terms` that counts the bank itself.
WHOLE = ""


@dataclass(frozen=True, slots=True)
class Fields:
    """The texts of a memory that are searched."""

    body: str
    title: str = ""
    context: str = ""
    concepts: str = ""
    facts: str = ""
    files: str = ""


#: The fields that are a memory's own.
_OWN = ("title", "body", "concepts", "facts", "files")


def of(memory: Memory, context: str = "") -> Fields:
    """What is searched of a memory; an observation also has concepts, facts and files."""
    parts = memory.parts
    if not parts:
        return Fields(memory.text, memory.title, context)
    files = "\n".join(line for name in ("files_read", "files_modified") for line in memories.lines(parts, name))
    concepts, facts = ("\n".join(memories.lines(parts, name)) for name in ("concepts", "facts"))
    return Fields(memory.text, memory.title, context, concepts, facts, files)


def prefix(bank: int) -> str:
    """Four letters that keep the posting lists of banks apart; results are still checked against the bank."""
    letters = ""
    for _ in range(4):
        bank, digit = divmod(bank, 36)
        letters += _DIGITS[digit]
    return letters


async def add(tx: Tx, org: int, bank: int, id: int, fields: Fields) -> None:
    """Index a new memory and count its words."""
    before = prefix(bank)
    own = {name: text.lexemes(getattr(fields, name)) for name in _OWN}
    indexed = {name: [before + word for word in stems] for name, stems in own.items()}
    doc = Doc(id, org, bank, context=[before + word for word in text.lexemes(fields.context)], **indexed)
    await tx.index(doc)
    seen = {word for stems in own.values() for word in stems}
    await _count(tx, org, bank, Counter(seen), documents=1, words=doc.length)


def document(org: int, bank: int, id: int, fields: Fields) -> Doc:
    """What is indexed of a memory that stands in no thread."""
    before = prefix(bank)
    return Doc(id, org, bank, **{name: [before + w for w in text.lexemes(getattr(fields, name))] for name in _OWN})


async def add_all(tx: Tx, org: int, bank: int, docs: Sequence[Doc]) -> None:
    """Index many new memories, and count their words in one go."""
    seen: Counter[str] = Counter()
    for doc in docs:
        await tx.index(doc)
        seen.update({word[4:] for name in _OWN for word in getattr(doc, name)})
    await _count(tx, org, bank, seen, documents=len(docs), words=sum(doc.length for doc in docs))


async def recontext(tx: Tx, org: int, bank: int, id: int, context: str) -> None:
    """Give an indexed memory other neighbours; its own words stay."""
    row = await tx.one(
        "SELECT title, body, concepts, facts, files FROM search_docs WHERE org = :org AND bank = :bank AND id = :id",
        org=org,
        bank=bank,
        id=id,
    )
    if row is not None:
        own = {name: row[name].split() for name in _OWN}
        before = prefix(bank)
        await tx.index(Doc(id, org, bank, context=[before + word for word in text.lexemes(context)], **own))


async def remove(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> None:
    """Take memories out of the index and out of the counts."""
    rows = await tx.all(
        "SELECT title, body, concepts, facts, files, length FROM search_docs"
        " WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    gone: Counter[str] = Counter()
    for row in rows:
        gone.update({word[4:] for name in _OWN for word in row[name].split()})
    await tx.unindex(org, bank, ids)
    await _count(tx, org, bank, gone, documents=-len(rows), words=-sum(int(row["length"]) for row in rows))


async def _count(tx: Tx, org: int, bank: int, seen: Counter[str], documents: int, words: int) -> None:
    sign = 1 if documents >= 0 else -1
    rows: list[dict[str, Value]] = [
        {"org": org, "bank": bank, "term": word, "docs": sign * n, "total": 0} for word, n in sorted(seen.items())
    ]
    rows.append({"org": org, "bank": bank, "term": WHOLE, "docs": documents, "total": words})
    await tx.many(
        "INSERT INTO terms (org, bank, term, docs, total) VALUES (:org, :bank, :term, :docs, :total)"
        " ON CONFLICT (org, bank, term) DO UPDATE SET docs = terms.docs + excluded.docs,"
        " total = terms.total + excluded.total",
        rows,
    )
    if sign < 0:
        await tx.run(
            "DELETE FROM terms WHERE org = :org AND bank = :bank AND docs <= 0 AND term = ANY_TEXT(:gone)",
            org=org,
            bank=bank,
            gone=sorted(seen),
        )


async def corpus(tx: Tx, org: int, bank: int, asked: Sequence[str]) -> Corpus:
    """How common the asked words are in this bank."""
    return await counting(org, bank, asked).of(tx)


def counting(org: int, bank: int, asked: Sequence[str]) -> Ask[Corpus]:
    """The same, to be asked together with something else."""
    return Ask(
        "SELECT term, docs, total FROM terms WHERE org = :org AND bank = :bank AND term = ANY_TEXT(:terms)",
        {"org": org, "bank": bank, "terms": [*asked, WHOLE]},
        _corpus,
    )


def _corpus(rows: Sequence[Row]) -> Corpus:
    frequency = {row["term"]: int(row["docs"]) for row in rows}
    words = next((int(row["total"]) for row in rows if row["term"] == WHOLE), 0)
    return Corpus(frequency.pop(WHOLE, 0), words, frequency)


async def coverage(tx: Tx, org: int, banks: Sequence[int], asked: Sequence[str]) -> dict[int, float]:
    """The share of a question's weight that the words of each bank cover, 0 to 1."""
    rows = await tx.all(
        "SELECT bank, term, docs FROM terms WHERE org = :org AND bank = ANY_INT(:banks) AND term = ANY_TEXT(:terms)",
        org=org,
        banks=list(banks),
        terms=[*asked, WHOLE],
    )
    frequency: Counter[str] = Counter()
    for row in rows:
        frequency[row["term"]] += int(row["docs"])
    known = Corpus(frequency.pop(WHOLE, 0), 0, frequency)
    whole = sum(known.weight(word) for word in asked) or 1.0
    covered = dict.fromkeys(banks, 0.0)
    for row in rows:
        covered[row["bank"]] += known.weight(row["term"]) / whole if row["term"] != WHOLE else 0.0
    return covered


async def documents(tx: Tx, org: int, bank: int, rows: Mapping[int, Memory]) -> "dict[int, query.Document]":
    """What memories hold, by field, as the index knows it and as it was written."""
    found = await tx.all(
        "SELECT id, title, body, concepts, facts, files FROM search_docs"
        " WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(rows),
    )
    before = prefix(bank)
    made = {}
    for row in found:
        stems = {name: row[name].replace(f" {before}", " ") for name in _OWN}
        fields = of(rows[row["id"]])
        made[row["id"]] = query.Document(stems, {name: getattr(fields, name) for name in _OWN})
    return made


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's words, and how common each is in the bank."""

    org: int
    bank: int
    words: Sequence[str]
    known: Corpus

    @property
    def indexed(self) -> frozenset[str]:
        """The words as the index holds them."""
        before = prefix(self.bank)
        return frozenset(before + word for word in self.words)


@dataclass(frozen=True, slots=True)
class Scores:
    """BM25 of a memory's own words, and of these together with its neighbours'."""

    own: float
    around: float
    #: Its own words as they are indexed, between blanks.
    words: str = ""


async def candidates(tx: Tx, asked: Asked) -> dict[int, Scores]:
    """Score the memories that hold the words that tell most, by the same formula on both stores."""
    groups = essential(asked.known, asked.words, CANDIDATES)
    if not groups:
        return {}
    before = prefix(asked.bank)

    def wanted(groups: Sequence[Sequence[str]]) -> Wanted:
        expected = sum(min(asked.known.frequency[word] for word in group) for group in groups)
        fetched = [[before + word for word in group] for group in groups]
        return Wanted(asked.org, asked.bank, fetched, CANDIDATES, expected)

    found = await tx.search_text(wanted(groups))
    if len(found) < FEW and len(groups[0]) > 1:
        # The words hardly ever meet: take the newest with the rarest of them.
        found = await tx.search_text(wanted([groups[0][:1]]))
    return _scored(asked, found)


async def scores(tx: Tx, asked: Asked, ids: Sequence[int]) -> dict[int, Scores]:
    """The same for memories that were found in another way."""
    rows = await tx.all(
        "SELECT id, title, body, context, length, concepts || facts || files AS more FROM search_docs"
        " WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        org=asked.org,
        bank=asked.bank,
        ids=list(ids),
    )
    return _scored(asked, [Found(**row) for row in rows])


def _scored(asked: Asked, found: Sequence[Found]) -> dict[int, Scores]:
    before = prefix(asked.bank)
    # Neighbouring words share a blank, so a word right after itself is counted once: close enough.
    score = bm25(asked.known, {word: f" {before}{word} " for word in asked.words})
    scored = {}
    for doc in found:
        words = doc.title + doc.body if len(doc.title) > 2 else doc.body
        if len(doc.more) > 6:
            words += doc.more
        own = around = score(words, doc.length)
        if len(doc.context) > 2:
            around = score(words + doc.context, doc.length + doc.context.count(" ") - 1)
        scored[doc.id] = Scores(own, around, words)
    return scored
