"""Fills a store quickly: the product's own writes, but with vectors mixed from a few real ones.

Embedding 100,000 texts takes ten minutes of CPU and changes nothing about the cost of a search.
"""

import asyncio
from pathlib import Path

import numpy as np

from bench import corpus
from keepsake import context, settings
from keepsake.core import text
from keepsake.store import banks, memories, search
from keepsake.store.engine import Tx, VectorRow

BATCH = 500
SAMPLE = 1_000


async def fill(loaded: settings.Settings, bank: str, count: int) -> None:
    """Write so many memories with vectors of the sharper model."""
    random = np.random.default_rng(7)
    texts = corpus.memories(count)
    async with context.open(loaded) as app:
        model = await app.embedding.sharp_model(app.store)
        await app.store.engine.index_model(model.id, model.dim)
        real = await app.embedding.sharp(texts[:SAMPLE])

        async def body(tx: Tx, start: int) -> None:
            found = await banks.named(tx, 1, bank) or await banks.create(tx, app.store, 1, bank)
            assert found is not None
            seq = await banks.step(tx, 1, found.id)
            for content in texts[start : start + BATCH]:
                first, second = real[random.integers(len(real), size=2)]
                share = random.random()
                vector = share * first + (1 - share) * second + 0.01 * random.normal(size=model.dim)
                vector = (vector / np.linalg.norm(vector)).astype(np.float32)
                id = app.store.new_id()
                hash = text.digest(content)
                await memories.insert(
                    tx,
                    memories.Memory(
                        1, found.id, id, "note", "world", content, app.now(), "bench", hash, text.cost(content), seq
                    ),
                )
                await search.add(tx, 1, found.id, id, search.Fields(content))
                await tx.put_vector(VectorRow(1, found.id, id, model.id, vector, hash, seq))

        for start in range(0, count, BATCH):
            await app.store.write(1, lambda tx, start=start: body(tx, start))
        await app.store.engine.settle()


def main(data_dir: Path | None, url: str, bank: str, count: int) -> None:
    """Fill the store named by a folder or an address."""
    loaded = settings.load({}, data_dir=data_dir, database_url=url or None)
    asyncio.run(fill(loaded, bank, count))
