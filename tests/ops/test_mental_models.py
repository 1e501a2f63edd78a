"""Mental models: their life, their text by rules and by a model, their evidence, on both stores."""

import json
from typing import Any

import pytest

from keepsake.context import App
from keepsake.core import text
from keepsake.core.errors import BadInput, Conflict, NotFound
from keepsake.store import banks, mental_models
from tests.llm_server import MODEL, Fails, Script

pytestmark = pytest.mark.anyio
TEAM = ("Alice works on the search team.", "Bob works on the billing team.")
QUERY = "Who works on which team?"


def document(*sentences: tuple[str, list[int]], title: str = "Team") -> str:
    told = [{"text": text, "evidence": evidence} for text, evidence in sentences]
    return json.dumps({"sections": [{"title": title, "sentences": told}]})


async def retained(call: Any, *facts: str) -> list[str]:
    return [(await call("retain", content=fact))["memory_id"] for fact in facts]


async def created(call: Any, **more: Any) -> dict[str, Any]:
    given = {"name": "Team Directory", "source_query": QUERY} | more
    made: dict[str, Any] = await call("create_mental_model", **given)
    return made


async def test_a_model_is_made_in_the_background_with_evidence_for_every_sentence(call: Any, sharpened: Any) -> None:
    ids = await retained(call, *TEAM)

    made = await created(call, tags=["team"])
    before = await call("get_mental_model", mental_model_id="team-directory")
    await sharpened()
    after = await call("get_mental_model", mental_model_id="team-directory")

    assert made["mental_model_id"] == "team-directory"
    assert (await call("get_operation", operation_id=made["operation_id"]))["status"] == "completed"
    assert (before["content"], before["versions"], before["is_stale"]) == ("", 0, True)
    assert sorted(after["content"].splitlines()) == [f"- {fact}" for fact in TEAM]
    assert {one["sentence"]: one["memory_ids"] for one in after["based_on"]} == {
        TEAM[0]: [ids[0]],
        TEAM[1]: [ids[1]],
    }
    assert (after["made_by"], after["versions"], after["is_stale"], after["tags"]) == ("rules", 1, False, ["team"])


async def test_a_new_memory_makes_it_stale_and_a_refresh_adds_a_version(call: Any, sharpened: Any) -> None:
    await retained(call, TEAM[0])
    await created(call)
    await sharpened()

    await retained(call, TEAM[1])
    stale = await call("get_mental_model", mental_model_id="team-directory")
    asked = await call("refresh_mental_model", mental_model_id="team-directory")
    await sharpened()
    fresh = await call("get_mental_model", mental_model_id="team-directory")

    assert (stale["is_stale"], fresh["is_stale"], fresh["versions"]) == (True, False, 2)
    assert TEAM[1] in fresh["content"] and TEAM[1] not in stale["content"]
    assert asked["operation_id"]


async def test_refreshing_without_a_change_makes_no_version_and_asks_no_model(
    think: Any, thought: Any, script: Script
) -> None:
    await retained(think, TEAM[0])
    script.will(document((TEAM[0], [1])))
    await created(think)
    await thought()

    await think("refresh_mental_model", mental_model_id="team-directory")
    await thought()
    await retained(think, "The coffee machine is broken.")
    await think("refresh_mental_model", mental_model_id="team-directory")
    await thought()

    shown = await think("get_mental_model", mental_model_id="team-directory")
    documents = [one for one in script.asked if "observations" not in json.dumps(one)]
    assert (shown["versions"], len(documents), shown["is_stale"]) == (1, 1, False)


async def test_the_language_models_document_names_its_evidence(think: Any, thought: Any, script: Script) -> None:
    ids = await retained(think, TEAM[0])
    script.will(document(("Alice is on the search team.", [1]), ("Alice was born in 1990.", [1])))

    await created(think)
    await thought()

    shown = await think("get_mental_model", mental_model_id="team-directory")
    assert shown["content"] == "## Team\n- Alice is on the search team."
    assert shown["based_on"] == [{"sentence": "Alice is on the search team.", "memory_ids": ids}]
    assert shown["made_by"] == MODEL


