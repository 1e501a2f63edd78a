"""A small project with a real git repository, told to a bank; and its profile."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from keepsake import dispatch, worker
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.principal import local_owner
from keepsake.ops import ingest, synthesis
from keepsake.ops import jobs as job_ops
from keepsake.ops.pieces import Piece
from keepsake.store import banks, jobs, repos
from keepsake.store.engine import Tx
from keepsake.store.repos import Repo
from tests.gitting import BEGAN, Made

ORG, BANK = 1, "shop"
README = """# Shop

[![Build](https://ci.example/badge.svg)](https://ci.example)

Shop sells **tea** to people who know what they like. It takes orders, packs them
and tells the customer.

## Usage

```
shop serve --port 80
```
"""
CONTRIBUTING = """# Contributing

Every change must come with a test. Use four spaces and never tabs.

The moon is nice.
"""
DESIGN = """# Architecture

Orders go through a queue into the packing service.

# Known limitations

Refunds are not yet implemented.
"""
ANNA, BEN = "Anna Berg <anna@shop.example>", "Ben Oak <ben@shop.example>"


def on(day: str, made: Made, message: str, author: str, **files: str | None) -> str:
    """Commit files on a day by name, `__` standing for a slash and the last `_` for a dot; None removes one."""
    made.count = (clock.parse(f"{day}T12:00:00Z") // clock.SECOND - BEGAN) // 3600 - 1
    return made.commit(
        message, {".".join(name.replace("__", "/").rsplit("_", 1)): told for name, told in files.items()}, author
    )


def project(folder: Path) -> Made:
    """A shop with five commits of two people."""
    made = Made(folder)
    code = {"src__shop__orders_py": "1\n", "src__shop__tea_py": "1\n"}
    on("2025-01-10", made, "feat: begin", ANNA, README_md=README, **code)
    on("2025-01-20", made, "docs: tell how", ANNA, CONTRIBUTING_md=CONTRIBUTING, docs__design_md=DESIGN)
    on("2026-05-01", made, "fix: count orders", BEN, src__shop__orders_py="2\n")
    on("2026-05-10", made, "fix: round prices in orders", BEN, src__shop__orders_py="3\n")
    on("2026-05-12", made, "feat: pack orders", ANNA, src__shop__orders_py="4\n", src__shop__packing_py="1\n")
    return made


async def bank_id(app: App) -> int:
    bank = await app.store.read(ORG, lambda tx: banks.named(tx, ORG, BANK))
    assert bank is not None
    return bank.id


async def repo(app: App) -> Repo:
    """How the repository of the bank stands."""
    id = await bank_id(app)
    found = await app.store.read(ORG, lambda tx: repos.get(tx, ORG, id))
    assert found is not None
    return found


async def told(app: App, pieces: Sequence[Piece]) -> None:
    """Let a sync bring these pieces, and end."""
    id = await bank_id(app)
    await app.store.write(ORG, lambda tx: jobs.add(tx, app.store, ORG, id, "told", app.now(), {}))
    job = await job_ops.claim(app, ["told"])
    assert job is not None
    await ingest.stored(app, job, await repo(app), pieces)
    await ended(app)
    await job_ops.finish(app, job)


async def ended(app: App) -> bool:
    """End a sync as the job does; tells whether it asks for a profile."""
    id = await bank_id(app)

    async def body(tx: Tx) -> bool:
        found = await repos.get(tx, ORG, id)
        assert found is not None
        after = replace(found, completed=found.completed + 1, last_synced_at=app.now(), state="completed")
        await repos.put(tx, after)
        return await synthesis.wanted(tx, app, after)

    return await app.store.write(ORG, body)


async def known(app: App, remote: str = "/nowhere") -> None:
    """Make the bank, with a repository that was never read."""

    async def body(tx: Tx) -> None:
        bank = await banks.create(tx, app.store, ORG, BANK)
        assert bank is not None
        await repos.put(tx, Repo(ORG, bank.id, remote, app.now(), app.now()))

    await app.store.write(ORG, body)


def issue(number: int, title: str, state: str = "open", day: str = "2026-05-02") -> Piece:
    """An issue as a sync brings it."""
    at = clock.parse(day)
    metadata = {"type": "issue", "date": day, "number": number, "state": state, "author": "Ben Oak"}
    return Piece("issue", f"issue/{number}", f"{day}-{state}", "issue", title, f"{title}\n\nPlease.", at, metadata)


def note(path: str, text: str, revision: str = "1", subtype: str = "note") -> Piece:
    """A note for agents, or a document, of one section."""
    kind = "readme" if subtype == "readme" else "file"
    metadata = {"type": subtype, "path": path, "start_line": 1, "end_line": 1, "blob": revision}
    return Piece(kind, path, revision, subtype, path, text, None, metadata, files=(path,))


def commit(number: int, path: str = "src/shop/orders.py", author: str = "Ben Oak", day: str = "2026-05-02") -> Piece:
    """A commit as a sync brings it."""
    sha, at = f"{number:040x}", clock.parse(f"{day}T00:00:00Z") + number * clock.SECOND
    metadata = {"type": "commit", "date": day, "sha": sha, "author": author, "merge": False}
    title = f"fix: change number {number} of the shop"
    return Piece(
        "commit", sha, "", "commit", title, title, at, metadata, {"files_modified": [path]}, (author,), (path,), True
    )


async def synced(app: App, path: Path) -> None:
    """Sync a repository, and let the background do all that follows."""
    await dispatch.call(app.ctx(local_owner(), BANK), "bank.sync", {"repo": str(path)})
    await worked(app)


async def worked(app: App) -> None:
    """Let the background do all that waits."""
    while await worker.step(app):
        pass


async def chapter(call: Any, id: str) -> dict[str, Any]:
    """A chapter of the profile as a client sees it."""
    shown: dict[str, Any] = await call("get_mental_model", mental_model_id=f"project-{id}", bank_id=BANK)
    return shown
