"""What finds a memory besides words and meaning, and how results are ordered, on both stores."""

from typing import Any

import pytest

pytestmark = pytest.mark.anyio


async def told(call: Any, query: str, **given: Any) -> list[str]:
    return [fact["text"] for fact in (await call("recall", query=query, **given))["results"]]


async def test_an_entity_leads_to_a_memory_that_shares_neither_word_nor_meaning(call: Any, sharpened: Any) -> None:
    await call("retain", content="The Falcon project is led by Marta Quispe.")
    await call("retain", content="Marta Quispe cannot eat walnuts.")
    await call("retain", content="Old bicycles rust in the shed.")
    await sharpened()

    found = await told(call, "Who leads the Falcon project?")

    assert found == ["The Falcon project is led by Marta Quispe.", "Marta Quispe cannot eat walnuts."]


async def test_an_entity_that_everything_names_leads_nowhere(call: Any, sharpened: Any) -> None:
    await call("retain", content="The Falcon project is led by Marta Quispe.")
    for thing in ("walnuts", "lamps", "maps", "kites", "spoons", "ropes", "jars", "bells", "nails", "coins", "dice"):
        await call("retain", content=f"Marta Quispe sold {thing} at the market.")
    await sharpened()

    found = await told(call, "Who leads the Falcon project?", budget="low")

    assert not any("coins" in text for text in found[1:])


async def test_a_time_brings_what_was_said_then_without_a_word_in_common(call: Any, sharpened: Any) -> None:
    await call("retain", content="The boiler was repaired.", timestamp="2024-03-12T10:00:00Z")
    await call("retain", content="Grandmother baked a plum cake.", timestamp="2022-07-01T10:00:00Z")
    await sharpened()

    found = await told(call, "Anything from March 2024?")

    assert found == ["The boiler was repaired."]


async def test_a_time_keeps_to_the_tags_that_were_asked_for(call: Any, sharpened: Any) -> None:
    await call("retain", content="The boiler was repaired.", timestamp="2024-03-12T10:00:00Z", tags=["house"])
    await call("retain", content="The invoice was paid.", timestamp="2024-03-13T10:00:00Z", tags=["office"])
    await sharpened()

    assert await told(call, "Anything from March 2024?", tags=["house"]) == ["The boiler was repaired."]


async def test_repetitions_do_not_keep_something_else_from_the_top(call: Any, sharpened: Any) -> None:
    for number in range(12):
        await call("retain", content=f"The nightly backup job of the shop failed with exit code {number + 40}.")
    other = "Backup of the shop: restoring takes an hour and needs the key from the safe."
    await call("retain", content=other)
    await sharpened()

    found = await told(call, "nightly backup job of the shop failed")

    assert other in found[:5]


async def test_an_identifier_is_found_as_it_is_written(call: Any, sharpened: Any) -> None:
    for version in ("2.10.3", "3.2.10", "10.3.2", "2.3.10"):
        await call("retain", content=f"Release {version} drops the old importer.")
    await sharpened()

    assert (await told(call, "what changed in 3.2.10?"))[0] == "Release 3.2.10 drops the old importer."