@pytest.mark.parametrize(
    "lines",
    [
        (document(("Alice is on the search team.", [9])), document(("Alice is on the search team.", []))),
        ("not json", '{"sections": 5}'),
        (Fails(500), Fails(500), Fails(500)),
    ],
)
async def test_a_model_that_lies_or_fails_leaves_the_first_text_to_rules(
    think: Any, thought: Any, script: Script, lines: Any
) -> None:
    await retained(think, TEAM[0])
    script.will(*lines)

    await created(think)
    await thought()

    shown = await think("get_mental_model", mental_model_id="team-directory")
    assert (shown["content"], shown["made_by"]) == (f"- {TEAM[0]}", "rules")


async def test_a_text_made_by_a_model_is_not_replaced_because_the_model_is_away(
    think: Any, thought: Any, script: Script
) -> None:
    await retained(think, TEAM[0])
    script.will(document(("Alice is on the search team.", [1])))
    await created(think)
    await thought()

    await retained(think, TEAM[1])
    asked = await think("refresh_mental_model", mental_model_id="team-directory")
    await thought()

    shown = await think("get_mental_model", mental_model_id="team-directory")
    operation = await think("get_operation", operation_id=asked["operation_id"])
    assert (shown["made_by"], shown["versions"], shown["is_stale"]) == (MODEL, 1, True)
    assert (operation["status"], operation["error"][:12]) == ("pending", "unavailable:")


async def test_the_text_keeps_to_max_tokens(call: Any, sharpened: Any) -> None:
    await retained(call, *(f"Person{n} works on team number {n} in the building." for n in range(25)))

    await created(call, max_tokens=64)
    await sharpened()

    shown = await call("get_mental_model", mental_model_id="team-directory")
    assert 0 < text.cost(shown["content"]) <= 64
    assert len(shown["based_on"]) == len(shown["content"].splitlines())


async def test_an_id_is_made_from_the_name_and_never_taken_twice(call: Any) -> None:
    first, second = await created(call), await created(call)
    bare = await created(call, name="日本")

    with pytest.raises(Conflict, match="There is a mental model 'team-directory' already"):
        await created(call, mental_model_id="team-directory")

    ids = [one["mental_model_id"] for one in (first, second, bare)]
    assert ids == ["team-directory", "team-directory-2", "model"]
    assert (await created(call, mental_model_id="own-id-1"))["mental_model_id"] == "own-id-1"


@pytest.mark.parametrize("id", ["Team", "a_b", "-a", "a--b", "a b", "", "ä", "x" * 101])
async def test_an_id_that_is_none_is_refused_and_nothing_is_made(call: Any, id: str) -> None:
    with pytest.raises(BadInput, match="mental_model_id"):
        await created(call, mental_model_id=id)

    assert await call("list_mental_models") == {"mental_models": []}


async def test_models_are_listed_by_tag_without_their_text(call: Any, sharpened: Any) -> None:
    await retained(call, TEAM[0])
    await created(call, mental_model_id="b", tags=["team", "people"])
    await created(call, mental_model_id="a")
    await sharpened()

    every = (await call("list_mental_models"))["mental_models"]
    tagged = (await call("list_mental_models", tags=["people", "other"]))["mental_models"]

    assert [one["mental_model_id"] for one in every] == ["a", "b"]
    assert [one["mental_model_id"] for one in tagged] == ["b"]
    assert all("content" not in one for one in every)


async def test_what_is_left_out_of_an_update_stays(call: Any, sharpened: Any) -> None:
    await retained(call, TEAM[0])
    await created(call, tags=["team"])
    await sharpened()

    renamed = await call("update_mental_model", mental_model_id="team-directory", name="People", tags=[])
    asks_otherwise = await call(
        "update_mental_model",
        mental_model_id="team-directory",
        source_query="Who is on search?",
        max_tokens=100,
        trigger_refresh_after_consolidation=True,
    )

    assert (renamed["name"], renamed["source_query"], renamed["is_stale"]) == ("People", QUERY, False)
    assert "tags" not in renamed
    assert (asks_otherwise["name"], asks_otherwise["source_query"], asks_otherwise["is_stale"]) == (
        "People",
        "Who is on search?",
        True,
    )
    assert (asks_otherwise["max_tokens"], asks_otherwise["trigger_refresh_after_consolidation"]) == (100, True)
    with pytest.raises(BadInput, match="Nothing to change"):
        await call("update_mental_model", mental_model_id="team-directory")


