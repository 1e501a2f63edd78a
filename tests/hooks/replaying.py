"""Recorded events of each client, replayed in a project of the test's own."""

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from keepsake import worker
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.project import Project
from keepsake.hooks import clients
from keepsake.services import repository
from keepsake.store import events, memories, projects, sessions
from keepsake.store.engine import Row, Tx
from keepsake.store.events import Event
from keepsake.store.memories import Memory

EVENTS = Path(__file__).parent / "events"
ORG = 1
Json = dict[str, Any]


def folders() -> list[str]:
    """The clients and formats that are recorded."""
    return sorted(path.name for path in EVENTS.iterdir() if path.is_dir())


def client_of(folder: str) -> str:
    """The client whose events a folder holds."""
    return folder.removesuffix("-v3")


def recorded(folder: str, root: Path) -> list[tuple[str, Json]]:
    """The events of a client, as if they came from a project at this place now."""
    found = []
    for path in sorted((EVENTS / folder).glob("*.json")):
        text = path.read_text(encoding="utf-8").replace("{root}", str(root))
        text = text.replace('"{millis}"', str(clock.now() // 1_000)).replace("{now}", datetime.now(UTC).isoformat())
        found.append((path.stem[3:], json.loads(text)))
    return found


def repository_at(root: Path, remote: str = "https://github.com/acme/my-api.git") -> Path:
    """A git repository with a file to work on."""
    (root / "src").mkdir(parents=True)
    (root / "src" / "auth.ts").write_text("export function check(token: string) {\n  return true;\n}\n")
    git = ("git", "-c", "user.name=dev", "-c", "user.email=dev@example.com", "-C", str(root))
    for command in (
        ("init", "-q", "-b", "main"),
        ("remote", "add", "origin", remote),
        ("add", "."),
        ("commit", "-qm", "x"),
    ):
        subprocess.run([*git, *command], check=True, capture_output=True, env=_bare())
    return root


def _bare() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


async def tell(app: App, client: str, given: Json, root: Path) -> int:
    """Put a client's event into the inbox; tells how many of it are new."""
    found = clients.read(client, "", given, clock.now(), str(root))
    told = [Event(envelope, repository.project_of(envelope.cwd)) for envelope in found]
    return await app.store.write(ORG, lambda tx: events.put(tx, ORG, told, clock.now()))


async def worked(app: App) -> None:
    """Let the background do all that waits."""
    while await worker.step(app):
        pass


async def bank_at(app: App, root: Path) -> int:
    """The bank of the project at a place."""
    project: Project = repository.project_of(str(root))
    bank = await app.store.read(ORG, lambda tx: projects.find(tx, ORG, project))
    assert bank is not None
    return bank


async def kept(app: App, root: Path, *kinds: str) -> list[Memory]:
    """What holds of these kinds in a project, in the order of its making."""
    bank = await bank_at(app, root)

    async def body(tx: Tx) -> list[Memory]:
        rows = await tx.all(
            "SELECT id FROM memories WHERE org = :org AND bank = :bank AND kind = ANY_TEXT(:kinds)"
            " AND superseded_at IS NULL AND state = 'live'",
            org=ORG,
            bank=bank,
            kinds=list(kinds),
        )
        found = await memories.fetched(tx, ORG, bank, [row["id"] for row in rows])
        return sorted(found.values(), key=lambda memory: memory.id)

    return await app.store.read(ORG, body)


async def all_rows(app: App, sql: str) -> list[Row]:
    """Rows of the store, whatever the bank."""
    return await app.store.read(ORG, lambda tx: tx.all(sql))


async def session_named(app: App, root: Path, key: str) -> sessions.Session | None:
    """A session of a project."""
    bank = await bank_at(app, root)
    return await app.store.read(ORG, lambda tx: sessions.named(tx, ORG, bank, key))
