"""Chats: what is kept of conversations with `ask`, follow-up questions, and what forgetting takes away; both stores."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.errors import BadInput, Forbidden, NotFound
from keepsake.core.principal import local_owner
from keepsake.store import chats
from keepsake.store.engine import Tx
from tests.ops.asking import repository, synced, ticket

pytestmark = pytest.mark.anyio


async def run(app: App, operation: str, /, **given: Any) -> dict[str, Any]:
    made = await dispatch.call(app.ctx(local_owner()), operation, given)
    return made.model_dump(mode="json", exclude_none=True)


async def told(app: App) -> list[int]:
    """Rows of each table."""

    async def body(tx: Tx) -> list[int]:
        tables = ("chats", "chat_messages", "chat_evidence")
        counts = [await tx.one(f"SELECT count(*) AS held FROM {table}") for table in tables]
        return [int(row["held"]) for row in counts if row]

    return await app.store.read(1, body)


async def test_a_follow_up_is_read_after_what_was_asked_before(app: App, tmp_path: Path) -> None:
    await synced(app, "api", repository(tmp_path / "api"))
    bare = await run(app, "memory.ask", bank="api", question="And why?")

    first = await run(app, "memory.ask", bank="api", question="When was `reserve` introduced?", keep=True)
    again = await run(app, "memory.ask", bank="api", question="And why?", chat_id=first["chat_id"])

    assert "chat_id" not in bare and "Two callers" not in bare["text"]
    assert "Two callers could spend the same tokens" in again["text"]
    assert again["chat_id"] == first["chat_id"]
    kept = await run(app, "chat.get", bank="api", id=first["chat_id"])
    assert [(one["n"], one["role"], one["text"]) for one in kept["said"]] == [
        (1, "user", "When was `reserve` introduced?"),
        (2, "assistant", first["text"]),
        (3, "user", "And why?"),
        (4, "assistant", again["text"]),
    ]
    assert kept["said"][1]["citations"] == first["citations"]
    assert (kept["title"], kept["source"], kept["author"], kept["said"][1]["made_by"]) == (
        "When was `reserve` introduced?",
        "mcp",
        "local",
        "rules",
    )


async def test_nothing_is_kept_unless_asked_for_and_chats_stay_in_their_bank(app: App) -> None:
    for bank in ("yard", "quay"):
        await run(app, "bank.create", name=bank)
        await run(app, "memory.retain", bank=bank, content=f"The {bank} crane is blue.")
    await run(app, "memory.ask", bank="yard", question="What colour is the crane?")
    assert await told(app) == [0, 0, 0]

    ids = [
        (await run(app, "memory.ask", bank="yard", question=f"Is crane {n} blue?", keep=True))["chat_id"]
        for n in range(3)
    ]
    listed = await run(app, "chat.list", bank="yard", limit=2)
    older = await run(app, "chat.get", bank="yard", id=ids[0], before=2)

    assert ([one["chat_id"] for one in listed["chats"]], listed["total"]) == ([ids[2], ids[1]], 3)
    assert [one["n"] for one in older["said"]] == [1]
    assert (await run(app, "chat.list", bank="quay"))["total"] == 0
    for operation, given in (
        ("chat.get", {"bank": "quay", "id": ids[0]}),
        ("memory.ask", {"bank": "quay", "question": "And?", "chat_id": ids[0]}),
        ("memory.ask", {"bank": "yard", "question": "And?", "chat_id": "nonsense"}),
        ("memory.ask", {"question": "And?", "chat_id": ids[0]}),
    ):
        with pytest.raises(NotFound, match="No chat"):
            await run(app, operation, **given)
    with pytest.raises(BadInput, match="belongs to one bank"):
        await run(app, "memory.ask", banks=["yard", "quay"], question="Is it blue?", keep=True)
    assert (await told(app))[:2] == [3, 6]


async def test_those_who_ask_at_once_in_one_chat_lose_nothing(app: App) -> None:
    await run(app, "memory.retain", content="The crane is blue.")
    id = (await run(app, "memory.ask", question="What colour is the crane?", keep=True))["chat_id"]

    asked = [f"Is crane number {n} blue?" for n in range(5)]
    await asyncio.gather(*(run(app, "memory.ask", question=one, chat_id=id) for one in asked))

    said = (await run(app, "chat.get", id=id))["said"]
    assert [one["n"] for one in said] == list(range(1, 13))
    assert sorted(one["text"] for one in said[2::2]) == asked
    assert {one["role"] for one in said[1::2]} == {"assistant"}


@pytest.mark.parametrize("way", ["memory", "section", "bank"])
async def test_an_answer_goes_with_what_it_was_made_from(app: App, tmp_path: Path, way: str) -> None:
    pull = ticket("pull", 12, "Budgets that hold", "The turquoise ledger keeps them.")
    await synced(app, "api", repository(tmp_path / "api"), pull)
    note = await run(app, "memory.retain", bank="api", content="The turquoise ledger lies in the blue safe.")
    await run(app, "memory.ask", bank="api", question="Where is the turquoise ledger?", keep=True)
    id = (await run(app, "chat.list", bank="api"))["chats"][0]["chat_id"]
    assert "turquoise ledger" in (await run(app, "chat.get", bank="api", id=id))["said"][1]["text"]
    hits = (await run(app, "memory.recall", bank="api", query="turquoise ledger"))["hits"]

    if way == "bank":
        await run(app, "bank.delete", bank="api")
        assert await told(app) == [0, 0, 0]
        return
    section = next(hit["memory"]["id"] for hit in hits if hit["memory"]["kind"] == "chunk")
    await run(app, "memory.forget", bank="api", id=note["id"] if way == "memory" else section)

    answer = (await run(app, "chat.get", bank="api", id=id))["said"][1]
    assert (answer["text"], answer["citations"]) == (chats.REMOVED, [])


async def test_a_chat_is_deleted_for_good_and_only_by_who_may(app: App) -> None:
    await run(app, "memory.retain", content="The crane is blue.")
    token = "ghp_" + "a1B2" * 9
    id = (await run(app, "memory.ask", question=f"Is {token} the crane?", keep=True))["chat_id"]
    assert token not in str(await run(app, "chat.get", id=id))
    reader = replace(local_owner(), scopes=frozenset({"memory:read"}), may_destroy=False)
    with pytest.raises(Forbidden):
        await dispatch.call(app.ctx(reader), "chat.delete", {"id": id})
    dirty = "UPDATE chat_messages SET text = text || :token, citations = :cited WHERE n = 2"
    cited = f'[{{"n": 1, "title": "{token}"}}]'
    await app.store.write(1, lambda tx: tx.run(dirty, token=token, cited=cited))

    scanned = await run(app, "memory.scan")
    await run(app, "memory.redact")
    clean = await run(app, "chat.get", id=id)
    receipt = await run(app, "chat.delete", id=id)

    assert [one["kind"] for one in scanned["findings"]] == ["chat"]
    assert token not in str(clean) and clean["said"][1]["citations"][0]["n"] == 1
    assert receipt["operation"] == "chat.delete"
    assert await told(app) == [0, 0, 0]
