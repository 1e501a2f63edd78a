"""Syncs in tests: asked for, done at once, and what is stored afterwards."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keepsake import dispatch, worker
from keepsake.context import App
from keepsake.core.principal import Principal, local_owner
from keepsake.store import banks, jobs, memories, repos
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory
from keepsake.store.repos import Repo

ORG, BANK = 1, "project"


async def ask(app: App, repo: Path | str | None = None, bank: str = BANK, who: Principal | None = None) -> Any:
    """Ask for a sync."""
    given = {"bank": bank, **({} if repo is None else {"repo": str(repo)})}
    return await dispatch.call(app.ctx(who or local_owner()), "bank.sync", given)


async def synced(app: App, repo: Path | str | None = None, bank: str = BANK) -> jobs.Record:
    """Ask for a sync, let it be done, and tell how it ended."""
    asked = await ask(app, repo, bank)
    await worker.step(app, ["sync"])
    return await record(app, int(asked.operation), bank)


async def record(app: App, job: int, bank: str = BANK) -> jobs.Record:
    async def body(tx: Tx) -> jobs.Record | None:
        held = await banks.named(tx, ORG, bank)
        return await jobs.get(tx, ORG, held.id, job) if held else None

    found = await app.store.read(ORG, body)
    assert found is not None
    return found


async def bank_id(app: App, bank: str = BANK) -> int:
    found = await app.store.read(ORG, lambda tx: banks.named(tx, ORG, bank))
    assert found is not None
    return found.id


async def repo_of(app: App, bank: str = BANK) -> Repo:
    id = await bank_id(app, bank)
    found = await app.store.read(ORG, lambda tx: repos.get(tx, ORG, id))
    assert found is not None
    return found


async def rows(app: App, sql: str, bank: str = BANK) -> Sequence[Any]:
    """Rows of a bank."""
    id = await bank_id(app, bank)
    return await app.store.read(ORG, lambda tx: tx.all(sql, org=ORG, bank=id))


async def told(app: App, *subtypes: str, gone: bool = False, bank: str = BANK) -> list[Memory]:
    """The memories of a bank that hold, or those that no longer do, by subtype, in their order."""
    found = await rows(app, "SELECT id FROM memories WHERE org = :org AND bank = :bank ORDER BY id", bank)
    id = await bank_id(app, bank)
    held = await app.store.read(ORG, lambda tx: memories.fetched(tx, ORG, id, [row["id"] for row in found]))
    return [
        one
        for one in sorted(held.values(), key=lambda one: one.id)
        if (one.superseded_at is not None) == gone and (not subtypes or one.subtype in subtypes)
    ]
