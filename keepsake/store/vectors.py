"""SQLite's vectors in memory: per bank and model an int8 matrix, the best rescored with the stored floats.

The matrix is a cache that any process may hold and none trusts: it catches up with the bank's sequence before
each search, and what it finds is scored again from the table, so a forgotten memory never comes back.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any

import apsw
import numkong
import numpy as np
import numpy.typing as npt

from keepsake.store.engine import Nearest

Floats = npt.NDArray[np.float32]
#: Memory for all matrices together; the bank used longest ago goes first.
ROOM = 512 * 1024 * 1024
RESCORED = 48


def packed(vector: Floats) -> bytes:
    """A vector as it is stored."""
    return np.ascontiguousarray(vector, dtype=np.float32).tobytes()


def quantised(rows: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Rows as int8 with the scale that each needs."""
    scales = np.maximum(np.abs(rows).max(axis=1), 1e-9).astype(np.float32) / 127
    return np.rint(rows / scales[:, None]).astype(np.int8), scales


@dataclass(slots=True)
class Matrix:
    """The vectors of one bank under one model, with room to grow."""

    dim: int
    ids: npt.NDArray[np.int64] = field(init=False)
    rows: npt.NDArray[np.int8] = field(init=False)
    scales: Floats = field(init=False)
    places: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._grow(256)

    def _grow(self, size: int) -> None:
        ids, rows, scales = (
            np.zeros(size, np.int64),
            np.zeros((size, self.dim), np.int8),
            np.zeros(size, np.float32),
        )
        count = len(self.places)
        if count:
            ids[:count], rows[:count], scales[:count] = self.ids[:count], self.rows[:count], self.scales[:count]
        self.ids, self.rows, self.scales = ids, rows, scales

    def put(self, ids: list[int], vectors: Floats) -> None:
        """Add rows, or replace those that are there."""
        need = len(self.places) + len(ids)
        if need > len(self.ids):
            self._grow(max(need, 2 * len(self.ids)))
        rows, scales = quantised(vectors)
        at = np.array([self.places.setdefault(id, len(self.places)) for id in ids], np.int64)
        self.ids[at], self.rows[at], self.scales[at] = ids, rows, scales

    def drop(self, id: int) -> None:
        """Take a row out; the last one moves into its place."""
        place = self.places.pop(id, None)
        if place is None:
            return
        last = len(self.places)
        if place != last:
            moved = int(self.ids[last])
            self.ids[place], self.rows[place], self.scales[place] = moved, self.rows[last], self.scales[last]
            self.places[moved] = place

    def nearest(self, vector: Floats, limit: int, among: npt.NDArray[np.int64] | None) -> list[int]:
        """The ids whose quantised rows point most in the vector's direction."""
        count = len(self.places)
        if not count:
            return []
        query, _ = quantised(vector[None, :])
        dots = np.asarray(numkong.cdist(query, self.rows[:count], "dot"), dtype=np.float32).reshape(-1)
        scores = dots * self.scales[:count]
        ids = self.ids[:count]
        if among is not None:
            kept = np.isin(ids, among)
            scores, ids = scores[kept], ids[kept]
        if len(ids) > limit:
            best = np.argpartition(scores, -limit)[-limit:]
            scores, ids = scores[best], ids[best]
        return [int(id) for id in ids[np.argsort(-scores)]]

    @property
    def size(self) -> int:
        """Bytes held."""
        return self.rows.nbytes + self.scales.nbytes + self.ids.nbytes + 100 * len(self.places)


@dataclass(slots=True)
class Bank:
    """What is in memory of one bank."""

    seq: int = 0
    purges: int = 0
    models: dict[int, Matrix] = field(default_factory=dict)


