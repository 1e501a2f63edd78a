"""PostgreSQL through asyncpg: short transactions under row-level security."""

import asyncio
import random
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import asyncpg

from keepsake.core.errors import Conflict, Misconfigured, Unavailable
from keepsake.core.lazy import lazy
from keepsake.store import dialect
from keepsake.store.engine import Body, Doc, Found, Nearest, Row, Value, VectorRow, Wanted

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

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
_READ = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL ROLE keepsake_app; SET LOCAL keepsake.org = {};"
    " SET LOCAL hnsw.ef_search = 100; SET LOCAL hnsw.iterative_scan = relaxed_order"
)
_WRITE = "BEGIN; SET LOCAL ROLE keepsake_app; SET LOCAL keepsake.org = {}"
# A role of its own looks across orgs: policies let it see jobs, keys and orgs whole, and it has no right to the rest.
_CLAIM = "BEGIN; SET LOCAL ROLE keepsake_claim"
_LOOK = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL ROLE keepsake_claim"
_VOLATILE = "BEGIN; SET LOCAL ROLE keepsake_app; SET LOCAL synchronous_commit = off"


#: A tsvector holds positions up to this one, words up to 2,046 bytes and 1 MB in all.
LAST_POSITION = 16_383
LONGEST_WORD = 500
ROOM = 900_000


def tsvector(doc: Doc) -> str:
    """A document's words as PostgreSQL reads them, with positions and the weight of their field."""
    places: dict[str, list[str]] = {}
    room = ROOM
    for position, (word, weight) in enumerate(_weighted(doc), 1):
        room -= 4 if word in places else 8 + len(word.encode())
        if room < 0:
            break
        places.setdefault(word, []).append(f"{min(position, LAST_POSITION)}{weight}")
    return " ".join(f"{quoted(word)}:{','.join(at)}" for word, at in places.items())


def _weighted(doc: Doc) -> Iterator[tuple[str, str]]:
    rest = [*doc.body, *doc.facts, *doc.context]
    for words, weight in ((doc.title, "A"), (doc.concepts, "B"), (doc.files, "C"), (rest, "")):
        for word in words:
            yield word[:LONGEST_WORD], weight


def tsquery(groups: Sequence[Sequence[str]]) -> str:
    """Any of the groups, all words of a group."""
    return " | ".join(f"({' & '.join(quoted(word[:LONGEST_WORD]) for word in group)})" for group in groups if group)


def quoted(word: str) -> str:
    """A word of ours as a lexeme of a tsvector or tsquery."""
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


# Backend CPU at a limit of 100, on an otherwise quiet machine: reading every vector of a bank takes 0.4 to 1 ms a
# thousand; reading their signs from an index and scoring the best again 1 ms and 0.2 ms a thousand; the graph 2.5 ms
# with 256 dimensions and 6 with 384, divided by the bank's share of its partition, as rows of other banks are skipped.
# On real text with 256 dimensions signs find 0.99 of the ten best but 0.89 of the hundred, the graph 0.97 and 0.96.
#: Documents beyond which walking from the newest finds enough sooner than the index finds all.
MANY = 1_500
Way = Literal["every", "signs", "graph"]
SMALL = 4_000
#: Rows of the bank times its share of the partition, from which on the graph is the cheaper way.
WORTH = 3_000
COUNTED = 200_000
#: Seconds for which a choice stands.
CHOICE_S = 60
#: The advisory lock under which a model's index is made.
INDEXING = 7_208_118_432

_BANK = "FROM vectors WHERE org = $1 AND bank = $2 AND model = $3"
_EVERY = f"SELECT memory, vec <#> $4 AS away {_BANK} ORDER BY 2 LIMIT $5"
# One look-up a memory, by the primary key, whatever the planner knows of the bank.
_AMONG = (
    "SELECT v.memory, v.vec <#> $4 AS away FROM unnest($6::bigint[]) AS wanted (memory) CROSS JOIN LATERAL (SELECT"
    " memory, vec, model FROM vectors WHERE org = $1 AND bank = $2 AND memory = wanted.memory OFFSET 0) v"
    " WHERE v.model = $3 ORDER BY 2 LIMIT $5"
)
_SIGNS = (
    f"SELECT memory, vec <#> $4 AS away {_BANK} AND memory = ANY(ARRAY("
    f"SELECT memory {_BANK} ORDER BY bits <~> binary_quantize($4) LIMIT $6)) ORDER BY 2 LIMIT $5"
)
_GRAPH = (
    "SELECT memory, vec::halfvec({dim}) <#> $3 AS away FROM vectors"
    " WHERE org = $1 AND bank = $2 AND model = {model} ORDER BY vec::halfvec({dim}) <#> $3 LIMIT $4"
)
_SIZES = (
    # Statistics may be old, and equal vectors share an entry: the larger guess is the better one.
    f"SELECT held, (SELECT greatest(c.reltuples, pg_relation_size(c.oid) / (2 * $5::bigint + 400)) FROM pg_class c"
    " JOIN pg_index i ON i.indexrelid = c.oid AND i.indisvalid WHERE c.oid = to_regclass("
    f"(SELECT tableoid::regclass::text {_BANK} LIMIT 1) || '_model_' || $3::bigint)) AS indexed"
    f" FROM (SELECT count(*) AS held FROM (SELECT {_BANK} LIMIT $4) AS some_rows) AS bank"
)


def encoded(vector: Any) -> bytes:
    """A vector as pgvector receives a halfvec; float32 bytes, as SQLite stores them, will do."""
    floats = np.frombuffer(vector, np.float32) if isinstance(vector, bytes) else np.asarray(vector)
    return struct.pack(">HH", len(floats), 0) + floats.astype(">f2").tobytes()


