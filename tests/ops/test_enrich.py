"""How notes become facts, and what threads lend them, on both stores."""

from typing import Any

import pytest

from keepsake.context import App
from keepsake.core import clock
from keepsake.store import memories
from keepsake.store.engine import Tx

pytestmark = pytest.mark.anyio
NOTE = "Marta leads the platform team. The billing service moved to Frankfurt. Deploys happen on Fridays."


async def texts(call: Any, **arguments: Any) -> list[str]:
    listed = await call("list_memories", **arguments)
    return sorted(fact["text"] for fact in listed["memories"])


async def test_one_sentence_retained_is_one_memory_listed(call: Any, sharpened: Any) -> None:
    stored = await call("retain", content="Marta leads the platform team.")
    await sharpened()

    listed = await call("list_memories")

    assert [fact["id"] for fact in listed["memories"]] == [stored["memory_id"]]


async def test_a_note_of_several_sentences_becomes_a_fact_each_with_all_that_came_with_it(
    call: Any, sharpened: Any
) -> None:
    stored = await call("retain", content=NOTE, context="team", tags=["work"], metadata={"by": "Nora"})
    await sharpened()

    listed = await call("list_memories")
    note = await call("get_memory", memory_id=stored["memory_id"])

    assert sorted(fact["text"] for fact in listed["memories"]) == [
        "Deploys happen on Fridays.",
        "Marta leads the platform team.",
        "The billing service moved to Frankfurt.",
    ]
    assert {(fact["context"], *fact["tags"], fact["metadata"]["by"]) for fact in listed["memories"]} == {
        ("team", "work", "Nora")
    }
    assert note["text"] == NOTE


async def test_each_fact_is_found_by_itself(call: Any, sharpened: Any) -> None:
    await call("retain", content=NOTE)
    await sharpened()

    found = await call("recall", query="Who leads the platform team?")

    assert found["results"][0]["text"] == "Marta leads the platform team."


async def test_facts_are_typed_by_what_they_say(call: Any, sharpened: Any) -> None:
    await call("retain", content="Alice prefers tea over coffee.")
    await call("retain", content="I deployed version 2 to production yesterday.")
    await sharpened()

    opinions = await texts(call, type="opinion")
    experiences = await texts(call, type="experience")

    assert opinions == ["Alice prefers tea over coffee."]
    assert experiences == ["I deployed version 2 to production yesterday."]


async def stored(app: App) -> list[memories.Memory]:
    """Every live memory, in the order of its id."""

    async def body(tx: Tx) -> list[memories.Memory]:
        rows = await tx.all("SELECT bank, id FROM memories WHERE org = 1 AND state = 'live' ORDER BY id")
        return [(await memories.fetched(tx, 1, row["bank"], [row["id"]]))[row["id"]] for row in rows]

    return await app.store.read(1, body)


@pytest.mark.parametrize(
    ("content", "start", "end"),
    [
        ("Marta moved to Oslo last Tuesday.", "2023-05-02", "2023-05-03"),
        ("Marta moved to Oslo yesterday.", "2023-05-07", "2023-05-08"),
        ("Marta moved to Oslo in March 2021.", "2021-03-01", "2021-04-01"),
    ],
)
async def test_words_for_a_time_count_from_the_timestamp_and_give_the_fact_its_own_time(
    call: Any, app: App, sharpened: Any, content: str, start: str, end: str
) -> None:
    given = "2023-05-08T13:56:00.000000Z"
    await call("retain", content=content, timestamp=given)
    await sharpened()

    (fact,) = await stored(app)
    (shown,) = (await call("list_memories"))["memories"]

    assert (fact.happened_from, fact.happened_to) == (clock.parse(start), clock.parse(end))
    assert (fact.event_at, clock.parse(shown["timestamp"])) == (clock.parse(given), clock.parse(given))


@pytest.mark.parametrize(
    "content", ["Marta lives in Oslo.", "Marta moved to Oslo today.", "Marta stays until June 2030."]
)
async def test_a_fact_that_names_no_other_time_has_that_of_the_timestamp(
    call: Any, app: App, sharpened: Any, content: str
) -> None:
    await call("retain", content=content, timestamp="2023-05-08T13:56:00Z")
    await sharpened()

    (fact,) = await stored(app)

    assert (fact.happened_from, fact.happened_to) == (clock.parse("2023-05-08T13:56:00Z"), None)


