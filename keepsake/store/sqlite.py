"""SQLite through apsw: one writer thread with group commit, readers beside it."""

import json
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from keepsake.core.lazy import lazy
from keepsake.store import dialect
from keepsake.store.engine import Asked, Body, Doc, Found, Match, Nearest, Row, Tx, Value, VectorRow, Wanted

if TYPE_CHECKING:
    import asyncio
    from concurrent import futures

    from keepsake.store import queries, vectors
else:
    # A hook reads and writes with a connection alone: it has no time for these.
    asyncio = lazy("asyncio")
    futures = lazy("concurrent.futures")
    queries = lazy("keepsake.store.queries")
    vectors = lazy("keepsake.store.vectors")

T = TypeVar("T")
#: Other processes hold the file for one group commit at a time; a minute is far beyond any of them.
BUSY_MS = 60_000
GROUP = 256
READERS = 4
#: What opening a file that is no database of ours, or not ours to write, ends in.
UNUSABLE = (apsw.CantOpenError, apsw.NotADBError, apsw.CorruptError, apsw.ReadOnlyError, apsw.IOError)
_FIELDS = ("title", "body", "concepts", "facts", "files", "context")


def connect(path: Path, synchronous: str = "FULL") -> apsw.Connection:
    """Open a connection the way every one of ours is opened."""
    connection = apsw.Connection(str(path), statementcachesize=200)
    connection.set_busy_timeout(BUSY_MS)
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except apsw.BusyError:
            # Turning a new file to WAL does not wait by itself while another process does the same.
            time.sleep(0.01)
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute("PRAGMA temp_store=MEMORY")
    # Each checkpoint costs two more fsyncs; the default of 1,000 pages is a few dozen memories.
    connection.execute("PRAGMA wal_autocheckpoint=8000")
    return connection


