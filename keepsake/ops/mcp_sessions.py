"""MCP sessions as servers over one database share them; no operation, because no caller names them."""

from keepsake.context import App
from keepsake.core.clock import DAY
from keepsake.store import mcp_sessions
from keepsake.store.mcp_sessions import Known, Standing

__all__ = ["Known", "Standing", "bind", "end", "find", "note", "standing"]


async def note(app: App, session: Known, ttl: int) -> None:
    """Let other servers know that a session is alive."""
    now = app.now()
    await app.store.engine.volatile(lambda tx: mcp_sessions.put(tx, session, now, now + ttl))


async def find(app: App, digest: str, ttl: int) -> Known | None:
    """A session that another server minted."""
    now = app.now()
    return await app.store.engine.volatile(lambda tx: mcp_sessions.elsewhere(tx, digest, now, now + ttl))


async def end(app: App, digest: str, ttl: int) -> None:
    """End a session on every server."""
    until = app.now() + max(DAY, ttl)
    await app.store.engine.volatile(lambda tx: mcp_sessions.end(tx, digest, until))


async def standing(app: App, digest: str) -> Standing | None:
    """How a session stands for its server; None when the others know nothing of it."""
    return await app.store.engine.volatile(lambda tx: mcp_sessions.standing(tx, digest))


async def bind(app: App, digest: str, bank: int) -> None:
    """Let a session work in a bank, on every server."""
    await app.store.engine.volatile(lambda tx: mcp_sessions.bind(tx, digest, bank))
