"""The text index: what is written for a memory, and how a question fetches candidates."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.core import text
from keepsake.core.rank import Corpus, bm25, essential
from keepsake.store.engine import Doc, Found, Tx, Value, Wanted

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
#: No question reads more documents than this, however common its words.
CANDIDATES = 250
FEW = 20
#: The row of `terms` that counts the bank itself.
WHOLE = ""


@dataclass(frozen=True, slots=True)
class Fields:
    """The texts of a memory that are searched."""

    body: str
    title: str = ""
    context: str = ""


def prefix(bank: int) -> str:
    """Four letters that keep the posting lists of banks apart; results are still checked against the bank."""
    letters = ""
    for _ in range(4):
        bank, digit = divmod(bank, 36)
        letters += _DIGITS[digit]
    return letters


async def add(tx: Tx, org: int, bank: int, id: int, fields: Fields) -> None:
    """Index a new memory and count its words."""
    body, title = text.lexemes(fields.body), text.lexemes(fields.title)
    before = prefix(bank)
    await tx.index(
        Doc(
            id,
            org,
            bank,
            body=[before + word for word in body],
            title=[before + word for word in title],
            context=[before + word for word in text.lexemes(fields.context)],
        )
    )
    await _count(tx, org, bank, Counter({*body, *title}), documents=1, words=len(body) + len(title))


async def recontext(tx: Tx, org: int, bank: int, id: int, context: str) -> None:
    """Give an indexed memory other neighbours; its own words stay."""
    row = await tx.one(
        "SELECT title, body, concepts, facts, files FROM search_docs WHERE org = :org AND bank = :bank AND id = :id",
        org=org,
        bank=bank,
        id=id,
    )
    if row is not None:
        own = {name: row[name].split() for name in ("title", "body", "concepts", "facts", "files")}
        before = prefix(bank)
        await tx.index(Doc(id, org, bank, context=[before + word for word in text.lexemes(context)], **own))


async def remove(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> None:
    """Take memories out of the index and out of the counts."""
    rows = await tx.all(
        "SELECT title, body, length FROM search_docs WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    gone: Counter[str] = Counter()
    for row in rows:
        gone.update({word[4:] for word in (row["title"] + row["body"]).split()})
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
    rows = await tx.all(
        "SELECT term, docs, total FROM terms WHERE org = :org AND bank = :bank AND term = ANY_TEXT(:terms)",
        org=org,
        bank=bank,
        terms=[*asked, WHOLE],
    )
    frequency = {row["term"]: int(row["docs"]) for row in rows}
    words = next((int(row["total"]) for row in rows if row["term"] == WHOLE), 0)
    return Corpus(frequency.pop(WHOLE, 0), words, frequency)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's words, and how common each is in the bank."""

    org: int
    bank: int
    words: Sequence[str]
    known: Corpus


@dataclass(frozen=True, slots=True)
class Scores:
    """BM25 of a memory's own words, and of these together with its neighbours'."""

    own: float
    around: float


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
        "SELECT id, title, body, context, length FROM search_docs"
        " WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        org=asked.org,
        bank=asked.bank,
        ids=list(ids),
    )
    return _scored(asked, [Found(**row) for row in rows])


def _scored(asked: Asked, found: Sequence[Found]) -> dict[int, Scores]:
    score = bm25(asked.known, asked.words)
    before = prefix(asked.bank)
    needles = [f" {before}{word} " for word in asked.words]
    scored = {}
    for doc in found:
        # Neighbouring words share a blank, so a word right after itself is counted once: close enough.
        words = doc.title + doc.body if doc.title.strip() else doc.body
        counts = [words.count(needle) for needle in needles]
        own = score(counts, doc.length)
        around = own
        if doc.context.strip():
            more = [count + doc.context.count(needle) for count, needle in zip(counts, needles, strict=True)]
            around = score(more, doc.length + doc.context.count(" ") - 1)
        scored[doc.id] = Scores(own, around)
    return scored
