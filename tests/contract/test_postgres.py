"""What only PostgreSQL promises: walls between orgs inside the database, lost connections, large banks."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import asyncpg
import numpy as np
import pytest

from keepsake.core.errors import Misconfigured, Unavailable
from keepsake.store import pgvectors
from keepsake.store.engine import Doc, Nearest, Tx, VectorRow, Wanted
from keepsake.store.postgres import Postgres, connected
from keepsake.store.store import Store

if TYPE_CHECKING:
    from conftest import Database

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("database", ["postgres"], indirect=True)]
BANK = 42
TERM = "INSERT INTO terms (org, bank, term, docs, total) VALUES (:org, 42, :term, 1, 0)"


async def filled(store: Store, org: int) -> None:
    async def body(tx: Tx) -> None:
        await tx.run(TERM, org=org, term="apple")
        await tx.index(Doc(org, org, BANK, ["abcdapple"]))
        await tx.put_vector(VectorRow(org, BANK, org, 1, np.array([1, 0], np.float32)))

    await store.write(org, body)


async def test_another_org_sees_no_row_even_without_a_condition(store: Store) -> None:
    await filled(store, 1)

    async def body(tx: Tx) -> list[object]:
        return [await tx.all(f"SELECT org FROM {table}") for table in ("terms", "search_docs", "vectors", "orgs")]

    assert await store.read(1, body) == [[{"org": 1}]] * 4
    assert await store.read(2, body) == [[]] * 4


async def test_a_search_that_names_another_org_finds_nothing(store: Store) -> None:
    await filled(store, 1)

    assert await store.read(2, lambda tx: tx.search_text(Wanted(1, BANK, [["abcdapple"]], 5))) == []
    assert await store.read(2, lambda tx: tx.search_vectors(Nearest(1, BANK, 1, np.array([1, 0], np.float32)))) == [[]]


async def test_a_row_of_another_org_cannot_be_written(store: Store) -> None:
    await filled(store, 1)

    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await store.write(2, lambda tx: tx.run(TERM, org=1, term="pear"))

    assert await store.write(2, lambda tx: tx.run("UPDATE terms SET docs = 9")) == 0
    assert await store.write(2, lambda tx: tx.run("DELETE FROM terms")) == 0


FORBIDDEN = {
    "a partition": lambda store: store.read(1, lambda tx: tx.all("SELECT org FROM terms_0")),
    "the secrets": lambda store: store.read(1, lambda tx: tx.all("SELECT value FROM meta")),
    "memories across orgs": lambda store: store.engine.claim(lambda tx: tx.all("SELECT id FROM memories")),
    "the schema": lambda store: store.write(1, lambda tx: tx.run("DROP TABLE terms")),
}


@pytest.mark.parametrize("what", FORBIDDEN)
async def test_a_role_reaches_only_what_it_needs(store: Store, what: str) -> None:
    asked: Callable[[Store], Awaitable[object]] = FORBIDDEN[what]

    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await asked(store)


async def test_every_table_with_an_org_has_a_policy(database: "Database") -> None:
    connection = await asyncpg.connect(database.place)

    open_tables = await connection.fetch(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org'"
        " WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND NOT c.relrowsecurity"
    )
    await connection.close()

    assert open_tables == []


async def test_words_are_searched_by_their_index_behind_the_wall(store: Store, database: "Database") -> None:
    async def body(tx: Tx) -> None:
        for n in range(1, 5_001):
            await tx.index(Doc(n, 1, BANK, [f"abcd{n}"]))

    async def searched(tx: Tx) -> int:
        found = await tx.search_text(Wanted(1, BANK, [["abcd77"]], 5))
        # What was counted is told at the end of a transaction, and seldom unless one asks.
        await tx.all("SELECT pg_stat_force_next_flush()")
        return len(found)

    async def scans() -> tuple[int, int]:
        row = await connection.fetchrow(
            "SELECT (SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE relname LIKE 'search_docs%' AND indexrelid IN"
            " (SELECT i.oid FROM pg_class i JOIN pg_am m ON m.oid = i.relam WHERE m.amname = 'gin'))::bigint AS used,"
            " (SELECT sum(seq_scan) FROM pg_stat_user_tables WHERE relname LIKE 'search_docs%')::bigint AS read"
        )
        return (row["used"], row["read"]) if row else (0, 0)

    await store.write(1, body)
    connection = await asyncpg.connect(database.place)
    await connection.execute("ANALYZE search_docs")
    used, read = await scans()
    found = await store.read(1, searched)
    after = await scans()
    await connection.close()

    assert found == 1
    assert (after[0] > used, after[1]) == (True, read)


#: A value of every type that a column has.
VALUES = {
    "int8": "1", "int4": "1", "int2": "1", "float4": "1", "float8": "1", "bool": "TRUE", "text": "'x'", "bytea": "'x'",
    "jsonb": "'{}'", "halfvec": "'[1]'", "tsvector": "'x'", "_text": "'{x}'", "_int8": "'{1}'",
}  # fmt: skip


async def _one_row_each(connection: "asyncpg.Connection[asyncpg.Record]") -> list[str]:
    """A row of org 1 in every table that has an org, whatever else the table asks of its rows."""
    tables = await connection.fetch(
        "SELECT c.oid::regclass::text AS name, (SELECT string_agg(quote_ident(b.attname), ',' ORDER BY b.attnum) FROM"
        " pg_attribute b WHERE b.attrelid = c.oid AND b.attnum > 0 AND NOT b.attisdropped AND b.attgenerated = '') AS"
        " columns, ARRAY(SELECT b.attname || ' ' || t.typname FROM pg_attribute b JOIN pg_type t ON t.oid = b.atttypid"
        " WHERE b.attrelid = c.oid AND b.attnum > 0 AND NOT b.attisdropped AND b.attgenerated = '' ORDER BY b.attnum)"
        " AS types FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org'"
        " WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1"
    )
    checks = await connection.fetch(
        "SELECT conrelid::regclass::text AS name, conname FROM pg_constraint WHERE contype IN ('c', 'f')"
        " AND conparentid = 0 AND conislocal AND connamespace = current_schema()::regnamespace"
    )
    for one in checks:
        await connection.execute(f'ALTER TABLE {one["name"]} DROP CONSTRAINT "{one["conname"]}"')
    for table in tables:
        await connection.execute(f"DELETE FROM {table['name']}")
        given = ", ".join(VALUES[one.split()[1]] for one in table["types"])
        await connection.execute(f"INSERT INTO {table['name']} ({table['columns']}) VALUES ({given})")
    return [table["name"] for table in tables]


async def test_every_table_there_is_keeps_orgs_apart_for_the_role_that_asks(store: Store, database: "Database") -> None:
    connection = await asyncpg.connect(database.place)
    tables = await _one_row_each(connection)
    role = await connection.fetchrow(
        "SELECT bool_or(r.rolsuper OR r.rolbypassrls) AS is_super, bool_or(c.relowner = r.oid) AS is_owner"
        " FROM pg_roles r, pg_class c WHERE r.rolname IN ('keepsake_app', 'keepsake_claim') AND c.relname = 'memories'"
    )
    await connection.close()

    async def met(org: int, table: str) -> tuple[int, int, int]:
        async def body(tx: Tx) -> tuple[int, int, int]:
            seen = len(await tx.all(f"SELECT org FROM {table}"))
            changed = await tx.run(f"UPDATE {table} SET org = org")
            return seen, changed, await tx.run(f"DELETE FROM {table} WHERE org = 1")

        return await store.write(org, body)

    async def written(table: str) -> str:
        try:
            copied = f"INSERT INTO {table} (org) VALUES (1)"
            await store.write(2, lambda tx: tx.run(copied))
        except asyncpg.InsufficientPrivilegeError:
            return "refused"
        except asyncpg.PostgresError as error:
            return type(error).__name__
        return "written"

    foreign = {table: (await met(2, table), await written(table)) for table in tables}
    own = {table: await met(1, table) for table in tables}

    assert dict(role or {}) == {"is_super": False, "is_owner": False}
    assert {table: found for table, found in foreign.items() if found != ((0, 0, 0), "refused")} == {}
    assert {table: found for table, found in own.items() if found != (1, 1, 1)} == {}
    assert {"memories", "api_keys", "audit", "proposals", "oauth_tokens"} <= set(tables)


async def test_counters_are_not_logged_and_everything_else_is(database: "Database") -> None:
    connection = await asyncpg.connect(database.place)

    rows = await connection.fetch("SELECT relname FROM pg_class WHERE relkind = 'r' AND relpersistence = 'u'")
    await connection.close()

    volatile = {"counters", "handed_out", "key_uses", "layouts", "mcp_sessions", "readings", "recalls"}
    assert {row["relname"] for row in rows} == volatile


async def test_a_lost_connection_is_told_and_the_next_call_works(store: Store, database: "Database") -> None:
    other = await asyncpg.connect(database.place)

    async def body(tx: Tx) -> None:
        await tx.run(TERM, org=1, term="apple")
        row = await tx.one("SELECT pg_backend_pid() AS pid")
        await other.execute("SELECT pg_terminate_backend($1, 5000)", row["pid"] if row else 0)
        await tx.run(TERM, org=1, term="pear")

    with pytest.raises(Unavailable, match="Check that it runs"):
        await store.write(1, body)
    await other.close()

    assert await store.read(1, lambda tx: tx.all("SELECT term FROM terms")) == []


async def test_a_body_that_swallows_a_failed_statement_is_not_taken_for_done(store: Store) -> None:
    async def body(tx: Tx) -> None:
        await tx.run(TERM, org=1, term="apple")
        try:
            await tx.run(TERM, org=1, term="apple")
        except asyncpg.UniqueViolationError:
            return

    with pytest.raises(RuntimeError, match="nothing was kept"):
        await store.write(1, body)


async def test_no_server_is_told_clearly(database: "Database") -> None:
    with pytest.raises(Unavailable, match="cannot be reached"):
        await connected("postgresql://postgres@/none?host=/nowhere")


async def test_a_database_without_our_schema_is_refused(database: "Database", postgres_server: str) -> None:
    with pytest.raises(Misconfigured, match="Migrate it first"):
        await connected(postgres_server.format("postgres").replace("postgresql://", "postgres://"))


async def test_the_index_of_a_model_goes_with_its_last_vector(store: Store) -> None:
    async def indexes() -> int:
        asked = "SELECT count(*) AS held FROM pg_indexes WHERE indexname LIKE 'vectors%model_2'"
        row = await store.read(1, lambda tx: tx.one(asked))
        return int(row["held"]) if row else 0

    await store.engine.index_model(2, 32)
    made = await indexes()
    await store.engine.drop_model(2)
    await store.engine.drop_model(2)

    assert (made, await indexes()) == (16, 0)


async def test_a_large_bank_is_searched_by_signs_and_then_by_its_graph(store: Store) -> None:
    await store.write(
        1,
        lambda tx: tx.run(
            "INSERT INTO vectors (org, bank, memory, model, vec, text_hash, seq) SELECT 1, 42, n, 2, l2_normalize("
            "ARRAY(SELECT sin(hashint4(n::int * 50 + k)) FROM generate_series(1, 32) k)::real[]::halfvec), '', 0"
            " FROM generate_series(1, :many) n",
            many=pgvectors.SMALL,
        ),
    )
    row = await store.read(1, lambda tx: tx.one("SELECT vec FROM vectors WHERE memory = 77"))
    nearest = Nearest(1, BANK, 2, np.frombuffer(row["vec"] if row else b"", np.float32), limit=50)

    [by_signs] = await store.read(1, lambda tx: tx.search_vectors(nearest))
    assert isinstance(store.engine, Postgres)
    await store.engine.index_model(2, 32)
    await store.engine.index_model(2, 32)
    [by_graph] = await store.read(1, lambda tx: tx.search_vectors(nearest))
    last = by_graph[-1][0]
    both = await store.read(1, lambda tx: tx.search_vectors(nearest, replace(nearest, among=[last, 5], limit=1)))
    [closest] = await store.read(1, lambda tx: tx.search_vectors(replace(nearest, limit=3, also=[77, last])))

    assert (both[0], [memory for memory, _ in both[1]]) == (by_graph, [last])
    assert [memory for memory, _ in closest] == [*(memory for memory, _ in by_graph[:3]), last]
    for found in (by_signs, by_graph):
        assert [memory for memory, _ in found][:1] == [77]
        assert [round(cosine, 2) for _, cosine in found][:1] == [1.0]
        assert len(found) == 50
