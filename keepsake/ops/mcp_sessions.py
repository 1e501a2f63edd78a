"""MCP sessions as servers over one database share them; no operation, because no caller names them."""

from keepsake.context import App
from keepsake.core.clock import SECOND
from keepsake.store import mcp_sessions
from keepsake.store.mcp_sessions import Known

__all__ = ["Known", "find", "forget", "note"]


async def note(app: App, session: Known) -> None:
    """Let other servers know that a session is alive."""
    now, until = app.now(), app.now() + app.settings.session_ttl * SECOND
    await app.store.engine.volatile(lambda tx: mcp_sessions.put(tx, session, now, until))


async def find(app: App, digest: str) -> Known | None:
    """A session that another server minted."""
    now, until = app.now(), app.now() + app.settings.session_ttl * SECOND
    return await app.store.engine.volatile(lambda tx: mcp_sessions.elsewhere(tx, digest, now, until))


async def forget(app: App, digest: str) -> None:
    """End a session on every server."""
    await app.store.engine.volatile(lambda tx: mcp_sessions.delete(tx, digest))
