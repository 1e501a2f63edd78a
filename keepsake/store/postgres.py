"""PostgreSQL through asyncpg: short transactions under row-level security."""

import asyncio
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg

from keepsake.core.errors import Conflict, Misconfigured, Unavailable
from keepsake.core.lazy import lazy
from keepsake.store import dialect, pgvectors
from keepsake.store.engine import Asked, Body, Doc, Found, Match, Nearest, Row, Value, VectorRow, Wanted
from keepsake.store.tsearch import tsquery, tsvector

if TYPE_CHECKING:
    import numpy as np

    from keepsake.store import queries
else:
    np = lazy("numpy")
    queries = lazy("keepsake.store.queries")

T = TypeVar("T")
CONNECTIONS = 10
#: Seconds that a statement, or the wait for a free connection, may take.
PATIENCE_S = 60
ATTEMPTS = 6
RETRIED = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError, asyncpg.InvalidCachedStatementError)
LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.InsufficientResourcesError,
    TimeoutError,
)
_FIELDS = ("title", "body", "concepts", "facts", "files", "context")

# Everything is set for one transaction and in one message, so a connection carries nothing from one to the next.
# Every statement names org and bank, so one plan suits all values; to plan a recall anew took longer than to run it.
_READ = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL ROLE keepsake_app; SET LOCAL keepsake.org = {};"
    " SET LOCAL plan_cache_mode = force_generic_plan"
)
_WRITE = "BEGIN; SET LOCAL ROLE keepsake_app; SET LOCAL keepsake.org = {}"
# A role of its own looks across orgs: policies let it see jobs, keys and orgs whole, and it has no right to the rest.
_CLAIM = "BEGIN; SET LOCAL ROLE keepsake_claim"
_LOOK = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL ROLE keepsake_claim"
_VOLATILE = "BEGIN; SET LOCAL ROLE keepsake_app; SET LOCAL synchronous_commit = off"
#: Documents beyond which walking from the newest finds enough sooner than the index finds all.
MANY = 1_500


@dataclass(slots=True)
class PgTx:
    """A transaction on one connection."""

    connection: asyncpg.Connection
    #: How a bank is searched under a model, and until when that holds.
    ways: pgvectors.Ways

    async def all(self, sql: str, **values: Value) -> list[Row]:
        text, names = dialect.postgres(sql)
        return [dict(row) for row in await self.connection.fetch(text, *[values[name] for name in names])]

    async def one(self, sql: str, **values: Value) -> Row | None:
        rows = await self.all(sql, **values)
        return rows[0] if rows else None

    async def within(self, org: int) -> None:
        await self.connection.execute(f"SET LOCAL ROLE keepsake_app; SET LOCAL keepsake.org = {int(org)}")

    async def planned(self, sql: str, **values: Value) -> list[Row]:
        await self.connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        rows = await self.all(sql, **values)
        await self.connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        return rows

    async def gather(self, *asked: Asked) -> list[list[Row]]:
        text, places = dialect.gathered(tuple(sql for sql, _ in asked))
        answers = await self.connection.fetchrow(text, *[asked[n][1][name] for n, name in places])
        return [json.loads(answer) if answer else [] for answer in answers]

    async def run(self, sql: str, **values: Value) -> int:
        text, names = dialect.postgres(sql)
        status: str = await self.connection.execute(text, *[values[name] for name in names])
        count = status.rpartition(" ")[2]
        return int(count) if count.isdecimal() else 0

    async def many(self, sql: str, rows: Sequence[Mapping[str, Value]]) -> None:
        text, names = dialect.postgres(sql)
        await self.connection.executemany(text, [[row[name] for name in names] for row in rows])

    async def index(self, doc: Doc) -> None:
        await self.connection.execute(
            "INSERT INTO search_docs (org, bank, id, title, body, concepts, facts, files, context, length, tsv)"
            " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::tsvector)"
            " ON CONFLICT (org, bank, id) DO UPDATE SET title = excluded.title, body = excluded.body,"
            " concepts = excluded.concepts, facts = excluded.facts, files = excluded.files,"
            " context = excluded.context, length = excluded.length, tsv = excluded.tsv",
            *(doc.org, doc.bank, doc.id),
            *(f" {' '.join(getattr(doc, name))} " for name in _FIELDS),
            *(doc.length, tsvector(doc)),
        )

    async def unindex(self, org: int, bank: int, ids: Sequence[int]) -> None:
        await self.connection.execute(
            "DELETE FROM search_docs WHERE org = $1 AND bank = $2 AND id = ANY($3::bigint[])", org, bank, ids
        )

    async def search_text(self, wanted: Wanted) -> list[Found]:
        way = "few" if wanted.expected <= MANY else "many"
        rows = await self.connection.fetch(
            f"SELECT id, title, body, context, length, more FROM keepsake_search_{way}($1, $2, $3::text::tsquery, $4)",
            *(wanted.org, wanted.bank, tsquery(wanted.groups), wanted.limit),
        )
        return [Found(*row) for row in rows]

    async def match(self, match: Match) -> list[int]:
        rows = await self.connection.fetch(
            "SELECT id FROM keepsake_match($1, $2, $3::text::tsquery, $4, $5, $6)",
            *(match.org, match.bank, queries.tsquery(match.tree, match.letters)),
            *(match.summaries, match.below, match.limit),
        )
        return [row["id"] for row in rows]

    async def put_vector(self, row: VectorRow) -> None:
        await self.connection.execute(
            "INSERT INTO vectors (org, bank, memory, model, vec, text_hash, seq) VALUES ($1, $2, $3, $4, $5, $6, $7)"
            " ON CONFLICT (org, bank, memory) DO UPDATE SET model = excluded.model, vec = excluded.vec,"
            " text_hash = excluded.text_hash, seq = excluded.seq",
            *(row.org, row.bank, row.memory, row.model, row.vector, row.text_hash, row.seq),
        )

    async def search_vectors(self, *asked: Nearest) -> list[list[tuple[int, float]]]:
        return await pgvectors.search(self.connection, self.ways, asked)

    async def aside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(None, work)

    async def lock_audit(self, org: int, bank: int) -> Row | None:
        locked = "SELECT n, hash FROM audit_heads WHERE org = $1 AND bank = $2 FOR UPDATE"
        head = await self.connection.fetchrow(locked, org, bank)
        if head is None:
            # There must be a row to lock, or two transactions would both begin the chain.
            await self.connection.execute(
                "INSERT INTO audit_heads (org, bank, n, hash) VALUES ($1, $2, 0, '')"
                " ON CONFLICT (org, bank) DO NOTHING",
                *(org, bank),
            )
            head = await self.connection.fetchrow(locked, org, bank)
        return dict(head) if head and head["n"] else None


