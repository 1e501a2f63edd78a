"""CPU of the brief and of the graph over real HTTP, with a project of many memories."""

import asyncio
import tempfile
from pathlib import Path

import httpx

from bench import context, speed
from keepsake import context as keepsake_context
from keepsake import settings
from keepsake.store import banks, relations
from keepsake.store.engine import Tx

BANK = "bench-brief"
MILESTONES, RELATIONS = 100, 300


class Rest(speed.Client):
    """A client of the operations themselves."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=60)

    def call(self, name: str, arguments: dict[str, object]) -> dict[str, object]:
        """One operation."""
        reply = self.http.post(f"/v1/operations/{name}", json=arguments)
        reply.raise_for_status()
        found: dict[str, object] = reply.json()
        return found


async def connect(loaded: settings.Settings) -> None:
    """Make some of the memories milestones, and relate them."""
    async with keepsake_context.open(loaded) as app:

        async def body(tx: Tx) -> None:
            bank = await banks.named(tx, 1, BANK)
            assert bank is not None
            rows = await tx.all("SELECT id FROM memories WHERE org = 1 AND bank = :bank ORDER BY id", bank=bank.id)
            ids = [row["id"] for row in rows]
            every = len(ids) // MILESTONES
            await tx.run(
                "UPDATE memories SET kind = 'milestone' WHERE org = 1 AND bank = :bank AND id = ANY_INT(:ids)",
                bank=bank.id,
                ids=ids[7::every],
            )
            for n in range(RELATIONS):
                ends = ids[(n * 37) % len(ids)], ids[(n * 53 + 11) % len(ids)]
                edge = relations.Relation(
                    1, bank.id, *ends, "depends_on", "memory", "memory", "", "bench", app.now() + n
                )
                await relations.put(tx, edge)

        await app.store.write(1, body)
        await app.store.engine.settle()


def measured(count: int, url: str = "") -> dict[str, float]:
    """Milliseconds of CPU a call."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = settings.load({}, data_dir=Path(folder), database_url=url or None)
        asyncio.run(context.fill(loaded, count, BANK))
        asyncio.run(connect(loaded))
        with speed.server(Path(folder), url) as (address, pid):
            client, spent = Rest(address), speed.spent(pid, url)
            given: list[dict[str, object]] = [{"bank": BANK}] * 100
            return {
                f"{operation} ms CPU": speed.per_call(client, spent, operation, given)
                for operation in ("brief.get", "decision.list", "milestone.list", "graph.get")
            }