def decoded(stored: bytes) -> bytes:
    """A stored halfvec as the float32 bytes that SQLite would give."""
    return bytes(np.frombuffer(stored, ">f2", offset=4).astype(np.float32).tobytes())


@dataclass(slots=True)
class PgTx:
    """A transaction on one connection."""

    connection: asyncpg.Connection
    #: How a bank is searched under a model, and until when that holds.
    ways: dict[tuple[int, int], tuple[Way, float]]

    async def all(self, sql: str, **values: Value) -> list[Row]:
        text, names = dialect.postgres(sql)
        return [dict(row) for row in await self.connection.fetch(text, *[values[name] for name in names])]

    async def one(self, sql: str, **values: Value) -> Row | None:
        rows = await self.all(sql, **values)
        return rows[0] if rows else None

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
            f"SELECT id, title, body, context, length FROM keepsake_search_{way}($1, $2, $3::text::tsquery, $4)",
            *(wanted.org, wanted.bank, tsquery(wanted.groups), wanted.limit),
        )
        return [Found(*row) for row in rows]

    async def put_vector(self, row: VectorRow) -> None:
        await self.connection.execute(
            "INSERT INTO vectors (org, bank, memory, model, vec, text_hash, seq) VALUES ($1, $2, $3, $4, $5, $6, $7)"
            " ON CONFLICT (org, bank, memory) DO UPDATE SET model = excluded.model, vec = excluded.vec,"
            " text_hash = excluded.text_hash, seq = excluded.seq",
            *(row.org, row.bank, row.memory, row.model, row.vector, row.text_hash, row.seq),
        )

    async def search_vector(self, nearest: Nearest) -> list[tuple[int, float]]:
        bank, vector, limit = (nearest.org, nearest.bank), nearest.vector, nearest.limit
        way = "among" if nearest.among is not None else await self._way(nearest)
        if way == "graph":
            sql = _GRAPH.format(dim=len(vector), model=int(nearest.model))
            # Without fresh statistics the planner takes the bank for tiny, and would sort it whole.
            await self.connection.execute("SET LOCAL enable_sort = off")
            rows = await self.connection.fetch(sql, *bank, vector, limit)
            await self.connection.execute("SET LOCAL enable_sort = on")
        elif way == "signs":
            rows = await self.connection.fetch(_SIGNS, *bank, nearest.model, vector, limit, max(400, 8 * limit))
        elif way == "among":
            rows = await self.connection.fetch(_AMONG, *bank, nearest.model, vector, limit, nearest.among)
        else:
            rows = await self.connection.fetch(_EVERY, *bank, nearest.model, vector, limit)
        # The graph is read in relaxed order, which is nearly sorted.
        return sorted(((row["memory"], -row["away"]) for row in rows), key=lambda found: -found[1])

    async def _way(self, nearest: Nearest) -> Way:
        """How a bank is searched under a model."""
        chosen = self.ways.get((nearest.bank, nearest.model))
        if chosen and time.monotonic() < chosen[1]:
            return chosen[0]
        sizes = (nearest.org, nearest.bank, nearest.model, COUNTED, len(nearest.vector))
        row = await self.connection.fetchrow(_SIZES, *sizes)
        held, indexed = row["held"], row["indexed"]
        way: Way = "every" if held < SMALL else "signs"
        if indexed is not None and held >= SMALL and held * held >= WORTH * max(indexed, held):
            way = "graph"
        if len(self.ways) >= 10_000:
            self.ways.clear()
        self.ways[nearest.bank, nearest.model] = way, time.monotonic() + CHOICE_S
        return way

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
        self._ways: dict[tuple[int, int], tuple[Way, float]] = {}
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
        connection = await asyncpg.connect(self.url)
        try:
            # To wait for the lock would hold a snapshot, for which the other's CONCURRENTLY waits in turn.
            if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", INDEXING):
                raise Conflict("Another process is making this index. Try again when it is done.")
            # An index that does not fit in here while it is built takes many times as long.
            await connection.execute(
                "SELECT set_config('maintenance_work_mem', '512MB', false)"
                " WHERE pg_size_bytes(current_setting('maintenance_work_mem')) < pg_size_bytes('512MB')"
            )
            for row in await connection.fetch(
                "SELECT c.relname AS name, i.indisvalid AS valid FROM pg_inherits h"
                " JOIN pg_class c ON c.oid = h.inhrelid"
                " LEFT JOIN pg_index i ON i.indexrelid = to_regclass(c.relname || '_model_' || $1)"
                " WHERE h.inhparent = 'vectors'::regclass ORDER BY c.relname",
                str(model),
            ):
                await _index_partition(connection, row["name"], row["valid"], model, dim)
        finally:
            await connection.close()
        self._indexed.add(model)
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


async def _index_partition(connection: Any, table: str, valid: bool | None, model: int, dim: int) -> None:
    if valid is False:
        await connection.execute(f"DROP INDEX {table}_model_{model:d}")
    if not valid:
        await connection.execute(
            f"CREATE INDEX CONCURRENTLY {table}_model_{model:d} ON {table}"
            f" USING hnsw ((vec::halfvec({dim:d})) halfvec_ip_ops) WHERE model = {model:d}"
        )


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
    await connection.set_type_codec("halfvec", schema=schema, encoder=encoded, decoder=decoded, format="binary")
    # A sum of bigints is numeric here; SQLite gives a number.
    await connection.set_type_codec("numeric", schema="pg_catalog", encoder=str, decoder=_number)


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


async def _as_it_is(connection: Any) -> None:
    """Nothing outlives a transaction, so a connection needs no cleaning between two."""
