"""MCP sessions as servers over one database share them; no operation, because no caller names them."""

from keepsake.context import App
from keepsake.core.clock import DAY, SECOND
from keepsake.store import mcp_sessions
from keepsake.store.mcp_sessions import Known

__all__ = ["Known", "end", "ended", "find", "note"]


async def note(app: App, session: Known) -> None:
    """Let other servers know that a session is alive."""
    now, until = app.now(), app.now() + app.settings.session_ttl * SECOND
    await app.store.engine.volatile(lambda tx: mcp_sessions.put(tx, session, now, until))


async def find(app: App, digest: str) -> Known | None:
    """A session that another server minted."""
    now, until = app.now(), app.now() + app.settings.session_ttl * SECOND
    return await app.store.engine.volatile(lambda tx: mcp_sessions.elsewhere(tx, digest, now, until))


async def end(app: App, digest: str) -> None:
    """End a session on every server."""
    until = app.now() + max(DAY, app.settings.session_ttl * SECOND)
    await app.store.engine.volatile(lambda tx: mcp_sessions.end(tx, digest, until))


async def ended(app: App, digest: str) -> bool:
    """Whether some server has ended a session."""
    return await app.store.engine.volatile(lambda tx: mcp_sessions.ended(tx, digest))
