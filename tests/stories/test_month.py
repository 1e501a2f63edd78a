"""A month of an assistant's memory, told day by day, on both stores."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Database
from tests.llm_server import MODEL, serving
from tests.stories.living import Assistant, living, stored

pytestmark = pytest.mark.anyio
#: A Monday.
FIRST = "2026-03-02T09:00:00Z"
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
LOCKER = "Mara's locker combination is four seven two nine."
#: Asked on the last day in other words than it was told; what was told is among the first three.
QUESTIONS = {
    "Which city is Mara's home?": "Mara moved to Lisbon.",
    "What does Mara like to drink?": "Mara prefers coffee now.",
    "What food must Mara avoid?": "Mara is allergic to peanuts.",
    "Who is Mara's boss?": "Mara's manager is Petra.",
    "By when must Kestrel be finished?": "The Kestrel deadline is 27 March.",
    "Which provider serves Kestrel?": "Kestrel moved to Fly.",
    "When does the daily meeting begin?": "The standup starts at 10:00.",
    "Where can I look up the wifi password?": "The wifi password is stored in the kitchen drawer.",
    "Who did Mara eat with in a restaurant?": "Last Tuesday Mara had lunch with Tomas at Cantinho.",
    "Which rental contract did Mara sign?": "Yesterday Mara signed the lease for the flat in Rua do Almada.",
    "Why is Mara travelling to Norway?": "Next month Mara flies to Oslo for the wedding of Ingrid.",
    "Is the workplace quiet?": "I think the new office is too noisy.",
    "Did I get my teeth checked?": "I visited the dentist two days ago.",
    "Who looks after the plants?": "Ask Bruno to water the plants.",
    "What kind of music does Ingrid play?": "Ingrid plays the cello in a jazz quartet.",
    "What does housing cost each month?": "The rent is 950 euros a month.",
}


async def first_week(life: Assistant) -> None:
    """Facts about someone, told in several ways."""
    await life.call("create_bank", bank_id="default", name="Mara", mission="Help Mara.")
    await life.tell("Mara lives in Porto.")
    await life.tell("Mara prefers tea.")
    await life.tell("Mara is allergic to peanuts.", tags=["health"])
    await life.tell("Mara's manager is Ruben.")
    assert "Mara lives in Porto." in await life.ask("Where does Mara live?")
    await life.call(
        "create_mental_model",
        name="Home",
        mental_model_id="home",
        source_query="Where does Mara live?",
        trigger_refresh_after_consolidation=True,
    )

    await life.day(2)
    await life.tell("Yesterday Mara signed the lease for the flat in Rua do Almada.")
    await life.tell("The rent is 950 euros a month.")
    await life.tell("Kestrel is hosted on Heroku.", tags=["project:kestrel"])
    await life.tell("The Kestrel deadline is 20 March.", tags=["project:kestrel"])

    await life.day(3)
    await life.tell("I think the new office is too noisy.")
    await life.tell("I visited the dentist two days ago.")
    await life.tell("The wifi password is stored in the blue notebook.")

    await life.day(4)
    await life.tell("Last Tuesday Mara had lunch with Tomas at Cantinho.")
    await life.tell("Next month Mara flies to Oslo for the wedding of Ingrid.")
    await life.tell("Take the blue suitcase. Take the old camera. Ask Tomas to water the plants.", document_id="oslo")
    await life.day(5)

    times = {fact["text"]: fact.get("timestamp", "")[:10] for fact in (await life.call("list_memories"))["memories"]}
    home = await life.call("get_mental_model", mental_model_id="home")
    assert times["Yesterday Mara signed the lease for the flat in Rua do Almada."] == "2026-03-02"
    assert times["I visited the dentist two days ago."] == "2026-03-02"
    assert times["Last Tuesday Mara had lunch with Tomas at Cantinho."] == "2026-03-03"
    assert times["Next month Mara flies to Oslo for the wedding of Ingrid."] == "2026-04-01"
    assert await life.ask("How does the office sound?", types=["opinion"]) == ["I think the new office is too noisy."]
    assert await life.ask("What did I do?", types=["experience"]) == ["I visited the dentist two days ago."]
    assert "Porto" in home["content"] and not home["is_stale"]
    await counted(life, memories=16, documents=1, tags=2)


async def second_week(life: Assistant) -> None:
    """A secret, another bank, and what is told twice."""
    await life.day(8)
    told = await life.call("retain", content=f"The deploy token of Kestrel is {TOKEN}", tags=["project:kestrel"])
    assert told["redacted"]
    await life.call("create_bank", bank_id="clinic", name="Ines")
    await life.tell("The head nurse lives in Braga.", bank_id="clinic")
    await life.tell("The clinic prefers paper records.", bank_id="clinic")

    await life.day(9)
    await life.tell("mara is allergic to peanuts", tags=["health"])
    await life.tell(LOCKER)
    await life.tell("Ingrid plays the cello in a jazz quartet.")
    await life.day(10)
    await life.tell(LOCKER.lower())

    await life.day(11)
    allergies = await life.operation("memory.recall", query="allergic peanuts", tags=["health"])
    assert [(hit["memory"]["text"], hit["memory"]["proof"]) for hit in allergies["hits"]] == [
        ("Mara is allergic to peanuts.", 2)
    ]
    assert not any("Mara" in one for one in await life.ask("Where does Mara live?", bank_id="clinic"))
    assert not any("nurse" in one for one in await life.ask("Where does the head nurse live?"))
    await counted(life, memories=19, documents=1, tags=2)
    await counted(life, memories=2, documents=0, tags=0, bank_id="clinic")


async def third_week(life: Assistant) -> None:
    """Much changes, and the server restarts."""
    await life.day(15)
    await life.tell("Mara moved to Lisbon.")
    await life.tell("Mara prefers coffee now.")
    await life.tell("The standup starts at 9:30.")
    await life.restart()

    await life.day(16)
    await life.tell("Kestrel moved to Fly.", tags=["project:kestrel"])
    await life.tell("The Kestrel deadline is 27 March.", tags=["project:kestrel"])
    await life.tell("Mara's manager is Petra.")
    await life.tell("The standup starts at 10:00.")
    await life.tell("The wifi password is stored in the kitchen drawer.")
    await life.tell("Take the red suitcase. Ask Bruno to water the plants.", document_id="oslo")

    await life.day(17)
    home = await life.call("get_mental_model", mental_model_id="home")
    assert "Lisbon" in home["content"] and "Porto" not in home["content"]
    assert home["versions"] >= 2
    assert "camera" not in (await life.call("get_document", document_id="oslo"))["text"]
    await settled(life)
    await counted(life, memories=20, documents=1, tags=2)


async def settled(life: Assistant) -> None:
    """What rules cannot settle waits for a person."""
    [doubt] = (await life.operation("memory.conflicts"))["conflicts"]
    assert (doubt["older"]["text"], doubt["newer"]["text"]) == (
        "The wifi password is stored in the blue notebook.",
        "The wifi password is stored in the kitchen drawer.",
    )
    both = await life.ask("Where is the wifi password stored?")
    assert {doubt["older"]["text"], doubt["newer"]["text"]} <= set(both)

    life.at += 1
    await life.operation("memory.correct", id=doubt["older"]["id"], content="The blue notebook was thrown away.")

    assert await life.operation("memory.conflicts") == {"conflicts": []}
    assert doubt["older"]["text"] not in await life.ask("Where is the wifi password stored?")


async def fourth_week(life: Assistant) -> None:
    """Something is forgotten for good."""
    await life.day(22)
    [found] = (await life.call("list_memories", q="locker"))["memories"]
    receipt = await life.call("delete_memory", memory_id=found["id"])
    assert (receipt["status"], receipt["deleted_memories"]) == ("deleted", 2)
    for wording in (LOCKER, LOCKER.lower()):
        assert (await life.call("retain", content=wording))["status"] == "skipped"

    await life.day(23)
    assert "No memory" in await life.refusal("get_memory", memory_id=found["id"])
    for day in (None, 9, 10, 20):
        assert LOCKER not in await life.ask("locker combination", day)
    await counted(life, memories=19, documents=1, tags=2)


async def counted(life: Assistant, memories: int, documents: int, tags: int, **bank: Any) -> None:
    """Statistics say what lists show: what was told, and what consolidation saw in it."""
    stats = await life.call("get_bank_stats", **bank)
    listed = (await life.call("list_memories", **bank))["memories"]
    known = (await life.call("list_tags", **bank))["tags"]
    told = [fact["text"] for fact in listed if fact["context"] != "observation"]
    assert (len(told), stats["total_documents"], len(known)) == (memories, documents, tags), told
    assert (stats["total_nodes"], stats["total_tags"]) == (len(listed), len(known))
    assert sum(stats["nodes_by_fact_type"].values()) == len(listed)
    assert (await life.call("list_operations", status="failed", **bank))["operations"] == []


async def the_last_day(life: Assistant) -> None:
    """Questions in other words; old truths at old dates; nothing where nothing is known."""
    await life.day(30)
    missed = {
        question: found
        for question, answer in QUESTIONS.items()
        if answer not in (found := await life.ask(question))[:3]
    }
    assert not missed
    assert "Mara lives in Porto." in await life.ask("Where does Mara live?", 5)
    assert "Mara lives in Porto." not in await life.ask("Where does Mara live?")
    assert "Mara prefers tea." in await life.ask("What does Mara prefer to drink?", 14)
    assert "Mara's manager is Ruben." in (await life.ask("Who is Mara's manager?", 15))[:1]
    assert "Mara's manager is Petra." in (await life.ask("Who is Mara's manager?", 16))[:1]
    assert "The Kestrel deadline is 20 March." in (await life.ask("When is the Kestrel deadline?", 10))[:1]
    assert "Ask Tomas to water the plants." in await life.ask("Who waters the plants?", 10)
    assert await life.ask("Where does Mara live?", -3) == []
    told = [await life.ask("What is known of Mara?", max_tokens=most) for most in (20, 90, 200, 1_000)]
    assert [len(one) for one in told[:2]] == [0, 1] and len(told[2]) < len(told[3])
    assert await life.ask("What is the boiling point of tungsten?") == []


async def with_a_model(life: Assistant) -> None:
    """A language model answers by the rules that were set."""
    await life.call("create_directive", name="Tone", content="Answer in one short sentence.", priority=1)
    await life.call("create_directive", name="Care", content="Always mention allergies.", priority=9)
    by_rules = await life.call("reflect", query="What may Mara eat?")
    assert by_rules["made_by"] == "rules" and "peanuts" in by_rules["text"]
    with serving() as script:
        await life.restart(KEEPSAKE_LLM_BASE_URL=script.url, KEEPSAKE_LLM_MODEL=MODEL)
        script.will("No peanuts: Mara is allergic to peanuts [1].")

        told = await life.call("reflect", query="What may Mara eat?")

        prompt = script.prompt()
        assert told["made_by"] == MODEL and told["sources"]
        assert 0 < prompt.index("Always mention allergies.") < prompt.index("Answer in one short sentence.")
        assert "Mara is allergic to peanuts." in prompt and TOKEN not in prompt and "Braga" not in prompt


async def test_a_month_of_an_assistants_memory(database: Database, tmp_path: Path) -> None:
    async with living(database, tmp_path, FIRST) as life:
        await first_week(life)
        await second_week(life)
        await third_week(life)
        await fourth_week(life)
        await the_last_day(life)
        await with_a_model(life)
        rows = await stored(database)

    assert "Mara moved to Lisbon." in rows
    assert TOKEN not in rows
    assert "four seven two nine" not in rows
    for file in tmp_path.rglob("*.db*"):
        assert TOKEN.encode() not in file.read_bytes()
