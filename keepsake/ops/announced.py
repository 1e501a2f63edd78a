"""What GitHub announces: a repository has changed, so the banks that learn from it look again."""

from dataclasses import replace

from keepsake.context import App
from keepsake.core import log
from keepsake.core.principal import LOCAL_ORG
from keepsake.store import banks, jobs, repos
from keepsake.store.engine import Tx

#: The cursor that says that something was deleted, which no list of GitHub's tells.
DELETED = "github_deleted"


async def changed(app: App, full_name: str) -> None:
    """Sync every bank that learns from this repository; asked again before it has begun, it is still one sync."""
    await _asked(app, full_name, is_deletion=False)


async def deleted(app: App, full_name: str) -> None:
    """The same, and look for what is no longer there."""
    await _asked(app, full_name, is_deletion=True)


async def _asked(app: App, full_name: str, *, is_deletion: bool) -> None:
    async def body(tx: Tx) -> int:
        found = await repos.named(tx, LOCAL_ORG, full_name)
        for repo in found:
            await banks.step(tx, repo.org, repo.bank)
            # Only now nobody else changes it.
            now = await repos.get(tx, repo.org, repo.bank) if is_deletion else None
            if now is not None:
                await repos.put(tx, replace(now, cursors={**now.cursors, DELETED: True}))
            await jobs.wanted(tx, app.store, repo.org, repo.bank, "sync", app.now())
        return len(found)

    count = await app.store.write(LOCAL_ORG, body)
    log.info("GitHub announced a change", banks=count)
    app.work.set()
