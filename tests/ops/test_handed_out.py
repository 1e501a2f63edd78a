"""Text that Keepsake handed out is known when it comes back, and counts for nothing; on both stores."""

from dataclasses import replace
from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core import echo
from keepsake.core.clock import DAY
from keepsake.core.principal import Principal, local_owner
from keepsake.ops.handed_out import SKIPPED
from keepsake.store.engine import Tx
from keepsake.tools import catalog
from tests.ops.conftest import Call, calling

pytestmark = pytest.mark.anyio
FACT = "Deploys happen on Fridays."
OTHER = "The billing service moved to Frankfurt."


def calling_as(app: App, name: str) -> Call:
    """Call tools as another principal of the same org."""
    door = dispatch.Door(catalog.DIALECTS["hindsight"])
    owner = local_owner()
    who = Principal(org=owner.org, name=name, scopes=owner.scopes, banks=owner.banks)

    async def called(tool: str, /, **arguments: Any) -> dict[str, Any]:
        result = await dispatch.call_tool(app.ctx(who), door, tool, arguments)
        return result.model_dump(mode="json", exclude_none=True)

    return called


async def proofs(app: App) -> dict[str, int]:
    """How often each live memory was confirmed."""
    sql = "SELECT text, proof FROM memories WHERE org = 1 AND state = 'live'"
    rows = await app.store.read(1, lambda tx: tx.all(sql))
    return {row["text"]: row["proof"] for row in rows}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("recall", {"query": "When do deploys happen?"}), ("list_memories", {})],
)
async def test_what_was_handed_out_is_skipped_and_proves_nothing(
    call: Any, app: App, sharpened: Any, tool: str, arguments: dict[str, str]
) -> None:
    await call("retain", content=FACT)
    await sharpened()
    await call(tool, **arguments)

    again = await call("retain", content=f"- {FACT} [1]")
    await sharpened()

    assert again == {"status": "skipped", "bank_id": "default", "note": SKIPPED}
    assert await proofs(app) == {FACT: 1}


async def test_one_memory_got_by_its_id_is_known(call: Any) -> None:
    stored = await call("retain", content=FACT)
    await call("get_memory", memory_id=stored["memory_id"])

    assert (await call("retain", content=FACT))["status"] == "skipped"


async def test_what_was_not_handed_out_counts_as_proof(call: Any, app: App, sharpened: Any) -> None:
    await call("retain", content=FACT)
    await sharpened()

    again = await call("retain", content=FACT)
    await sharpened()

    assert again["status"] == "stored"
    assert await proofs(app) == {FACT: 2}


async def test_saying_it_in_other_words_or_by_someone_else_counts_as_proof(call: Any, app: App, sharpened: Any) -> None:
    await call("retain", content="Deploys happen on Fridays at noon.")
    await sharpened()
    await call("recall", query="When do deploys happen?")

    own = await call("retain", content="The deploys happen on Fridays at noon.")
    theirs = await calling_as(app, "alice")("retain", content="Deploys happen on Fridays at noon.")
    await sharpened()

    assert (own["status"], theirs["status"]) == ("stored", "stored")
    assert await proofs(app) == {"Deploys happen on Fridays at noon.": 3}


async def test_a_reflection_brought_back_is_skipped(call: Any, app: App) -> None:
    await call("retain", content=FACT)
    await call("retain", content="Deploys are announced in the release channel.")
    made = await call("reflect", query="How do deploys happen?")

    again = await call("retain", content=made["text"])
    part = await call("retain", content=made["text"].splitlines()[0])

    assert made["text"].count("\n") == 1
    assert (again["status"], part["status"]) == ("skipped", "skipped")


async def test_a_mental_model_brought_back_is_skipped(call: Any, sharpened: Any) -> None:
    await call("retain", content=FACT)
    await call("create_mental_model", name="Deploys", source_query="When do deploys happen?")
    await sharpened()
    made = await call("get_mental_model", mental_model_id="deploys")

    assert FACT in made["content"]
    assert (await call("retain", content=made["content"]))["status"] == "skipped"


async def test_of_a_text_that_is_partly_new_only_the_new_part_becomes_a_fact(
    call: Any, app: App, sharpened: Any
) -> None:
    await call("retain", content=FACT)
    await sharpened()
    await call("recall", query="When do deploys happen?")

    again = await call("retain", content=f"{FACT} {OTHER}")
    await sharpened()

    assert again["status"] == "stored"
    assert await proofs(app) == {FACT: 1, OTHER: 1}


async def test_a_truth_that_was_replaced_may_come_back(call: Any, app: App, sharpened: Any) -> None:
    await call("retain", content="The office is in Berlin.")
    await sharpened()
    await call("recall", query="Where is the office?")
    await call("retain", content="The office is in Lisbon.")
    await sharpened()

    again = await call("retain", content="The office is in Berlin.")
    await sharpened()

    assert again["status"] == "stored"
    assert (await call("recall", query="Where is the office?"))["results"][0]["text"] == ("The office is in Berlin.")


@pytest.mark.parametrize(
    "more", [{"document_id": "handbook"}, {"tags": ["team"]}, {"timestamp": "2026-03-01"}, {"metadata": {"by": "Nora"}}]
)
async def test_what_says_more_than_the_memory_is_stored(call: Any, more: dict[str, Any]) -> None:
    await call("retain", content=FACT)
    await call("recall", query="When do deploys happen?")

    assert (await call("retain", content=FACT, **more))["status"] == "stored"


async def test_another_bank_may_be_given_what_one_bank_said(call: Any) -> None:
    await call("create_bank", bank_id="other")
    await call("retain", content=FACT)
    made = await call("reflect", query="When do deploys happen?")
    await call("recall", query="When do deploys happen?")

    assert (await call("retain", content=FACT, bank_id="other"))["status"] == "stored"
    assert (await call("retain", content=made["text"], bank_id="other"))["status"] == "stored"


async def test_after_a_week_nobody_remembers_having_handed_it_out(app: App, call: Any) -> None:
    await call("retain", content=FACT)
    await call("recall", query="When do deploys happen?")
    await app.later.done()

    later = calling(replace(app, now=lambda: app.now() + 7 * DAY + 1))

    assert (await later("retain", content=FACT))["status"] == "stored"


async def test_only_keyed_hashes_are_kept_and_each_once(app: App, call: Any) -> None:
    await call("retain", content=FACT)
    for _ in range(3):
        await call("recall", query="When do deploys happen?")
    await app.later.done()

    async def body(tx: Tx) -> list[str]:
        return [row["digest"] for row in await tx.all("SELECT digest FROM handed_out")]

    (digest,) = await app.store.engine.volatile(body)
    assert digest == app.store.digest("\0".join(("1", local_owner().name, "", echo.plain(FACT))))