async def test_each_fact_of_a_note_has_its_own_time(call: Any, app: App, sharpened: Any) -> None:
    content = "Marta moved to Oslo yesterday. Pedro joined the team in March 2021. Deploys are quick."
    await call("retain", content=content, timestamp="2023-05-08T13:56:00Z")
    await sharpened()

    facts = {fact.text.split()[0]: (fact.happened_from, fact.happened_to) for fact in await stored(app)}

    assert facts == {
        "Marta": (clock.parse("2023-05-07"), clock.parse("2023-05-08")),
        "Pedro": (clock.parse("2021-03-01"), clock.parse("2021-04-01")),
        "Deploys": (clock.parse("2023-05-08T13:56:00Z"), None),
    }


async def test_a_question_about_a_time_finds_what_was_said_then_and_what_speaks_of_it(
    call: Any, sharpened: Any
) -> None:
    await call("retain", content="Marta visited the harbour in March 2021.", timestamp="2023-05-08T13:56:00Z")
    await call("retain", content="Marta visited the castle.", timestamp="2021-03-15T10:00:00Z")
    await call("retain", content="Marta visited the market.", timestamp="2022-07-01T10:00:00Z")
    await sharpened()

    found = await call("recall", query="What did Marta visit in March 2021?")

    timed = {fact["text"] for fact in found["results"] if "time" in fact["why"]}
    assert timed == {"Marta visited the harbour in March 2021.", "Marta visited the castle."}


async def test_talk_about_the_past_stays_in_its_thread(call: Any, app: App, sharpened: Any) -> None:
    await call("retain", content="Nora: I fixed the invoice export last year.")
    await sharpened()
    await call("retain", content="Pedro: Great, what was it?")

    first, second = await stored(app)

    assert (second.thread, second.before) == (first.thread, first.id)


async def test_the_facts_of_a_note_follow_those_of_the_note_before_it(call: Any, app: App, sharpened: Any) -> None:
    await call("retain", content="Marta leads the team. Deploys happen on Fridays.", context="standup")
    await call("retain", content="Pedro joined the team. The office is closed.", context="standup")
    await sharpened()

    facts = await stored(app)

    assert [fact.before for fact in facts] == [None, *[fact.id for fact in facts[:-1]]]


async def test_what_a_memory_stood_next_to_helps_to_find_it_but_is_not_shown(call: Any, sharpened: Any) -> None:
    await call("retain", content="Nora: Did you ever fix the invoice export?", timestamp="2026-03-01T10:00:00Z")
    await call("retain", content="Pedro: Yes, it was the time zone.", timestamp="2026-03-01T10:00:05Z")
    await call("retain", content="Lena: The cat sleeps all day.", timestamp="2026-05-01T10:00:00Z")
    await sharpened()

    found = await call("recall", query="What was wrong with the invoice export?")

    assert "Pedro: Yes, it was the time zone." in [fact["text"] for fact in found["results"]]
    assert "Lena: The cat sleeps all day." not in [fact["text"] for fact in found["results"]]


async def test_nothing_of_a_forgotten_memory_stays_searchable_at_its_neighbours(
    call: Any, app: App, sharpened: Any
) -> None:
    await call("retain", content="Nora: The wifi name is zebrafish.", timestamp="2026-03-01T10:00:00Z")
    stored = await call(
        "retain", content="Pedro: Great, and the door code is hedgehog.", timestamp="2026-03-01T10:00:05Z"
    )
    await call("retain", content="Nora: Thanks, see you at lunch.", timestamp="2026-03-01T10:00:09Z")
    await sharpened()

    await call("delete_memory", memory_id=stored["memory_id"])

    async def words(tx: Tx) -> str:
        rows = await tx.all("SELECT body, context FROM search_docs WHERE org = 1")
        return " ".join(row["body"] + row["context"] for row in rows)

    left = await app.store.read(1, words)
    assert "zebrafish" in left
    assert "hedgehog" not in left


async def test_forgetting_one_fact_blanks_it_in_its_note_and_its_document(call: Any, sharpened: Any) -> None:
    stored = await call("retain", content=NOTE, document_id="team")
    await sharpened()
    found = await call("recall", query="Where did the billing service move?")

    await call("delete_memory", memory_id=found["results"][0]["id"])

    gone = "The billing service moved to Frankfurt."
    expected = NOTE.replace(gone, " " * len(gone))
    assert (await call("get_memory", memory_id=stored["memory_id"]))["text"] == expected
    assert (await call("get_document", document_id="team"))["text"] == expected


async def test_forgetting_a_note_takes_the_facts_made_from_it(call: Any, sharpened: Any) -> None:
    stored = await call("retain", content=NOTE)
    await sharpened()

    await call("delete_memory", memory_id=stored["memory_id"])

    assert await texts(call) == []
