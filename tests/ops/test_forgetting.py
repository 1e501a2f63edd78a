"""What goes with a forgotten memory: insights and sentences of mental models that rest on it; on both stores."""

from typing import Any

import pytest

from keepsake.context import App
from keepsake.store.engine import Tx

pytestmark = pytest.mark.anyio


async def test_a_mental_model_no_longer_says_what_was_forgotten(call: Any, sharpened: Any) -> None:
    await call("retain", content="The backup key is kept in the blue safe.")
    await call("retain", content="Backups run every night at two.")
    await sharpened()
    await call("create_mental_model", name="Backups", source_query="How do backups work?")
    await sharpened()
    found = await call("recall", query="Where is the backup key kept?")
    secret = next(fact for fact in found["results"] if "blue safe" in fact["text"])
    assert "blue safe" in (await call("get_mental_model", mental_model_id="backups"))["content"]

    await call("delete_memory", memory_id=secret["id"])

    assert "blue safe" not in (await call("get_mental_model", mental_model_id="backups"))["content"]
    await sharpened()
    assert "blue safe" not in (await call("get_mental_model", mental_model_id="backups"))["content"]


@pytest.mark.parametrize("named", ["first", "second"])
async def test_what_was_told_twice_is_forgotten_in_every_wording(
    call: Any, app: App, sharpened: Any, named: str
) -> None:
    told = {"first": "The safe opens with seven left turns.", "second": "the safe opens with seven left turns"}
    ids = {}
    for wording, content in told.items():
        ids[wording] = (await call("retain", content=content))["memory_id"]
        await sharpened()

    deleted = await call("delete_memory", memory_id=ids[named])
    again = [(await call("retain", content=content))["status"] for content in told.values()]
    await sharpened()

    rows = await app.store.read(1, lambda tx: tx.all("SELECT text FROM memories"))
    assert (deleted["deleted_memories"], rows, again) == (2, [], ["skipped", "skipped"])


async def test_a_forgotten_fact_does_not_come_back_in_a_longer_text(call: Any, app: App, sharpened: Any) -> None:
    note = "Bruno has a spare key. The alarm code is nine nine one two. The bins go out on Monday."
    await call("retain", content=note)
    await sharpened()
    found = await call("recall", query="What is the alarm code?")
    await call("delete_memory", memory_id=found["results"][0]["id"])

    await call("retain", content=note, document_id="house")
    at_once = await app.store.read(1, lambda tx: tx.all("SELECT text FROM memories"))
    await sharpened()

    rows = await app.store.read(1, lambda tx: tx.all("SELECT text FROM memories UNION ALL SELECT text FROM sources"))
    assert "nine nine" not in str([*at_once, *rows])
    assert "Bruno has a spare key." in str(rows)


async def test_what_was_superseded_does_not_come_back_when_the_newer_is_forgotten(
    call: Any, app: App, sharpened: Any
) -> None:
    old = await call("retain", content="Mara lives in Berlin.")
    await sharpened()
    new = await call("retain", content="Mara lives in Lisbon.")
    await sharpened()

    await call("delete_memory", memory_id=new["memory_id"])

    rows = await app.store.read(1, lambda tx: tx.all("SELECT id, superseded_at, superseded_by FROM memories"))
    assert [(str(row["id"]), row["superseded_at"] is not None, row["superseded_by"]) for row in rows] == [
        (old["memory_id"], True, None)
    ]
    assert (await call("recall", query="Where does Mara live?"))["results"] == []


async def test_deleting_a_bank_leaves_nothing_of_it_but_audit_and_receipt(call: Any, app: App, sharpened: Any) -> None:
    await call("create_bank", bank_id="gone")
    await call(
        "retain", content="Marta leads the platform team. Deploys happen on Fridays.", bank_id="gone", tags=["t"]
    )
    await call("create_directive", name="Tone", content="Be brief.", bank_id="gone")
    await call("create_mental_model", name="Team", source_query="Who leads?", bank_id="gone")
    await sharpened()

    await call("delete_bank", bank_id="gone")
    await sharpened()

    async def left(tx: Tx) -> dict[str, int]:
        tables = (
            "banks bank_names memories memory_tags entities memory_entities directives mental_models model_versions"
        )
        counts = {}
        for table in f"{tables} search_docs vectors terms jobs conflicts".split():
            row = await tx.one(f"SELECT count(*) AS held FROM {table} WHERE org = 1")
            counts[table] = int(row["held"]) if row else -1
        return {table: held for table, held in counts.items() if held}

    assert await app.store.read(1, left) == {}
