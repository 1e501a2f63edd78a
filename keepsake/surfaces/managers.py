"""The SDK's session managers behind one endpoint."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from sse_starlette.sse import AppStatus
from starlette.types import Message, Scope

from keepsake.settings import Settings

#: The SDK must not forget a session before we do, because its answer would be another one than ours.
_LATER = 60.0


@dataclass(slots=True)
class Managers:
    """Who serves sessions, and who serves requests without one; each by whether it streams."""

    server: Server[Any]
    settings: Settings
    #: Seconds that a session may be idle.
    ttl: int
    stateful: dict[bool, StreamableHTTPSessionManager] = field(init=False)
    stateless: dict[bool, StreamableHTTPSessionManager] = field(init=False)

    def __post_init__(self) -> None:
        self.stateful = {streams: self._manager(streams, False) for streams in (True, False)}
        self.stateless = {streams: self._manager(streams, True) for streams in (True, False)}

    def _manager(self, streams: bool, stateless: bool) -> StreamableHTTPSessionManager:
        return StreamableHTTPSessionManager(
            self.server,
            json_response=not streams,
            stateless=stateless,
            max_request_body_size=self.settings.body_limit,
            session_idle_timeout=self.ttl + _LATER,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the managers alive."""
        # Left to itself, the SSE library cuts every stream at the signal, those of calls in flight too.
        AppStatus.enable_automatic_graceful_drain = False
        async with AsyncExitStack() as stack:
            for manager in (*self.stateful.values(), *self.stateless.values()):
                await stack.enter_async_context(manager.run())
            yield


async def end(manager: StreamableHTTPSessionManager, id: str) -> None:
    """Have a manager end a session that its client ended on another server."""
    headers = [(b"mcp-session-id", id.encode("latin-1"))]
    scope: Scope = {"type": "http", "method": "DELETE", "path": "/", "query_string": b"", "headers": headers}
    await manager.handle_request(scope, _nothing_said, _unheard)


async def _nothing_said() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(message: Message) -> None:
    """Nobody waits for the answer."""
