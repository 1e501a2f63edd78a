"""Projects as a sync leaves them: a repository, and chunks with their sources, written at once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from keepsake import dispatch
from keepsake.context import App
from keepsake.core import text
from keepsake.core.principal import Principal, local_owner
from keepsake.ops import storing
from keepsake.store import banks, jobs, repos, sources
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory
from keepsake.store.repos import Repo
from keepsake.surfaces import mcp
from keepsake.tools import catalog

ORG = 1
#: 2026-04-29T10:00:00Z, in microseconds.
SYNCED = 1_777_456_800_000_000
Keystone = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Chunk:
    """A piece of a repository."""

    text: str
    key: str
    kind: str = "commit"
    title: str = ""
    metadata: dict[str, object] = field(default_factory=dict)


async def project(app: App, name: str, *chunks: Chunk, title: str = "", **repo: Any) -> banks.Bank:
    """Make a project; without anything said of its repository it has none."""
    model = await app.embedding.static_model(app.store)

    async def body(tx: Tx) -> banks.Bank:
        bank = await banks.named(tx, ORG, name) or await banks.create(tx, app.store, ORG, name, title)
        assert bank is not None
        seq = await banks.step(tx, ORG, bank.id)
        if repo:
            await repos.put(tx, Repo(ORG, bank.id, "https://github.com/x", app.now(), app.now(), **repo))
        for chunk in chunks:
            source = sources.Source(
                ORG, bank.id, app.store.new_id(), chunk.kind, chunk.key, text.digest(chunk.text), "", app.now()
            )
            await sources.insert(tx, source)
            await storing.store(tx, app, _memory(app, source, chunk, seq), model)
        await jobs.wanted(tx, app.store, ORG, bank.id, "embed", app.now())
        return bank

    return await app.store.write(ORG, body)


def _memory(app: App, source: sources.Source, chunk: Chunk, seq: int) -> Memory:
    return Memory(
        org=ORG,
        bank=source.bank,
        id=app.store.new_id(),
        kind="chunk",
        fact_type="experience",
        text=chunk.text,
        learned_at=app.now(),
        author="sync",
        text_hash=text.digest(chunk.text),
        tokens=text.cost(chunk.text),
        seq=seq,
        subtype=chunk.kind,
        title=chunk.title,
        metadata={"type": chunk.kind, "date": "2026-04-01T00:00:00Z", **chunk.metadata},
        source=source.id,
        trust="outside",
    )


def asking(app: App, who: Principal | None = None, bank: str | None = None) -> Keystone:
    """Calls a tool of keystone; gives its result as clients see it, a list unwrapped."""
    door = dispatch.Door(catalog.DIALECTS["keystone"])
    principal = who or local_owner()

    async def called(tool: str, /, **arguments: Any) -> Any:
        result = await dispatch.call_tool(app.ctx(principal, bank), door, tool, arguments)
        told = mcp.success(result).structured_content
        return told["result"] if told and set(told) == {"result"} else told

    return called
