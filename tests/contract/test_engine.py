"""What both databases promise to everything above them."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from keepsake.store import audit, banks, keys
from keepsake.store.engine import Doc, Row, Tx, Value, Wanted
from keepsake.store.store import Store

if TYPE_CHECKING:
    from conftest import Database

pytestmark = pytest.mark.anyio
ORG, BANK = 1, 42
TERM = "INSERT INTO terms (org, bank, term, docs, total) VALUES (:org, :bank, :term, :docs, :total)"


def term(word: str, docs: int = 1) -> dict[str, Value]:
    return {"org": ORG, "bank": BANK, "term": word, "docs": docs, "total": 0}


async def wrote(store: Store, *rows: dict[str, Value]) -> None:
    await store.write(ORG, lambda tx: tx.many(TERM, rows))


async def terms(store: Store) -> list[str]:
    rows = await store.read(ORG, lambda tx: tx.all("SELECT term FROM terms ORDER BY term"))
    return [row["term"] for row in rows]


async def test_a_statement_takes_named_values_and_gives_named_columns(store: Store) -> None:
    await wrote(store, term("apple", 3), term("pear", 5))

    found = await store.read(
        ORG,
        lambda tx: tx.one(
            "SELECT term, docs FROM terms WHERE org = :org AND bank = :bank AND docs > :least AND docs < :least + 3",
            org=ORG,
            bank=BANK,
            least=2,
        ),
    )

    assert found == {"term": "apple", "docs": 3}


async def test_a_statement_takes_lists_of_numbers_and_of_words(store: Store) -> None:
    await wrote(store, term("apple", 3), term("it's", 5), term("ö", 7), term("fig", 9))

    async def body(tx: Tx) -> tuple[list[Row], list[Row], list[Row]]:
        listed = "SELECT term FROM terms WHERE docs = ANY_INT(:docs) ORDER BY docs"
        named = "SELECT term FROM terms WHERE term = ANY_TEXT(:words) ORDER BY docs"
        return (
            await tx.all(listed, docs=[3, 9, 11]),
            await tx.all(named, words=("it's", "ö")),
            await tx.all(listed, docs=[]),
        )

    numbers, words, nothing = await store.read(ORG, body)

    assert numbers == [{"term": "apple"}, {"term": "fig"}]
    assert words == [{"term": "it's"}, {"term": "ö"}]
    assert nothing == []


async def test_nothing_found_is_none_and_an_empty_list(store: Store) -> None:
    async def body(tx: Tx) -> tuple[Row | None, list[Row]]:
        return await tx.one("SELECT term FROM terms"), await tx.all("SELECT term FROM terms")

    assert await store.read(ORG, body) == (None, [])


async def test_a_change_tells_how_many_rows_it_touched(store: Store) -> None:
    await wrote(store, term("apple"), term("pear"), term("plum", 4))

    async def body(tx: Tx) -> list[int]:
        return [
            await tx.run("UPDATE terms SET total = 9 WHERE docs = :docs", docs=1),
            await tx.run("DELETE FROM terms WHERE docs = :docs", docs=2),
            await tx.run(TERM + " ON CONFLICT (org, bank, term) DO NOTHING", **term("plum")),
            await tx.run(TERM + " ON CONFLICT (org, bank, term) DO NOTHING", **term("fig")),
        ]

    assert await store.write(ORG, body) == [2, 0, 0, 1]


async def test_a_sum_is_a_number(store: Store) -> None:
    await wrote(store, term("apple", 3), term("pear", 5))

    row = await store.read(ORG, lambda tx: tx.one("SELECT sum(docs) AS whole, avg(docs) AS mean FROM terms"))

    assert row == {"whole": 8, "mean": 4.0}
    assert isinstance(row["whole"], int)


async def test_a_failing_body_changes_nothing_and_harms_no_other(store: Store) -> None:
    async def body(tx: Tx, n: int) -> int:
        await tx.run(TERM, **term(f"word {n:02}"))
        if n % 2:
            raise ValueError(n)
        return n

    answers = await asyncio.gather(
        *[store.write(ORG, lambda tx, n=n: body(tx, n)) for n in range(20)], return_exceptions=True
    )

    assert [isinstance(answer, ValueError) for answer in answers] == [n % 2 == 1 for n in range(20)]
    assert await terms(store) == [f"word {n:02}" for n in range(0, 20, 2)]


async def test_a_failing_statement_undoes_its_body(store: Store) -> None:
    async def body(tx: Tx) -> None:
        await tx.run(TERM, **term("apple"))
        await tx.run(TERM, **term("apple"))

    with pytest.raises(Exception, match=r"(?i)unique"):
        await store.write(ORG, body)

    assert await terms(store) == []


async def test_a_reading_body_cannot_write(store: Store) -> None:
    with pytest.raises(Exception, match=r"(?i)read-?only"):
        await store.read(ORG, lambda tx: tx.run(TERM, **term("apple")))

    assert await terms(store) == []


async def test_concurrent_writers_lose_nothing(store: Store) -> None:
    counter = f"INSERT INTO bank_seq (org, bank, seq, purges) VALUES ({ORG}, {BANK}, 0, 0)"
    await store.write(ORG, lambda tx: tx.run(counter))

    seen = await asyncio.gather(*[store.write(ORG, lambda tx: banks.step(tx, ORG, BANK)) for _ in range(200)])

    assert sorted(seen) == list(range(1, 201))


async def test_writers_that_lock_in_opposite_orders_all_succeed(store: Store) -> None:
    await wrote(store, term("one", 0), term("two", 0))

    async def body(tx: Tx, order: Sequence[str]) -> None:
        for word in order:
            await tx.run("UPDATE terms SET docs = docs + 1 WHERE term = :word", word=word)

    orders = (("one", "two"), ("two", "one"))
    await asyncio.gather(*[store.write(ORG, lambda tx, n=n: body(tx, orders[n % 2])) for n in range(8)])

    rows = await store.read(ORG, lambda tx: tx.all("SELECT docs FROM terms"))
    assert rows == [{"docs": 8}, {"docs": 8}]


async def found(store: Store, *groups: Sequence[str], org: int = ORG, bank: int = BANK, limit: int = 10) -> list[int]:
    docs = await store.read(org, lambda tx: tx.search_text(Wanted(org, bank, groups, limit)))
    return [doc.id for doc in docs]


async def indexed(store: Store, *docs: Doc) -> None:
    async def body(tx: Tx, doc: Doc) -> None:
        await tx.index(doc)

    for doc in docs:
        await store.write(doc.org, lambda tx, doc=doc: body(tx, doc))


async def test_words_are_found_in_any_group_and_all_of_a_group(store: Store) -> None:
    await indexed(
        store,
        Doc(1, ORG, BANK, ["abcdred", "abcdapple"]),
        Doc(2, ORG, BANK, ["abcdgreen", "abcdapple"]),
        Doc(3, ORG, BANK, ["abcdpear"], title=["abcdred"], context=["abcdtree"]),
    )

    assert await found(store, ["abcdapple"]) == [2, 1]
    assert await found(store, ["abcdapple", "abcdred"]) == [1]
    assert await found(store, ["abcdgreen"], ["abcdpear", "abcdred"]) == [3, 2]
    assert await found(store, ["abcdtree"]) == [3]
    assert await found(store, ["abcdplum"]) == []
    assert await found(store, ["abcdapple"], ["abcdred"], limit=2) == [3, 2]
    assert await found(store) == []


async def test_a_found_document_carries_its_words(store: Store) -> None:
    doc = Doc(1, ORG, BANK, body=["abcdone", "abcdone"], title=["abcdtwo"], context=["abcdthree"], facts=["abcdfour"])
    await indexed(store, doc)

    (only,) = await store.read(ORG, lambda tx: tx.search_text(Wanted(ORG, BANK, [["abcdfour"]], 10)))

    assert (only.title, only.body, only.context, only.length) == (" abcdtwo ", " abcdone abcdone ", " abcdthree ", 4)


@pytest.mark.parametrize(
    "word", ["abcdit's", 'abcd"x"', "abcda\\b", "abcda\\'", "abcdübung", "abcd日本", "abcd&|!():*"]
)
async def test_a_word_is_found_whatever_its_letters(store: Store, word: str) -> None:
    await indexed(store, Doc(1, ORG, BANK, [word, "abcdother"]), Doc(2, ORG, BANK, ["abcdother"]))

    assert await found(store, [word, "abcdother"]) == [1]


async def test_a_very_long_document_is_found_by_its_first_words(store: Store) -> None:
    await indexed(store, Doc(1, ORG, BANK, [f"abcd{n}" for n in range(200_000)], title=["abcd" + "x" * 3000]))

    assert await found(store, ["abcd0", "abcd9999"]) == [1]
    assert await found(store, ["abcd" + "x" * 3000]) == [1]


async def test_another_bank_or_org_is_never_found(store: Store) -> None:
    await indexed(
        store, Doc(1, ORG, BANK, ["abcdapple"]), Doc(2, ORG, 43, ["abcdapple"]), Doc(3, 2, BANK, ["abcdapple"])
    )

    assert await found(store, ["abcdapple"]) == [1]
    assert await found(store, ["abcdapple"], bank=43) == [2]
    assert await found(store, ["abcdapple"], org=2) == [3]


async def test_a_document_that_is_indexed_again_loses_its_old_words(store: Store) -> None:
    await indexed(store, Doc(1, ORG, BANK, ["abcdold"]), Doc(1, ORG, BANK, ["abcdnew"]))

    assert await found(store, ["abcdold"]) == []
    assert await found(store, ["abcdnew"]) == [1]


async def test_only_the_documents_of_the_bank_leave_the_index(store: Store) -> None:
    await indexed(store, Doc(1, ORG, BANK, ["abcdapple"]), Doc(2, ORG, BANK, ["abcdapple"]))

    await store.write(ORG, lambda tx: tx.unindex(ORG, 43, [1, 2]))
    await store.write(ORG, lambda tx: tx.unindex(ORG, BANK, [1, 99]))

    assert await found(store, ["abcdapple"]) == [2]


async def test_several_questions_are_answered_at_once(store: Store) -> None:
    async def body(tx: Tx) -> list[list[Row]]:
        await tx.run("INSERT INTO bank_seq (org, bank, seq, purges) VALUES (1, 42, 5, 0), (1, 43, 6, 0)")
        told = (
            "SELECT bank, seq, 'it''s' AS word FROM bank_seq WHERE org = :org AND bank = ANY_INT(:banks) ORDER BY bank"
        )
        return await tx.gather(
            (told, {"org": ORG, "banks": [42, 43]}),
            (told, {"org": ORG, "banks": []}),
            ("SELECT max(seq) AS seq FROM bank_seq WHERE bank = :bank", {"bank": 43}),
        )

    both, none, most = await store.write(ORG, body)

    assert both == [{"bank": 42, "seq": 5, "word": "it's"}, {"bank": 43, "seq": 6, "word": "it's"}]
    assert none == []
    assert most == [{"seq": 6}]


async def ids(store: Store, count: int) -> list[int]:
    async def body(tx: Tx) -> list[int]:
        return [store.new_id() for _ in range(count)]

    return await store.write(ORG, body)


async def test_two_stores_on_one_database_never_make_the_same_id(store: Store, database: "Database") -> None:
    other = await database.open()

    made = await asyncio.gather(*[ids(each, 500) for each in (store, other) for _ in range(4)])
    slots = await store.engine.claim(lambda tx: tx.all("SELECT slot FROM nodes WHERE lease_until > 0 ORDER BY slot"))
    await other.close()

    assert len({id for some in made for id in some}) == 8 * 500
    assert slots == [{"slot": 0}, {"slot": 1}]


async def test_a_slot_that_was_given_back_goes_on_after_its_last_id(store: Store, database: "Database") -> None:
    first, second = await database.open(), await database.open()
    earlier = await ids(first, 3)
    await first.close()

    later = await ids(second, 3)
    slots = await second.engine.claim(lambda tx: tx.all("SELECT slot FROM nodes"))
    await second.close()

    assert slots == [{"slot": 0}]
    assert max(earlier) < min(later)


async def test_every_store_on_a_database_has_the_same_secret(store: Store, database: "Database") -> None:
    others = await asyncio.gather(*[database.open() for _ in range(3)])

    digests = {each.digest("text") for each in (store, *others)}
    for other in others:
        await other.close()

    assert len(digests) == 1


async def test_concurrent_entries_make_one_chain(store: Store) -> None:
    entry = audit.Entry(ORG, BANK, 5, "anna", "memory.retain", [7])

    await asyncio.gather(*[store.write(ORG, lambda tx: audit.append(tx, entry)) for _ in range(30)])

    assert await store.read(ORG, lambda tx: audit.verify(tx, ORG)) == [audit.Chain(BANK, 30, None)]


async def test_calls_are_counted_exactly_under_concurrency(store: Store) -> None:
    counts = await asyncio.gather(
        *[store.engine.volatile(lambda tx: keys.counted(tx, 9, 60_000_000_000, 2)) for _ in range(100)]
    )

    assert sorted(counts) == list(range(2, 202, 2))


async def test_a_look_across_orgs_sees_every_key_and_changes_nothing(store: Store) -> None:
    for org in (1, 2):
        key = keys.Key(org, org, f"hash {org}", "ks", "laptop", "anna", frozenset(), "core", None, False, 5)
        assert await store.write(org, lambda tx, key=key: keys.insert(tx, key))

    async def body(tx: Tx) -> list[int]:
        return [row["org"] for row in await tx.all("SELECT org FROM api_keys ORDER BY org")]

    assert await store.engine.look(body) == [1, 2]
    assert await store.engine.claim(body) == [1, 2]
    with pytest.raises(Exception, match=r"(?i)read-?only"):
        await store.engine.look(lambda tx: tx.run("DELETE FROM api_keys"))
