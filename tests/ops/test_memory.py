"""Retain, recall, list, get, forget and clear, on both stores."""

from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.errors import BadInput, NotFound
from keepsake.core.principal import local_owner
from keepsake.store import audit
from keepsake.tools import catalog

pytestmark = pytest.mark.anyio


async def test_what_is_retained_is_found_the_moment_retain_returns(call: Any) -> None:
    stored = await call("retain", content="The billing service runs on PostgreSQL 16 in Frankfurt.")

    found = await call("recall", query="Where does the billing service run?")

    assert [fact["id"] for fact in found["results"]] == [stored["memory_id"]]
    assert found["results"][0]["text"] == "The billing service runs on PostgreSQL 16 in Frankfurt."


async def test_a_question_in_other_words_is_answered_once_the_sharper_vector_is_there(
    call: Any, sharpened: Any
) -> None:
    await call("retain", content="Alice's dog is called Biscuit.")
    await call("retain", content="We deploy on Fridays only with approval from Marta.")
    await sharpened()

    found = await call("recall", query="what is the name of the pet")

    assert found["results"][0]["text"] == "Alice's dog is called Biscuit."
    assert (await call("get_bank_stats"))["pending_embeddings"] == 0


async def test_nothing_relevant_gives_an_empty_list_said_plainly(call: Any, sharpened: Any) -> None:
    await call("retain", content="The staging cluster was moved to eu-west-1.")
    await sharpened()

    found = await call("recall", query="best pizza recipe")

    assert found == {"results": [], "note": "Nothing relevant is known."}


async def test_a_memory_keeps_all_that_came_with_it(call: Any) -> None:
    stored = await call(
        "retain",
        content="Marta approved the release.",
        context="releases",
        timestamp="2026-03-01T12:00:00Z",
        tags=["team:core", "release"],
        metadata={"source": "slack", "thread": {"id": 7}},
        document_id="meeting-1",
    )

    fact = await call("get_memory", memory_id=stored["memory_id"])

    assert {key: fact[key] for key in ("text", "type", "context", "timestamp", "tags", "metadata", "document_id")} == {
        "text": "Marta approved the release.",
        "type": "world",
        "context": "releases",
        "timestamp": "2026-03-01T12:00:00Z",
        "tags": ["team:core", "release"],
        "metadata": {"source": "slack", "thread": {"id": 7}},
        "document_id": "meeting-1",
    }


async def test_tags_narrow_recall_to_any_or_all_of_them(call: Any) -> None:
    await call("retain", content="Python is used for the backend.", tags=["lang", "backend"])
    await call("retain", content="Python is used for notebooks.", tags=["lang"])
    await call("retain", content="Python is used by the neighbours.")

    any_of = await call("recall", query="Python", tags=["lang", "backend"])
    all_of = await call("recall", query="Python", tags=["lang", "backend"], tags_match="all")
    none_of = await call("recall", query="Python", tags=["unknown"])

    assert {fact["text"] for fact in any_of["results"]} == {
        "Python is used for the backend.",
        "Python is used for notebooks.",
    }
    assert [fact["text"] for fact in all_of["results"]] == ["Python is used for the backend."]
    assert none_of["results"] == []


async def test_types_narrow_recall(call: Any) -> None:
    await call("retain", content="Python is used for the backend.")

    world = await call("recall", query="Python", types=["world"])
    opinion = await call("recall", query="Python", types=["opinion"])

    assert (len(world["results"]), len(opinion["results"])) == (1, 0)


async def test_a_document_told_again_replaces_what_it_said_but_not_as_of_its_time(call: Any) -> None:
    await call("retain", content="The office is in Berlin.", document_id="office")
    before = clock.iso(clock.now())
    await call("retain", content="The office is in Lisbon.", document_id="office")

    now = await call("recall", query="Where is the office?")
    then = await call("recall", query="Where is the office?", query_timestamp=before)
    listed = await call("list_memories")

    assert [fact["text"] for fact in now["results"]] == ["The office is in Lisbon."]
    assert [fact["text"] for fact in then["results"]] == ["The office is in Berlin."]
    assert listed["total"] == 1


async def test_recall_never_delivers_more_than_max_tokens(call: Any, app: App) -> None:
    for n in range(30):
        await call("retain", content=f"Python fact number {n}: " + "details " * 20)
    door = dispatch.Door(catalog.DIALECTS["hindsight"])

    for most in (1, 50, 100, 400, 2000):
        given = {"query": "Python fact", "max_tokens": most}
        result = await dispatch.call_tool(app.ctx(local_owner()), door, "recall", given)
        delivered = result.model_dump_json(exclude_none=True)

        assert len(delivered) / 4 <= max(most, 20)


