"""MCP sessions of the 2025 era: whose they are, who serves them, when they end."""

import hashlib
from asyncio import Lock
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from anyio import CancelScope
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from keepsake.context import App, Ctx
from keepsake.core.clock import SECOND
from keepsake.ops import mcp_sessions
from keepsake.surfaces import managers
from keepsake.tools.dialect import Dialect


@dataclass(slots=True)
class Session:
    """A session as this process knows it; without a manager it lives on another server."""

    digest: str
    owner: str
    dialect: str
    version: str
    manager: StreamableHTTPSessionManager | None
    app: App
    last: int
    #: How long it may be idle, in microseconds.
    ttl: int
    #: Id of the bank that it works in, where its client chose one.
    bank: str = ""
    #: Held while its user is asked for one.
    choosing: Lock = field(default_factory=Lock)
    #: When other servers last heard of it.
    noted: int = 0
    requests: int = 0
    open_ids: set[str] = field(default_factory=set)

    @property
    def id(self) -> str:
        """What tells it from every other."""
        return self.digest

    async def bind(self, bank: int) -> None:
        """Work in a bank from now on."""
        self.bank = str(bank)
        await mcp_sessions.bind(self.app, self.digest, bank)

    @contextmanager
    def busy(self, id: str | None = None) -> Iterator[None]:
        """A request in flight keeps the session alive."""
        self.requests += 1
        if id is not None:
            self.open_ids.add(id)
        try:
            yield
        finally:
            self.requests -= 1
            self.last = self.app.now()
            if id is not None:
                self.open_ids.discard(id)


@dataclass(slots=True)
class Sessions:
    """Every session that this process serves, and a look at those that others serve."""

    app: App
    #: Streams on which clients only listen; a shutdown ends them first.
    listeners: set[CancelScope] = field(default_factory=set)
    _here: dict[str, Session] = field(default_factory=dict)

    def ttl(self, dialect: Dialect) -> int:
        """How long a session of a dialect may be idle, in seconds."""
        settings = self.app.settings
        return settings.xerotier_session_ttl if dialect.workspace else settings.session_ttl

    async def begin(
        self, id: str, manager: StreamableHTTPSessionManager, dialect: Dialect, ctx: Ctx, version: str
    ) -> Session:
        """Remember a session that was just minted."""
        now, ttl = self.app.now(), self.ttl(dialect) * SECOND
        session = Session(_digest(id), _owner(ctx), dialect.title, version, manager, self.app, now, ttl)
        self._sweep()
        self._here[session.digest] = session
        await self._note(session)
        return session

    async def find(self, id: str, dialect: Dialect, ctx: Ctx) -> Session | None:
        """The session, if it is alive, at this endpoint, and this principal's."""
        digest = _digest(id)
        session = self._here.get(digest) or await self._elsewhere(digest, self.ttl(dialect) * SECOND)
        if session is None or session.owner != _owner(ctx) or session.dialect != dialect.title:
            return None
        standing = await mcp_sessions.standing(self.app, digest) if session.manager is not None else None
        if session.manager is not None and standing is not None and standing.is_ended:
            self._here.pop(digest, None)
            await managers.end(session.manager, id)
            return None
        if standing is not None:
            session.bank = standing.bank
        if not session.requests and self.app.now() - session.last > session.ttl:
            await self.end(session)
            return None
        if session.manager is not None and self.app.now() - session.noted > session.ttl // 4:
            await self._note(session)
        return session

    async def end(self, session: Session) -> None:
        """Forget a session everywhere."""
        self._here.pop(session.digest, None)
        await mcp_sessions.end(self.app, session.digest, session.ttl)

    def lives(self, ctx: Ctx) -> bool:
        """Whether the session of a request is still here."""
        session = self._here.get(ctx.connection.id) if ctx.connection is not None else None
        return session is not None and (session.requests > 0 or self.app.now() - session.last <= session.ttl)

    def listens(self, ctx: Ctx) -> bool:
        """Whether the client of such a session has something open that it would hear us by."""
        session = self._here.get(ctx.connection.id) if ctx.connection is not None else None
        return session is not None and session.requests > 0

    @contextmanager
    def listening(self) -> Iterator[CancelScope]:
        """A stream on which a client only listens."""
        with CancelScope() as scope:
            self.listeners.add(scope)
            try:
                yield scope
            finally:
                self.listeners.discard(scope)

    def end_listening(self) -> None:
        """End every stream on which a client only listens."""
        for scope in list(self.listeners):
            scope.cancel()

    def _sweep(self) -> None:
        now = self.app.now()
        idle = [s for s in self._here.values() if not s.requests and now - s.last > s.ttl]
        for session in idle:
            del self._here[session.digest]

    async def _note(self, session: Session) -> None:
        session.noted = self.app.now()
        known = mcp_sessions.Known(session.digest, session.dialect, session.owner, session.version, session.bank)
        await mcp_sessions.note(self.app, known, session.ttl)

    async def _elsewhere(self, digest: str, ttl: int) -> Session | None:
        known = await mcp_sessions.find(self.app, digest, ttl)
        if known is None:
            return None
        now, whose = self.app.now(), (known.principal, known.dialect, known.version)
        return Session(digest, *whose, None, self.app, now, ttl, known.bank)


def _digest(id: str) -> str:
    return hashlib.sha256(id.encode()).hexdigest()


def _owner(ctx: Ctx) -> str:
    who = ctx.principal
    # Two clients of one person may differ in what they may do, so neither goes on with the other's session.
    return f"{who.org}/{who.name}" if who.client is None else f"{who.org}/{who.name}/{who.client}"
