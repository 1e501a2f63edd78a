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
