"""Secrets never reach a store, and what older versions let in is found and taken out; on both stores."""

import json
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core import secrets, text
from keepsake.core.errors import BadInput, Forbidden, UnknownTool
from keepsake.core.principal import local_owner
from keepsake.ops import scan
from keepsake.store import audit, search
from keepsake.store.engine import Tx
from keepsake.surfaces import logs
from tests.conftest import Database
from tests.surfaces.helpers import typed

pytestmark = pytest.mark.anyio

ANY = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8cF0"
#: What is left of each example once its mark stands there must not hold these.
VALUES = {
    "private": "salary",
    "private-key": ANY,
    "connection-string": "hunter2",
    "url-password": "s3cret",
    "command-credential": "hunter2",
    "credential": "hunter2",
    "env-value": "hunter22",
    "flag-value": "hunter22",
    "told-credential": "hunter22",
    "aws-secret-key": "MDENGbPxRfiCY3zKq9TnL0pQ",
    "cookie": "3f9a1c7e5b2d8046",
    "authorization": ANY,
    "random-token": ANY,
}


async def contents(database: Database) -> bytes:
    """Everything the database holds: the files with their logs, or every row of every table."""
    if database.engine == "sqlite":
        return b"".join(path.read_bytes() for path in sorted(Path(database.place).parent.glob("*.db*")))
    connection = await asyncpg.connect(database.place)
    tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    rows = [await connection.fetch(f'SELECT t::text AS row FROM "{table["tablename"]}" t') for table in tables]
    await connection.close()
    return "\n".join(row["row"] for each in rows for row in each).encode()


def secret_of(pattern: secrets.Pattern) -> str:
    return VALUES.get(pattern.name, pattern.example)


async def test_no_kind_of_secret_reaches_the_store_or_comes_back(call: Any, sharpened: Any, database: Database) -> None:
    for pattern in secrets.PATTERNS:
        told = await call(
            "retain",
            content=f"Ada wrote this down on Monday.\n{pattern.example}\n",
            context=f"notes {pattern.example}"[:150],
            tags=[f"tag {pattern.example}"[:150]],
            metadata={"note": pattern.example, "deep": [{"api_key": "hunter2"}]},
            document_id=f"doc {pattern.name} {pattern.example}"[:400],
        )
        assert pattern.name in told["redacted"], pattern.name
    await call("update_bank", name="Bank password=hunter2", mission=f"Use sk-ant-api03-{ANY}")
    await sharpened()

    held = await contents(database)
    listed = json.dumps([await call("list_memories", limit=1000), await call("list_documents"), await call("get_bank")])
    recalled = json.dumps([await call("recall", query=f"Ada Monday {each.example}") for each in secrets.PATTERNS[:5]])

    for pattern in secrets.PATTERNS:
        secret = secret_of(pattern).encode()
        assert secret not in held and secret.lower() not in held, pattern.name
        assert secret.decode() not in listed + recalled, pattern.name
    assert "[redacted:" in listed


async def test_what_holds_no_secret_says_nothing_of_it(call: Any) -> None:
    told = await call("retain", content="The password policy asks for 12 characters.")

    assert "redacted" not in told
    assert (await call("get_memory", memory_id=told["memory_id"]))["text"].startswith("The password policy")


async def test_vectors_are_made_from_the_redacted_text(call: Any, app: App) -> None:
    told = await call("retain", content="The password is hunter2 for now.")

    row = await app.store.read(1, lambda tx: tx.one("SELECT m.text, v.text_hash FROM memories m, vectors v"))

    assert row is not None and told["redacted"] == ["told-credential"]
    assert row["text"] == "The password is [redacted:told-credential] for now."
    assert row["text_hash"] == text.digest(row["text"])


async def test_questions_find_what_was_redacted_the_same_way(call: Any) -> None:
    await call("retain", content="deploy with token=abcd1234", document_id="token=abcd1234")

    assert (await call("list_memories", q="token=abcd1234"))["total"] == 1
    assert (await call("get_document", document_id="token=abcd1234"))[
        "text"
    ] == "deploy with token=[redacted:credential]"


async def test_a_refusal_does_not_repeat_a_secret(call: Any, app: App) -> None:
    secret = "ghp_" + ANY + "aaaaaa"

    with pytest.raises(BadInput) as wrong:
        await call("retain", content="x", **{secret: 1})
    with pytest.raises(UnknownTool) as unknown:
        await call("x" * 80 + secret)
    with pytest.raises(Exception) as missing:
        await call("get_document", document_id=secret)

    assert all(secret[:12] not in str(each.value) for each in (wrong, unknown, missing))


def test_a_log_line_carries_no_secret() -> None:
    line = logs.without_keys(None, "info", {"event": "x", "url": "postgres://u:hunter2@h/d", "n": 3, "l": ["pwd=abcd"]})

    assert line == {
        "event": "x",
        "url": "postgres://u:[redacted:connection-string]@h/d",
        "n": 3,
        "l": ["pwd=[redacted:credential]"],
    }


NOTE = "Ada likes tea. The staging password is hunter2. Bob moved to Lisbon in May. The office is in Rome."