class Matrices:
    """The matrices of the banks searched lately."""

    def __init__(self) -> None:
        self._banks: OrderedDict[int, Bank] = OrderedDict()
        self._lock = threading.Lock()

    def search(self, connection: apsw.Connection, nearest: Nearest) -> list[tuple[int, float]]:
        """Find the nearest memories as of the connection's snapshot."""
        vector = np.asarray(nearest.vector, dtype=np.float32)
        found = self._nearest(connection, nearest, vector)
        seen = {id for id, _ in found}
        also = [id for id in nearest.also if id not in seen]
        if also:
            found += self._rescored(connection, replace(nearest, limit=len(also)), vector, also)
        return sorted(found, key=lambda one: -one[1])

    def _nearest(self, connection: apsw.Connection, nearest: Nearest, vector: Floats) -> list[tuple[int, float]]:
        if nearest.among is not None and len(nearest.among) <= nearest.limit:
            return self._rescored(connection, nearest, vector, list(nearest.among))
        among = None if nearest.among is None else np.array(nearest.among, np.int64)
        with self._lock:
            matrix = self._fresh(connection, nearest.org, nearest.bank).models.get(nearest.model)
            rough = matrix.nearest(vector, max(nearest.limit, RESCORED), among) if matrix else []
        return self._rescored(connection, nearest, vector, rough)

    def _rescored(
        self, connection: apsw.Connection, nearest: Nearest, vector: Floats, rough: list[int]
    ) -> list[tuple[int, float]]:
        rows: list[Any] = connection.execute(
            "SELECT memory, vec FROM vectors WHERE org = ? AND bank = ? AND model = ?"
            " AND memory IN (SELECT value FROM json_each(?))",
            (nearest.org, nearest.bank, nearest.model, f"[{','.join(map(str, rough))}]"),
        ).fetchall()
        if not rows:
            return []
        exact = np.frombuffer(b"".join(row[1] for row in rows), np.float32).reshape(len(rows), -1) @ vector
        best = np.argsort(-exact, kind="stable")[: nearest.limit]
        return [(rows[n][0], float(exact[n])) for n in best]

    def _fresh(self, connection: apsw.Connection, org: int, id: int) -> Bank:
        """Catch up with the bank: new rows by sequence, purges by comparing ids."""
        bank = self._banks.setdefault(id, Bank())
        self._banks.move_to_end(id)
        row = connection.execute("SELECT seq, purges FROM bank_seq WHERE org = ? AND bank = ?", (org, id)).fetchone()
        seq, purges = row or (0, 0)
        if seq < bank.seq:
            return bank
        if purges != bank.purges:
            self._drop_missing(connection, org, id, bank)
        if seq != bank.seq:
            self._take_new(connection, org, id, bank)
        bank.seq, bank.purges = seq, purges
        self._make_room(keep=id)
        return bank

    def _take_new(self, connection: apsw.Connection, org: int, id: int, bank: Bank) -> None:
        rows: list[Any] = connection.execute(
            "SELECT memory, model, vec FROM vectors WHERE org = ? AND bank = ? AND seq > ? ORDER BY memory",
            (org, id, bank.seq),
        ).fetchall()
        by_model: dict[int, list[tuple[int, bytes]]] = {}
        for memory, model, vec in rows:
            by_model.setdefault(model, []).append((memory, vec))
        for model, found in by_model.items():
            for other, matrix in bank.models.items():
                if other != model:
                    for memory, _ in found:
                        matrix.drop(memory)
            vectors = np.frombuffer(b"".join(vec for _, vec in found), np.float32).reshape(len(found), -1)
            bank.models.setdefault(model, Matrix(vectors.shape[1])).put([memory for memory, _ in found], vectors)

    def _drop_missing(self, connection: apsw.Connection, org: int, id: int, bank: Bank) -> None:
        rows = connection.execute("SELECT memory FROM vectors WHERE org = ? AND bank = ?", (org, id))
        alive = {row[0] for row in rows}
        for matrix in bank.models.values():
            for memory in matrix.places.keys() - alive:
                matrix.drop(memory)

    def _make_room(self, keep: int) -> None:
        held = sum(matrix.size for bank in self._banks.values() for matrix in bank.models.values())
        while held > ROOM and len(self._banks) > 1:
            id, oldest = next(iter(self._banks.items()))
            if id == keep:
                break
            del self._banks[id]
            held -= sum(matrix.size for matrix in oldest.models.values())