async def test_a_deleted_model_is_gone_with_its_versions_and_leaves_a_receipt(
    call: Any, sharpened: Any, app: App
) -> None:
    await retained(call, TEAM[0])
    await created(call)
    await sharpened()

    gone = await call("delete_mental_model", mental_model_id="team-directory")

    assert (gone["status"], bool(gone["receipt_id"])) == ("deleted", True)
    for tool in ("get_mental_model", "refresh_mental_model", "delete_mental_model"):
        with pytest.raises(NotFound, match="No mental model 'team-directory' in this bank"):
            await call(tool, mental_model_id="team-directory")
    left = await app.store.read(1, lambda tx: tx.all("SELECT model FROM model_versions"))
    assert left == []


async def test_another_banks_model_is_unknown(call: Any) -> None:
    await call("create_bank", bank_id="other")
    await created(call, bank_id="other")

    with pytest.raises(NotFound, match="No mental model 'team-directory' in this bank"):
        await call("get_mental_model", mental_model_id="team-directory")
    assert await call("list_mental_models") == {"mental_models": []}


async def forget(app: App, *ids: str) -> list[str]:
    async def body(tx: Any) -> list[str]:
        bank = await banks.named(tx, 1, "default")
        assert bank is not None
        return await mental_models.forgotten(tx, app.store, 1, bank.id, [int(id) for id in ids], app.now())

    return await app.store.write(1, body)


async def test_forgetting_takes_sentences_out_of_every_version_and_has_the_model_made_anew(
    call: Any, sharpened: Any, app: App
) -> None:
    ids = await retained(call, TEAM[0])
    await created(call)
    await sharpened()
    ids += await retained(call, TEAM[1])
    await call("refresh_mental_model", mental_model_id="team-directory")
    await sharpened()

    touched = await forget(app, ids[0])

    shown = await call("get_mental_model", mental_model_id="team-directory")
    kept = await app.store.read(1, lambda tx: tx.all("SELECT text, evidence FROM model_versions"))
    assert (touched, shown["content"], shown["is_stale"]) == (["team-directory"], f"- {TEAM[1]}", True)
    assert len(kept) == 2 and "Alice" not in json.dumps([dict(row) for row in kept])
    waiting = await call("list_operations", status="pending")
    assert [one["type"] for one in waiting["operations"]] == ["model"]


async def test_forgetting_something_else_touches_no_model(call: Any, sharpened: Any, app: App) -> None:
    await retained(call, TEAM[0])
    await created(call)
    await sharpened()

    assert await forget(app, "12345") == []
    assert (await call("get_mental_model", mental_model_id="team-directory"))["is_stale"] is False


async def test_a_sentence_that_shares_evidence_with_a_forgotten_memory_goes_with_its_title(
    think: Any, thought: Any, script: Script, thinking: App
) -> None:
    ids = await retained(think, *TEAM)
    both, one = "Alice and Bob work on search and billing.", "Bob works on billing."
    script.will(lambda request: document((both, [1, 2]), (one, [bobs(request)]), title="Alice and Bob"))
    await created(think)
    await thought()

    await forget(thinking, ids[0])

    shown = await think("get_mental_model", mental_model_id="team-directory")
    assert (shown["content"], shown["based_on"]) == (f"- {one}", [{"sentence": one, "memory_ids": [ids[1]]}])


def bobs(request: dict[str, Any]) -> int:
    """The number under which Bob's memory was given."""
    lines = request["messages"][1]["content"].splitlines()[2:4]
    return next(told["n"] for told in map(json.loads, lines) if "Bob" in told["text"])
