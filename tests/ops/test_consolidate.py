"""Consolidation: insights with their evidence, once, never in a loop, by rules and by a model; on both stores."""

import json
from typing import Any

import pytest

from keepsake.context import App
from keepsake.core import clock
from keepsake.core.principal import local_owner
from keepsake.store import banks, insights, jobs, memories, usage
from tests.llm_server import MODEL, Fails, Script

pytestmark = pytest.mark.anyio
TEA = (
    "Alice drinks green tea in the morning.",
    "Alice ordered green tea at the cafe.",
    "Alice bought green tea for the office.",
)
OTHER = "The staging cluster was moved to eu-west-1."


def observed(*observations: tuple[str, list[int], int | None]) -> str:
    told = [{"text": text, "evidence": evidence, "updates": updates} for text, evidence, updates in observations]
    return json.dumps({"observations": told})


async def retained(call: Any, *facts: str, **more: Any) -> list[int]:
    return [int((await call("retain", content=fact, **more))["memory_id"]) for fact in facts]


async def wanted(app: App) -> int:
    """Ask for a consolidation of the default bank."""

    async def body(tx: Any) -> int:
        bank = await banks.named(tx, 1, "default")
        assert bank is not None
        await jobs.wanted(tx, app.store, 1, bank.id, insights.JOB, app.now())
        return bank.id

    return await app.store.write(1, body)


async def found(app: App) -> list[tuple[memories.Memory, set[int]]]:
    """The insights that hold, with their evidence."""

    async def body(tx: Any) -> list[tuple[memories.Memory, set[int]]]:
        bank = await banks.named(tx, 1, "default")
        assert bank is not None
        every = await memories.fetched(tx, 1, bank.id, await memories.of_types(tx, 1, bank.id, ()))
        rests = await insights.resting_on(tx, 1, bank.id, list(every))
        held = [one for one in every.values() if one.kind == "insight" and one.superseded_at is None]
        return [(one, rests[one.id]) for one in held]

    return await app.store.read(1, body)


async def test_three_memories_that_belong_together_become_one_insight(call: Any, sharpened: Any, app: App) -> None:
    ids = await retained(call, *TEA)
    await retained(call, OTHER)

    await wanted(app)
    await sharpened()

    ((insight, evidence),) = await found(app)
    assert evidence == set(ids)
    assert insight.text.startswith("Alice: ") and all(fact in insight.text for fact in TEA)
    assert (insight.author, insight.proof, insight.category) == ("rules", 3, "observation")
    assert str(insight.id) in [fact["id"] for fact in (await call("recall", query="Alice green tea"))["results"]]


async def test_two_memories_are_not_enough(call: Any, sharpened: Any, app: App) -> None:
    await retained(call, *TEA[:2], OTHER)

    await wanted(app)
    await sharpened()

    assert await found(app) == []


async def test_a_second_run_without_a_change_does_nothing(call: Any, sharpened: Any, app: App) -> None:
    await retained(call, *TEA)
    await wanted(app)
    await sharpened()
    before = await found(app)

    await wanted(app)
    await sharpened()

    assert await found(app) == before


async def test_a_run_after_the_job_was_cleared_away_goes_on_where_the_last_one_ended(
    think: Any, thought: Any, script: Script, thinking: App
) -> None:
    await retained(think, *TEA)
    script.will(observed(("Alice likes green tea.", [1, 2, 3], None)))
    await wanted(thinking)
    await thought()
    later = thinking.now() + 8 * clock.DAY
    assert await thinking.store.engine.claim(lambda tx: jobs.prune(tx, later)) > 0

    await wanted(thinking)
    await thought()

    assert len(script.asked) == 1


async def test_a_fourth_memory_renews_the_insight_and_keeps_the_old_one_as_of_its_time(
    call: Any, sharpened: Any, app: App
) -> None:
    ids = await retained(call, *TEA)
    await wanted(app)
    await sharpened()
    ((old, _),) = await found(app)

    ids += await retained(call, "Alice spilled green tea on the keyboard.")
    await wanted(app)
    await sharpened()

    ((new, evidence),) = await found(app)
    assert (evidence, new.id != old.id) == (set(ids), True)


async def test_an_insight_carries_only_the_tags_that_all_its_evidence_has(call: Any, sharpened: Any, app: App) -> None:
    await retained(call, *TEA[:2], tags=["home", "alice"])
    await retained(call, TEA[2], tags=["alice", "work"])

    await wanted(app)
    await sharpened()

    ((insight, _),) = await found(app)
    assert insight.tags == ("alice",)


async def test_models_with_the_trigger_are_refreshed_and_no_others(call: Any, sharpened: Any, app: App) -> None:
    for id, follows in (("follows", True), ("stays", False)):
        await call(
            "create_mental_model",
            name=id,
            source_query="What does Alice drink?",
            trigger_refresh_after_consolidation=follows,
        )
    await sharpened()

    await retained(call, *TEA)
    await wanted(app)
    await sharpened()

    follows, stays = [await call("get_mental_model", mental_model_id=id) for id in ("follows", "stays")]
    assert "green tea" in follows["content"]
    assert stays["content"] == ""


async def test_a_language_model_observes_and_is_asked_once_for_what_is_new(
    think: Any, thought: Any, script: Script, thinking: App
) -> None:
    ids = await retained(think, *TEA)
    script.will(observed(("Alice likes green tea.", [1, 2, 3], None), ("Alice is 40 years old.", [1, 2], None)))

    await wanted(thinking)
    await thought()
    await wanted(thinking)
    await thought()

    ((insight, evidence),) = await found(thinking)
    assert (insight.text, insight.author, evidence) == ("Alice likes green tea.", MODEL, set(ids))
    assert len(script.asked) == 1
    rows = await thinking.store.read(1, lambda tx: usage.recorded(tx, 1, 0))
    assert [(row.principal, row.operation) for row in rows] == [("background", "memory.consolidate")]


async def test_a_language_model_may_renew_an_observation(
    think: Any, thought: Any, script: Script, thinking: App
) -> None:
    await retained(think, *TEA)
    script.will(observed(("Alice likes green tea.", [1, 2, 3], None)))
    await wanted(thinking)
    await thought()

    await retained(think, "Alice spilled green tea on the keyboard.")
    script.will(observed(("Alice likes green tea and spilled it on the keyboard.", [1, 2], 1)))
    await wanted(thinking)
    await thought()

    ((insight, evidence),) = await found(thinking)
    assert insight.text == "Alice likes green tea and spilled it on the keyboard."
    assert len(evidence) == 2


@pytest.mark.parametrize(
    "lines",
    [
        (observed(("Alice likes tea.", [1, 99], None)), observed(("Alice likes tea.", [1, 2], 7))),
        ("nonsense", '{"observations": [{}]}'),
        (Fails(500), Fails(500), Fails(500)),
    ],
)
async def test_a_model_that_lies_or_fails_is_replaced_by_rules(
    think: Any, thought: Any, script: Script, thinking: App, lines: Any
) -> None:
    await retained(think, *TEA)
    script.will(*lines)

    await wanted(thinking)
    await thought()

    ((insight, _),) = await found(thinking)
    assert insight.author == "rules"


async def test_insights_are_found_by_what_they_rest_on(call: Any, sharpened: Any, app: App) -> None:
    ids = await retained(call, *TEA)
    bank = await wanted(app)
    await sharpened()
    ((insight, _),) = await found(app)

    rests = await app.store.read(1, lambda tx: insights.resting_on(tx, 1, bank, ids[:1]))

    assert rests == {insight.id: set(ids)}
    assert local_owner().name != insight.author
