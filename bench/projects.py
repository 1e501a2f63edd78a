"""CPU of keystone's `search_memory` over real HTTP, with a project of many chunks from its repository."""

import asyncio
import tempfile
from pathlib import Path

from bench import corpus, load, speed
from keepsake import context, settings
from keepsake.store import banks
from keepsake.store.engine import Tx

BANK = "bench-project"


async def from_repository(loaded: settings.Settings) -> None:
    """Let every memory come from a commit, as a sync leaves it."""

    async def body(tx: Tx) -> None:
        bank = await banks.named(tx, 1, BANK)
        assert bank is not None
        await tx.run(
            "INSERT INTO sources (org, bank, id, kind, key, hash, text, created_at, uri, revision, meta)"
            " SELECT org, bank, id, 'commit', text_hash || id, text_hash, '', learned_at, '', '', '{}' FROM memories"
            " WHERE org = 1 AND bank = :bank",
            bank=bank.id,
        )
        await tx.run(
            "UPDATE memories SET source = id, kind = 'chunk', subtype = 'commit', metadata = :told"
            " WHERE org = 1 AND bank = :bank",
            told='{"type": "commit", "author": "Ada", "files": 3, "added": 20, "removed": 4}',
            bank=bank.id,
        )

    async with context.open(loaded) as app:
        await app.store.write(1, body)
        await app.store.engine.settle()


def measured(count: int, url: str = "") -> dict[str, float]:
    """Milliseconds of CPU a search of one project with so many chunks."""
    with tempfile.TemporaryDirectory() as folder:
        load.main(Path(folder), url, BANK, count)
        asyncio.run(from_repository(settings.load({}, data_dir=Path(folder), database_url=url or None)))
        asked = corpus.questions(400, corpus.memories(count))
        with speed.server(Path(folder), url) as (address, pid):
            client = speed.Client(address, path="/api/mcp")
            given: list[dict[str, object]] = [{"projectSlugs": [BANK], "query": query} for query in asked]
            client.call("search_memory", given[0])
            client.call("get_project_status", {"projectSlug": BANK})
            spent = speed.spent(pid, url)
            searched = speed.per_call(client, spent, "search_memory", given)
            listed = speed.per_call(client, spent, "list_projects", [{}] * 100)
            status = speed.per_call(client, spent, "get_project_status", [{"projectSlug": BANK}] * 100)
            return {"search ms CPU": searched, "list ms CPU": listed, "status ms CPU": status}
