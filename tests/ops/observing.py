"""Memories as a coding session leaves them, written at once and by the product's own hands."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core import text
from keepsake.core.clock import HOUR
from keepsake.core.principal import Principal, local_owner
from keepsake.ops import storing
from keepsake.store import banks, files
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory
from keepsake.tools import catalog

ORG = 1
#: 2026-03-01T12:00:00Z, in microseconds.
NOON = 1_772_366_400_000_000
Kiro = Callable[..., Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Seen:
    """An observation, or whatever else the kind says."""

    text: str
    title: str = ""
    kind: str = "observation"
    subtype: str = "file-write"
    at: int = NOON
    tags: tuple[str, ...] = ()
    parts: dict[str, object] | None = None
    tokens: int = 28
    source: int | None = None
    #: Files that it read and that it wrote.
    read: Sequence[str] = ()
    wrote: Sequence[str] = ()


async def observed(app: App, *seen: Seen, bank: str = "my-api") -> list[int]:
    """Store them in a bank, and tell their ids."""
    model = await app.embedding.static_model(app.store)

    async def body(tx: Tx) -> list[int]:
        into = await banks.named(tx, ORG, bank) or await banks.create(tx, app.store, ORG, bank)
        assert into is not None
        seq = await banks.step(tx, ORG, into.id)
        made = []
        for one in seen:
            memory = _memory(app, into.id, one, seq)
            await storing.store(tx, app, memory, model)
            await _touched(tx, memory, one)
            made.append(memory.id)
        return made

    return await app.store.write(ORG, body)


def _memory(app: App, bank: int, seen: Seen, seq: int) -> Memory:
    return Memory(
        org=ORG,
        bank=bank,
        id=app.store.new_id(),
        kind=seen.kind,
        fact_type="experience",
        text=seen.text,
        learned_at=app.now(),
        author="local",
        text_hash=text.digest(seen.text),
        tokens=seen.tokens,
        seq=seq,
        subtype=seen.subtype if seen.kind == "observation" else "",
        title=seen.title,
        parts=seen.parts or {},
        tags=seen.tags,
        event_at=seen.at,
        source=seen.source,
    )


async def _touched(tx: Tx, memory: Memory, seen: Seen) -> None:
    found = [files.Touched(memory.id, path, False, seen.at) for path in seen.read]
    found += [files.Touched(memory.id, path, True, seen.at) for path in seen.wrote]
    await files.add(tx, ORG, memory.bank, found)


def asking(app: App, who: Principal | None = None, bank: str | None = None) -> Kiro:
    """Calls a tool of kiro; gives its result as clients see it."""
    door = dispatch.Door(catalog.DIALECTS["kiro"])
    principal = who or local_owner()

    async def called(tool: str, /, **arguments: Any) -> dict[str, Any]:
        result = await dispatch.call_tool(app.ctx(principal, bank), door, tool, arguments)
        return result.model_dump(mode="json", exclude_none=True)

    return called


@pytest.fixture
def app(app: App) -> App:
    """The application an hour after it all."""
    return replace(app, now=lambda: NOON + HOUR)


@pytest.fixture
def kiro(app: App) -> Kiro:
    """Call a tool of kiro as the local owner."""
    return asking(app)


def titles(found: list[dict[str, Any]]) -> list[str]:
    """What was found, by title."""
    return [one["title"] for one in found]