async def test_listing_pages_filters_and_counts(call: Any) -> None:
    for n in range(5):
        await call("retain", content=f"Note {n} about {'cats' if n % 2 else 'dogs'} at 100%")

    page = await call("list_memories", limit=2, offset=1)
    cats = await call("list_memories", q="CATS")
    literal = await call("list_memories", q="100%")
    opinions = await call("list_memories", type="opinion")

    assert ([fact["text"][:6] for fact in page["memories"]], page["total"]) == (["Note 3", "Note 2"], 5)
    assert cats["total"] == 2
    assert literal["total"] == 5
    assert opinions == {"memories": [], "total": 0}


async def test_a_deleted_memory_is_gone_everywhere_and_leaves_a_receipt(call: Any, sharpened: Any) -> None:
    stored = await call("retain", content="The password hint is a purple elephant.", document_id="hints")
    await sharpened()

    receipt = await call("delete_memory", memory_id=stored["memory_id"])
    found = await call("recall", query="purple elephant hint")
    document = await call("get_document", document_id="hints")

    assert (receipt["status"], receipt["deleted_memories"]) == ("deleted", 1)
    assert receipt["receipt_id"] and receipt["digest"]
    assert found["results"] == []
    assert document["text"].strip() == ""
    with pytest.raises(NotFound):
        await call("get_memory", memory_id=stored["memory_id"])


async def test_what_was_deleted_on_request_is_not_stored_again_by_itself(call: Any) -> None:
    stored = await call("retain", content="Forget me please.")
    await call("delete_memory", memory_id=stored["memory_id"])

    again = await call("retain", content="Forget me please.")

    assert again["status"] == "skipped"
    assert (await call("list_memories"))["total"] == 0


async def test_clearing_empties_the_bank_and_keeps_it(call: Any) -> None:
    await call("create_bank", bank_id="b", mission="Stay.")
    for n in range(3):
        await call("retain", content=f"Fact {n}", bank_id="b", tags=["t"])

    nothing = await call("clear_memories", bank_id="b", type="opinion")
    cleared = await call("clear_memories", bank_id="b")
    stored = await call("retain", content="Fact 0", bank_id="b")

    assert (nothing["deleted_memories"], cleared["deleted_memories"]) == (0, 3)
    assert (await call("get_bank", bank_id="b"))["mission"] == "Stay."
    assert stored["status"] == "stored"
    assert (await call("get_bank_stats", bank_id="b"))["total_nodes"] == 1


async def test_another_banks_memory_is_as_unknown_as_none(call: Any) -> None:
    await call("create_bank", bank_id="mine")
    stored = await call("retain", content="A secret of the default bank.")

    with pytest.raises(NotFound) as foreign:
        await call("get_memory", memory_id=stored["memory_id"], bank_id="mine")
    with pytest.raises(NotFound) as unknown:
        await call("get_memory", memory_id="123456789", bank_id="mine")
    found = await call("recall", query="secret of the default bank", bank_id="mine")

    assert str(foreign.value).replace(stored["memory_id"], "X") == str(unknown.value).replace("123456789", "X")
    assert found["results"] == []


@pytest.mark.parametrize("moment", ["yesterday", "2026-13-01", "", "12"])
async def test_a_timestamp_that_is_none_is_refused(call: Any, moment: str) -> None:
    with pytest.raises(BadInput, match="ISO 8601"):
        await call("retain", content="x", timestamp=moment)


async def test_every_change_stands_in_the_audit_chain(call: Any, app: App) -> None:
    stored = await call("retain", content="One.")
    await call("update_bank", name="Renamed")
    await call("delete_memory", memory_id=stored["memory_id"])
    await call("clear_memories")

    chains = await app.store.read(1, lambda tx: audit.verify(tx, 1))

    assert [(chain.entries, chain.broken_at) for chain in chains] == [(4, None)]


async def test_a_tampered_audit_row_is_found(call: Any, app: App) -> None:
    for n in range(3):
        await call("retain", content=f"Fact {n}")

    async def tamper(tx: Any) -> None:
        await tx.run("UPDATE audit SET principal = 'someone else' WHERE org = 1 AND n = 2")

    await app.store.engine.write(1, tamper)
    chains = await app.store.read(1, lambda tx: audit.verify(tx, 1))

    assert [chain.broken_at for chain in chains] == [2]
