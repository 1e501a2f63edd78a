"""Vectors in PostgreSQL: how a bank is searched, and the index that each model has."""

import re
import struct
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import asyncpg

from keepsake.core.errors import Conflict
from keepsake.core.lazy import lazy
from keepsake.store.engine import Nearest

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

# Backend CPU at a limit of 100, on an otherwise quiet machine: reading every vector of a bank takes 0.4 to 1 ms a
# thousand; reading their signs from an index and scoring the best again 1 ms and 0.2 ms a thousand; the graph 2.5 ms
# with 256 dimensions and 6 with 384, divided by the bank's share of its partition, as rows of other banks are skipped.
# On real text with 256 dimensions signs find 0.99 of the ten best but 0.89 of the hundred, the graph 0.97 and 0.96.
Way = Literal["every", "signs", "graph", "among"]
#: How a bank is searched under a model, how many vectors it had then, and until when that holds.
Ways = dict[tuple[int, int], tuple[Way, int, float]]
SMALL = 4_000
#: Rows of the bank times its share of the partition, from which on the graph is the cheaper way.
WORTH = 3_000
COUNTED = 200_000
#: Seconds for which a choice stands.
CHOICE_S = 60
#: The advisory lock under which a model's index is made.
INDEXING = 7_208_118_432

_PLACE = re.compile(r"\$(\d+)")
_BANK = "FROM vectors WHERE org = $1 AND bank = $2 AND model = $3"
_EVERY = "SELECT memory, away FROM keepsake_every($1, $2, $3, $4, $5)"
# One look-up a memory, by the primary key, whatever the planner knows of the bank.
_THESE = (
    "SELECT v.memory, v.vec <#> $4 AS away FROM unnest({ids}::bigint[]) AS wanted (memory) CROSS JOIN LATERAL"
    " (SELECT memory, vec, model FROM vectors WHERE org = $1 AND bank = $2 AND memory = wanted.memory OFFSET 0) v"
    " WHERE v.model = $3"
)
_AMONG = _THESE.format(ids="$6") + " ORDER BY 2 LIMIT $5"
_SIGNS = (
    f"SELECT memory, vec <#> $4 AS away {_BANK} AND memory = ANY(ARRAY("
    f"SELECT memory {_BANK} ORDER BY bits <~> binary_quantize($4) LIMIT $6)) ORDER BY 2 LIMIT $5"
)
_GRAPH = "SELECT memory, away FROM keepsake_walk($1, $2, $3, $4, $5)"
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


async def search(connection: Any, known: Ways, asked: Sequence[Nearest]) -> list[list[tuple[int, float]]]:
    """Answer several searches with one statement: memories and their cosines, nearest first."""
    ways = [await _way(connection, known, one) for one in asked]
    statements: list[str] = []
    values: list[Any] = []
    for n, ((way, held), nearest) in enumerate(zip(ways, asked, strict=True)):
        # Of a model that holds few, all are near enough.
        sql, given = _searched(way, nearest if 2 * held > nearest.limit else replace(nearest, also=()))
        statements.append(f"SELECT {n} AS n, memory, away FROM ({_shifted(sql, len(values))}) AS model_{n}")
        values += given
    found: list[dict[int, float]] = [{} for _ in asked]
    for n, memory, away in await connection.fetch(" UNION ALL ".join(statements), *values):
        found[n][memory] = -away
    # The graph is read in relaxed order, which is nearly sorted.
    return [sorted(one.items(), key=lambda near: -near[1]) for one in found]


async def _way(connection: Any, known: Ways, nearest: Nearest) -> tuple[Way, int]:
    """How a bank is searched under a model, and about how many vectors it has."""
    if nearest.among is not None:
        return "among", COUNTED
    chosen = known.get((nearest.bank, nearest.model))
    if chosen and time.monotonic() < chosen[2]:
        return chosen[0], chosen[1]
    sizes = (nearest.org, nearest.bank, nearest.model, COUNTED, len(nearest.vector))
    row = await connection.fetchrow(_SIZES, *sizes)
    held, indexed = row["held"], row["indexed"]
    way: Way = "every" if held < SMALL else "signs"
    if indexed is not None and held >= SMALL and held * held >= WORTH * max(indexed, held):
        way = "graph"
    if len(known) >= 10_000:
        known.clear()
    known[nearest.bank, nearest.model] = way, held, time.monotonic() + CHOICE_S
    return way, held


def _searched(way: Way, nearest: Nearest) -> tuple[str, tuple[Any, ...]]:
    """The statement that searches in this way, and its values."""
    values: tuple[Any, ...] = (nearest.org, nearest.bank, nearest.model, nearest.vector, nearest.limit)
    sql = {"every": _EVERY, "signs": _SIGNS, "among": _AMONG, "graph": _GRAPH}[way]
    if way == "signs":
        values += (max(400, 8 * nearest.limit),)
    if way == "among":
        values += (nearest.among,)
    if nearest.also:
        sql = f"({sql}) UNION ALL ({_THESE.format(ids=f'${len(values) + 1}')})"
        values += (nearest.also,)
    return sql, values


@lru_cache(maxsize=128)
def _shifted(sql: str, by: int) -> str:
    """A statement whose parameters stand behind so many others."""
    return _PLACE.sub(lambda place: f"${int(place[1]) + by}", sql) if by else sql


async def index(url: str, model: int, dim: int) -> None:
    """Give a model its index on every partition; searches read every row until it is there."""
    connection = await asyncpg.connect(url)
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


async def _index_partition(connection: Any, table: str, valid: bool | None, model: int, dim: int) -> None:
    if valid is False:
        await connection.execute(f"DROP INDEX {table}_model_{model:d}")
    if not valid:
        await connection.execute(
            f"CREATE INDEX CONCURRENTLY {table}_model_{model:d} ON {table}"
            f" USING hnsw ((vec::halfvec({dim:d})) halfvec_ip_ops) WHERE model = {model:d}"
        )


async def unindex(url: str, model: int) -> None:
    """Drop a model's index on every partition."""
    connection = await asyncpg.connect(url)
    try:
        if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", INDEXING):
            raise Conflict("Another process is making an index. Try again when it is done.")
        for row in await connection.fetch(
            "SELECT c.relname AS name FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid"
            " WHERE h.inhparent = 'vectors'::regclass ORDER BY c.relname"
        ):
            await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {row['name']}_model_{model:d}")
    finally:
        await connection.close()
