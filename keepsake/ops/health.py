"""Whether the store answers, and what waits to be done."""

from keepsake.context import App
from keepsake.store import jobs
from keepsake.store.engine import Tx


async def ready(app: App) -> None:
    """Ask the store for something; raises when it does not answer."""

    async def body(tx: Tx) -> None:
        await tx.one("SELECT org FROM orgs LIMIT 1")

    await app.store.engine.look(body)


async def waiting(app: App) -> dict[str, int]:
    """Jobs by state, over all orgs."""
    return await app.store.engine.look(jobs.counts)