async def let_in(app: App, call: Any) -> None:
    """What an older version would have stored: the same rows, with the secret in them."""
    harmless = NOTE.replace("hunter2", "swordfi")
    await call("retain", content=harmless, document_id="plan", tags=["a", "b"], metadata={"note": "none"})
    await call("retain", content="Eve sings.", tags=["b"])

    async def body(tx: Tx) -> None:
        for table, column in (("memories", "text"), ("sources", "text")):
            await tx.run(f"UPDATE {table} SET {column} = replace({column}, 'swordfi', 'hunter2')")
        await tx.run("UPDATE memories SET metadata = :meta WHERE source IS NOT NULL", meta='{"api_key": "hunter2"}')
        await tx.run("UPDATE memories SET tags = :tags WHERE source IS NOT NULL", tags='["a", "token=hunter2"]')
        await tx.run(
            "UPDATE memory_tags SET tag = 'token=hunter2' WHERE tag = 'b'"
            " AND memory IN (SELECT id FROM memories WHERE source IS NOT NULL)"
        )
        await tx.run("UPDATE banks SET mission = 'password=hunter2'")
        rows = await tx.all("SELECT id, org, bank, text, title FROM memories")
        docs = await tx.all("SELECT id FROM search_docs")
        for row in rows:
            if row["id"] in {doc["id"] for doc in docs}:
                await search.remove(tx, row["org"], row["bank"], [row["id"]])
                await search.add(tx, row["org"], row["bank"], row["id"], search.Fields(row["text"]))

    await app.store.write(1, body)


async def operated(app: App, operation: str, **arguments: Any) -> Any:
    return await dispatch.call(app.ctx(local_owner()), operation, arguments)


@pytest.mark.parametrize("is_enriched", [False, True])
async def test_what_was_let_in_is_found_and_taken_out_everywhere(
    call: Any, app: App, sharpened: Any, database: Database, is_enriched: bool
) -> None:
    await call("retain", content="Before.")
    await let_in(app, call)
    if is_enriched:
        await sharpened()
    assert b"hunter2" in await contents(database)

    found = await operated(app, "memory.scan")
    fixed = await operated(app, "memory.redact")
    again = await operated(app, "memory.scan")
    await sharpened()

    assert isinstance(found, scan.Scanned) and isinstance(fixed, scan.Redaction)
    assert {one.kind for one in found.findings} == {"memory", "document", "bank"}
    assert {"credential", "told-credential"} <= found.secrets.keys()
    assert "hunter2" not in found.model_dump_json()
    assert fixed.memories >= 1 and (fixed.documents, fixed.others) == (1, 1) and fixed.receipts
    assert fixed.scrubbed == (database.engine == "sqlite")
    assert (again.total, again.findings) == (0, [])
    assert b"hunter2" not in await contents(database)


async def test_after_a_redaction_spans_fit_and_search_finds_the_rest(call: Any, app: App, sharpened: Any) -> None:
    await let_in(app, call)
    await sharpened()

    await operated(app, "memory.redact")
    await sharpened()

    rows = await app.store.read(
        1,
        lambda tx: tx.all(
            "SELECT m.text AS text, m.span AS span, m.text_hash AS text_hash, s.text AS whole"
            " FROM memories m JOIN sources s ON s.id = m.source WHERE m.span <> ''"
        ),
    )
    assert len(rows) >= 1
    for row in rows:
        start, end = map(int, row["span"].split(":"))
        assert row["whole"][start:end] == row["text"]
        assert row["text_hash"] == text.digest(row["text"])
    found = await call("recall", query="Where did Bob move?")
    assert any("Bob moved to Lisbon" in fact["text"] for fact in found["results"])
    assert "hunter2" not in json.dumps([found, await call("recall", query="staging password hunter")])
    stats = await call("get_bank_stats")
    assert stats["pending_embeddings"] == 0


async def test_a_redaction_stands_in_the_audit_chain_and_leaves_receipts(call: Any, app: App) -> None:
    await let_in(app, call)

    fixed = await operated(app, "memory.redact")
    chains = await app.store.read(1, lambda tx: audit.verify(tx, 1))
    rows = await app.store.read(1, lambda tx: tx.all("SELECT id, operation FROM receipts"))

    assert [chain.broken_at for chain in chains] == [None]
    assert {str(row["id"]) for row in rows} == set(fixed.receipts)
    assert {row["operation"] for row in rows} == {"memory.redact"}


async def test_who_may_not_delete_may_look_but_not_redact(call: Any, app: App) -> None:
    await let_in(app, call)
    reader = local_owner().narrowed(scopes=frozenset({"memory:read"}))

    found = await dispatch.call(app.ctx(reader), "memory.scan", {})
    with pytest.raises(Forbidden):
        await dispatch.call(app.ctx(reader), "memory.redact", {})

    assert isinstance(found, scan.Scanned) and found.total > 0


async def test_an_empty_bank_has_nothing_to_redact(app: App) -> None:
    found = await operated(app, "memory.scan")
    fixed = await operated(app, "memory.redact")

    assert (found.total, found.looked_at, fixed.receipts, fixed.scrubbed) == (0, 0, [], False)


def test_the_command_finds_mends_and_finds_nothing_more(tmp_path: Path) -> None:
    typed(tmp_path, "call", "retain", "--dialect", "hindsight", "--content", "The wifi is open.")
    connection = apsw.Connection(str(tmp_path / "keepsake.db"))
    connection.execute("UPDATE memories SET text = 'The wifi password is hunter22.'")
    connection.close()

    found = typed(tmp_path, "scan")
    fixed = typed(tmp_path, "scan", "--fix", "--json")
    again = typed(tmp_path, "scan", "--bank", "default")

    assert (found.code, fixed.code, again.code) == (1, 0, 0)
    assert "told-credential" in found.out and "hunter22" not in found.out + found.err
    assert json.loads(fixed.out)["banks"][0]["memories"] == 1
    assert again.out == "No secrets found in 2 texts.\n"
    assert b"hunter22" not in b"".join(path.read_bytes() for path in tmp_path.glob("*.db*"))
