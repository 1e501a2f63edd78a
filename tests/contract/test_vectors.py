"""Vectors on both stores: the nearest come first, of one bank and one model, and what is gone is not found."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from keepsake.store import banks
from keepsake.store.engine import Nearest, Tx, VectorRow
from keepsake.store.store import Store

ORG, BANK = 1, 42


def towards(*parts: float) -> npt.NDArray[np.float32]:
    vector = np.array(parts, np.float32)
    return vector / np.linalg.norm(vector)


async def put(store: Store, memory: int, vector: npt.NDArray[np.float32], model: int = 1, bank: int = BANK) -> None:
    async def body(tx: Tx) -> None:
        await tx.run(
            "INSERT INTO bank_seq (org, bank, seq, purges) VALUES (:org, :bank, 0, 0)"
            " ON CONFLICT (org, bank) DO NOTHING",
            org=ORG,
            bank=bank,
        )
        await tx.put_vector(VectorRow(ORG, bank, memory, model, vector, "hash", await banks.step(tx, ORG, bank)))

    await store.write(ORG, body)


async def near(store: Store, vector: npt.NDArray[np.float32], **narrowed: object) -> list[tuple[int, float]]:
    nearest = replace(Nearest(ORG, BANK, 1, vector, 10), **narrowed)
    [rows] = await store.read(nearest.org, lambda tx: tx.search_vectors(nearest))
    return [(memory, round(cosine, 2)) for memory, cosine in rows]


async def test_the_nearest_vectors_come_first_with_their_cosines(store: Store) -> None:
    await put(store, 1, towards(0, 1, 0))
    await put(store, 2, towards(1, 0, 0))
    await put(store, 3, towards(3, 4, 0))
    await put(store, 4, towards(1, 0, 0), bank=43)

    assert await near(store, towards(1, 0, 0)) == [(2, 1.0), (3, 0.6), (1, 0.0)]
    assert await near(store, towards(1, 0, 0), limit=1) == [(2, 1.0)]
    assert await near(store, towards(1, 0, 0), among=[1, 3, 4, 99]) == [(3, 0.6), (1, 0.0)]
    assert await near(store, towards(1, 0, 0), among=[]) == []
    assert await near(store, towards(1, 0, 0), limit=1, also=[1, 2, 4, 99]) == [(2, 1.0), (1, 0.0)]
    assert await near(store, towards(1, 0, 0), limit=1, among=[1, 3], also=[1]) == [(3, 0.6), (1, 0.0)]
    assert await near(store, towards(1, 0, 0), org=2) == []
    assert await near(store, towards(1, 0, 0), bank=44) == []


async def test_a_memory_has_one_vector_under_one_model(store: Store) -> None:
    await put(store, 1, towards(1, 0, 0), model=1)
    assert await near(store, towards(1, 0, 0)) == [(1, 1.0)]

    await put(store, 1, towards(0, 1, 0, 0), model=2)

    assert await near(store, towards(1, 0, 0)) == []
    assert await near(store, towards(0, 1, 0, 0), model=2) == [(1, 1.0)]


async def test_a_replaced_vector_is_searched_by_its_new_direction(store: Store) -> None:
    await put(store, 1, towards(1, 0, 0))
    assert await near(store, towards(1, 0, 0)) == [(1, 1.0)]

    await put(store, 1, towards(0, 1, 0))

    assert await near(store, towards(1, 0, 0)) == [(1, 0.0)]


async def test_a_deleted_vector_is_gone_at_once(store: Store) -> None:
    await put(store, 1, towards(1, 0, 0))
    await put(store, 2, towards(0, 1, 0))
    assert len(await near(store, towards(1, 0, 0))) == 2

    async def body(tx: Tx) -> None:
        await tx.run("DELETE FROM vectors WHERE org = :org AND bank = :bank AND memory = 1", org=ORG, bank=BANK)
        await banks.purged(tx, ORG, BANK)

    await store.write(ORG, body)

    assert await near(store, towards(1, 0, 0)) == [(2, 0.0)]


async def test_a_stored_vector_reads_as_float32_bytes(store: Store) -> None:
    await put(store, 1, towards(3, 4, 0))

    row = await store.read(ORG, lambda tx: tx.one("SELECT vec FROM vectors"))

    assert row is not None
    assert np.allclose(np.frombuffer(row["vec"], np.float32), [0.6, 0.8, 0], atol=1e-3)