def drive(body: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that awaits nothing but our own statements to its end."""
    try:
        body.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    body.close()
    raise RuntimeError("A transaction's body awaited something that is not a statement.")


@dataclass(slots=True)
class SqliteTx:
    """A transaction on one connection; its coroutines never suspend."""

    connection: apsw.Connection
    matrices: "Callable[[], vectors.Matrices] | None" = None

    async def all(self, sql: str, **values: Value) -> list[Row]:
        cursor = self.connection.execute(dialect.sqlite(sql), bound(values))
        try:
            names = [column[0] for column in cursor.get_description()]
        except apsw.ExecutionCompleteError:
            return []
        return [dict(zip(names, row, strict=True)) for row in cursor]

    async def one(self, sql: str, **values: Value) -> Row | None:
        rows = await self.all(sql, **values)
        return rows[0] if rows else None

    async def planned(self, sql: str, **values: Value) -> list[Row]:
        return await self.all(sql, **values)

    async def gather(self, *asked: Asked) -> list[list[Row]]:
        return [await self.all(sql, **values) for sql, values in asked]

    async def run(self, sql: str, **values: Value) -> int:
        self.connection.execute(dialect.sqlite(sql), bound(values))
        return self.connection.changes()

    async def many(self, sql: str, rows: Sequence[Mapping[str, Value]]) -> None:
        self.connection.executemany(dialect.sqlite(sql), [bound(row) for row in rows])

    async def index(self, doc: Doc) -> None:
        await self.unindex(doc.org, doc.bank, [doc.id])
        fields = {name: f" {' '.join(getattr(doc, name))} " for name in _FIELDS}
        self.connection.execute(
            "INSERT INTO search_docs (id, org, bank, title, body, concepts, facts, files, context, length)"
            " VALUES (:id, :org, :bank, :title, :body, :concepts, :facts, :files, :context, :length)",
            {"id": doc.id, "org": doc.org, "bank": doc.bank, "length": doc.length, **fields},
        )
        self.connection.execute(
            "INSERT INTO search (rowid, title, body, concepts, facts, files, context)"
            " VALUES (:id, :title, :body, :concepts, :facts, :files, :context)",
            {"id": doc.id, **fields},
        )

    async def unindex(self, org: int, bank: int, ids: Sequence[int]) -> None:
        rows = await self.all(
            "SELECT id, title, body, concepts, facts, files, context FROM search_docs"
            " WHERE id = ANY_INT(:ids) AND org = :org AND bank = :bank",
            ids=ids,
            org=org,
            bank=bank,
        )
        if not rows:
            return
        # An external-content index forgets a row only when told the very words it holds.
        self.connection.executemany(
            "INSERT INTO search (search, rowid, title, body, concepts, facts, files, context)"
            " VALUES ('delete', :id, :title, :body, :concepts, :facts, :files, :context)",
            rows,
        )
        self.connection.executemany("DELETE FROM search_docs WHERE id = :id", rows)

    async def search_text(self, wanted: Wanted) -> list[Found]:
        groups = [f"({' AND '.join(quoted(word) for word in group)})" for group in wanted.groups if group]
        if not groups:
            return []
        # CROSS JOIN keeps the index first: the planner would otherwise walk the bank and probe each document.
        rows = self.connection.execute(
            "SELECT d.id, d.title, d.body, d.context, d.length, d.concepts || d.facts || d.files"
            " FROM search s CROSS JOIN search_docs d ON d.id = s.rowid"
            " WHERE search MATCH :match AND d.org = :org AND d.bank = :bank ORDER BY s.rowid DESC LIMIT :limit",
            {"match": " OR ".join(groups), "org": wanted.org, "bank": wanted.bank, "limit": wanted.limit},
        )
        return [Found(*row) for row in rows]

    async def match(self, match: Match) -> list[int]:
        rows = self.connection.execute(
            "SELECT m.id FROM search s CROSS JOIN memories m ON m.org = :org AND m.bank = :bank AND m.id = s.rowid"
            " WHERE search MATCH :match AND s.rowid < :below AND (m.kind = 'summary') = :summaries"
            " AND m.state = 'live' AND m.superseded_at IS NULL ORDER BY s.rowid DESC LIMIT :limit",
            {
                "org": match.org,
                "bank": match.bank,
                "match": queries.fts5(match.tree, match.letters),
                "below": match.below,
                "summaries": match.summaries,
                "limit": match.limit,
            },
        )
        return [int(row[0]) for row in rows]

    async def put_vector(self, row: VectorRow) -> None:
        self.connection.execute(
            "INSERT INTO vectors (org, bank, memory, model, vec, text_hash, seq)"
            " VALUES (:org, :bank, :memory, :model, :vec, :text_hash, :seq)"
            " ON CONFLICT (org, bank, memory) DO UPDATE SET model = excluded.model, vec = excluded.vec,"
            " text_hash = excluded.text_hash, seq = excluded.seq",
            {
                "org": row.org,
                "bank": row.bank,
                "memory": row.memory,
                "model": row.model,
                "vec": vectors.packed(row.vector),
                "text_hash": row.text_hash,
                "seq": row.seq,
            },
        )

    async def search_vectors(self, *asked: Nearest) -> list[list[tuple[int, float]]]:
        if self.matrices is None:
            raise RuntimeError("Vectors are searched in a reading transaction.")
        return [self.matrices().search(self.connection, nearest) for nearest in asked]

    async def within(self, org: int) -> None:
        """Nothing is walled off here: every statement names its org."""

    async def aside(self, work: Callable[[], T]) -> T:
        # A reader has a thread of its own already.
        return work()

    async def lock_audit(self, org: int, bank: int) -> Row | None:
        return await self.one("SELECT n, hash FROM audit_heads WHERE org = :org AND bank = :bank", org=org, bank=bank)


def bound(values: Mapping[str, Value]) -> dict[str, Any]:
    """Lists travel as JSON, everything else as it is."""
    return {name: json.dumps(value) if isinstance(value, (list, tuple)) else value for name, value in values.items()}


def quoted(word: str) -> str:
    """A word of ours as an FTS5 string."""
    return '"' + word.replace('"', '""') + '"'


@dataclass(slots=True)
class Waiting:
    """A caller in the writer's queue."""

    body: Callable[[Tx], Coroutine[Any, Any, Any]]
    answer: "futures.Future[Any]"


class Writer:
    """The one thread that writes: everyone who waits shares the next commit."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self._path, self._synchronous = path, synchronous
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name=f"writer {path.name}", daemon=True)
        self._thread.start()

    async def run(self, body: Body[T]) -> T:
        """Queue a body and wait until its commit is durable."""
        answer: futures.Future[T] = futures.Future()
        self._queue.put(Waiting(body, answer))
        # A caller that goes away must not leave the others' transaction in doubt: the write goes on.
        return await asyncio.shield(asyncio.wrap_future(answer))

    async def close(self) -> None:
        """Finish what is queued, then end the thread."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _loop(self) -> None:
        connection = connect(self._path, self._synchronous)
        while (first := self._queue.get()) is not None:
            group = [first]
            while len(group) < GROUP and not self._queue.empty():
                following = self._queue.get()
                if following is None:
                    self._queue.put(None)
                    break
                group.append(following)
            self._commit(connection, group)
        connection.close()

    def _commit(self, connection: apsw.Connection, group: list[Waiting]) -> None:
        done: list[tuple[Waiting, Any]] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            for waiting in group:
                done += self._one(connection, waiting)
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            for waiting in group:
                if not waiting.answer.done():
                    waiting.answer.set_exception(error)
            return
        for waiting, value in done:
            waiting.answer.set_result(value)

    def _one(self, connection: apsw.Connection, waiting: Waiting) -> list[tuple[Waiting, Any]]:
        """Run one body in its savepoint, so that its failure harms no other in the group."""
        connection.execute("SAVEPOINT one")
        try:
            value = drive(waiting.body(SqliteTx(connection)))
        except apsw.FullError:
            raise
        except BaseException as error:
            connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")
            waiting.answer.set_exception(error)
            return []
        connection.execute("RELEASE one")
        return [(waiting, value)]


class Sqlite:
    """A database in one file, with the counters in another beside it."""

    name = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = Writer(path, "FULL")
        self._counters = Writer(path.with_name("counters.db"), "OFF")
        self._readers = futures.ThreadPoolExecutor(READERS, thread_name_prefix="reader")
        self._local = threading.local()
        self._open: list[apsw.Connection] = []
        self._matrices: vectors.Matrices | None = None

    async def read(self, org: int, body: Body[T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, body)

    async def write(self, org: int, body: Body[T]) -> T:
        return await self._writer.run(body)

    async def look(self, body: Body[T]) -> T:
        # Asked of every request and answered from one index page: a thread would cost ten times the answer.
        return self._read(body)

    async def claim(self, body: Body[T]) -> T:
        return await self._writer.run(body)

    async def volatile(self, body: Body[T]) -> T:
        return await self._counters.run(body)

    async def index_model(self, model: int, dim: int) -> None:
        """Nothing to prepare: the matrices in memory are made when someone searches."""

    async def drop_model(self, model: int) -> None:
        """Nothing was prepared."""

    async def settle(self) -> None:
        """Nothing to notice: every statement here names its way."""

    async def close(self) -> None:
        await self._writer.close()
        await self._counters.close()
        await asyncio.to_thread(self._readers.shutdown)
        for connection in self._open:
            connection.close()

    def _read(self, body: Body[T]) -> T:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self.path)
            connection.execute("PRAGMA query_only=ON")
            self._local.connection = connection
            self._open.append(connection)
        connection.execute("BEGIN")
        try:
            return drive(body(SqliteTx(connection, self._cache)))
        finally:
            connection.execute("ROLLBACK")

    def _cache(self) -> "vectors.Matrices":
        if self._matrices is None:
            self._matrices = vectors.Matrices()
        return self._matrices