class Postgres:
    """A database behind a small pool of connections."""

    name = "postgres"

    def __init__(self, url: str, pool: asyncpg.Pool) -> None:
        self.url = url
        self._pool = pool
        self._ways: pgvectors.Ways = {}
        self._indexed: set[int] = set()

    async def read(self, org: int, body: Body[T]) -> T:
        return await self._retried(_READ.format(int(org)), body)

    async def write(self, org: int, body: Body[T]) -> T:
        return await self._retried(_WRITE.format(int(org)), body)

    async def look(self, body: Body[T]) -> T:
        return await self._retried(_LOOK, body)

    async def claim(self, body: Body[T]) -> T:
        return await self._retried(_CLAIM, body)

    async def volatile(self, body: Body[T]) -> T:
        return await self._retried(_VOLATILE, body)

    async def close(self) -> None:
        await self._pool.close()

    async def _retried(self, begin: str, body: Body[T]) -> T:
        for attempt in range(ATTEMPTS):
            try:
                return await self._transaction(begin, body)
            except RETRIED:
                await asyncio.sleep(random.uniform(0.5, 1.5) * 0.01 * 2**attempt)
        raise Conflict("Others kept changing the same rows at the same time. Try again.")

    async def _transaction(self, begin: str, body: Body[T]) -> T:
        try:
            connection = await self._pool.acquire(timeout=PATIENCE_S)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError) as error:
            raise Unavailable(f"PostgreSQL cannot be reached ({error}). Check that it runs, then try again.") from error
        try:
            return await self._committed(connection, begin, body)
        except (*LOST, OSError, asyncpg.InterfaceError) as error:
            if isinstance(error, LOST) or is_gone(connection):
                raise Unavailable(
                    "PostgreSQL broke off. Check that it runs and has room, and look whether the change was kept"
                    " before you try again."
                ) from error
            raise
        finally:
            await self._pool.release(connection)

    async def _committed(self, connection: Any, begin: str, body: Body[T]) -> T:
        try:
            await connection.execute(begin)
            answer = await body(PgTx(connection, self._ways))
            if await connection.execute("COMMIT") != "COMMIT":
                raise RuntimeError("A transaction's body went on after a statement had failed; nothing was kept.")
            return answer
        finally:
            if not is_gone(connection) and connection.is_in_transaction():
                await connection.execute("ROLLBACK")

    async def index_model(self, model: int, dim: int) -> None:
        """Give a model its index on every partition; searches read every row until it is there."""
        if model in self._indexed:
            return
        await pgvectors.index(self.url, model, dim)
        self._indexed.add(model)
        self._ways.clear()

    async def drop_model(self, model: int) -> None:
        """Take the index of a model away that has no vectors any more: its pages would stay for good."""
        await pgvectors.unindex(self.url, model)
        self._indexed.discard(model)
        self._ways.clear()

    async def settle(self) -> None:
        """Let the planner know of many new rows; autovacuum would, but minutes later."""
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute("ANALYZE memories, memory_entities, memory_tags, search_docs, terms, vectors")
        finally:
            await connection.close()


def is_gone(connection: Any) -> bool:
    """Whether a connection is closed; the pool takes a dead one back by itself, and it answers nothing then."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


async def connected(url: str) -> Postgres:
    """Open a pool on a migrated database."""
    try:
        pool = await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=CONNECTIONS,
            command_timeout=PATIENCE_S,
            statement_cache_size=500,
            server_settings={"application_name": "keepsake", "jit": "off"},
            init=_taught,
            reset=_as_it_is,
        )
    except (OSError, asyncpg.PostgresError, TimeoutError) as error:
        raise Unavailable(f"PostgreSQL cannot be reached ({error}). Check its URL and that it runs.") from error
    return Postgres(url, pool)


async def _taught(connection: Any) -> None:
    """Teach a new connection our types."""
    schema = await connection.fetchval(
        "SELECT n.nspname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace"
        " WHERE t.oid = to_regtype('halfvec')"
    )
    if schema is None:
        raise Misconfigured("The database has no schema of Keepsake yet. Migrate it first.")
    await connection.set_type_codec(
        "halfvec", schema=schema, encoder=pgvectors.encoded, decoder=pgvectors.decoded, format="binary"
    )
    # A sum of bigints is numeric here; SQLite gives a number.
    await connection.set_type_codec("numeric", schema="pg_catalog", encoder=str, decoder=_number)


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


async def _as_it_is(connection: Any) -> None:
    """Nothing outlives a transaction, so a connection needs no cleaning between two."""
