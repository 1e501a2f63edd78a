"""CPU of `get_context` over real HTTP, with a project of many observations."""

import asyncio
import tempfile
from pathlib import Path

import numpy as np

from bench import corpus, load, speed
from keepsake import context, settings
from keepsake.core import text
from keepsake.core.clock import DAY
from keepsake.store import banks, memories, search
from keepsake.store.engine import Tx, VectorRow

BANK = "bench-context"
KINDS = ("decision", "constraint", "heuristic", "rejected")
#: One observation in so many is knowledge; one memory in so many sums up a session.
KNOWLEDGE, SESSION = 250, 250


def _kind(n: int) -> str:
    if n % SESSION == SESSION - 1:
        return "summary"
    return KINDS[n // KNOWLEDGE % 4] if n % KNOWLEDGE == 0 else "observation"


async def fill(loaded: settings.Settings, count: int, name: str = BANK) -> None:
    """Write so many observations, spread over a year, with knowledge and summaries among them."""
    random = np.random.default_rng(7)
    texts = corpus.memories(count)
    async with context.open(loaded) as app:
        model = await app.embedding.sharp_model(app.store)
        await app.store.engine.index_model(model.id, model.dim)
        real = await app.embedding.sharp(texts[: load.SAMPLE])
        now = app.now()

        async def body(tx: Tx, start: int) -> None:
            bank = await banks.named(tx, 1, name) or await banks.create(tx, app.store, 1, name)
            assert bank is not None
            seq = await banks.step(tx, 1, bank.id)
            for n, told in enumerate(texts[start : start + load.BATCH], start):
                kind = _kind(n)
                memory = memories.Memory(
                    org=1,
                    bank=bank.id,
                    id=app.store.new_id(),
                    kind=kind,
                    fact_type="experience",
                    text=told,
                    learned_at=now,
                    author="bench",
                    text_hash=text.digest(told),
                    tokens=text.cost(told),
                    seq=seq,
                    subtype="file-write" if kind == "observation" else "",
                    title=" ".join(told.split()[:4]),
                    parts={"completed": told} if kind == "summary" else {"concepts": [told.split()[2]]},
                    event_at=now - (count - n) * 365 * DAY // count,
                )
                await memories.insert(tx, memory)
                await search.add(tx, 1, bank.id, memory.id, search.of(memory))
                first, second = real[random.integers(len(real), size=2)]
                vector = first + random.random() * second + 0.01 * random.normal(size=model.dim)
                vector = (vector / np.linalg.norm(vector)).astype(np.float32)
                await tx.put_vector(VectorRow(1, bank.id, memory.id, model.id, vector, memory.text_hash, seq))

        for start in range(0, count, load.BATCH):
            await app.store.write(1, lambda tx, start=start: body(tx, start))
        await app.store.engine.settle()


def measured(count: int, url: str = "") -> dict[str, float]:
    """Milliseconds of CPU a call, without a query and with one."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(fill(settings.load({}, data_dir=Path(folder), database_url=url or None), count))
        asked = corpus.questions(100, corpus.memories(count))
        with speed.server(Path(folder), url) as (address, pid):
            client = speed.Client(address, path="/kiro/mcp")
            for query in (None, asked[0]):
                client.call("get_context", {"project": BANK, **({"query": query} if query else {})})
            spent = speed.spent(pid, url)
            plain = speed.per_call(client, spent, "get_context", [{"project": BANK}] * 100)
            given: list[dict[str, object]] = [{"project": BANK, "query": query} for query in asked]
            return {"context ms CPU": plain, "query ms CPU": speed.per_call(client, spent, "get_context", given)}
