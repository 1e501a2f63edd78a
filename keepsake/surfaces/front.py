"""The front of an MCP endpoint: reads a request once, refuses what must be refused, picks who serves it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import check_accept_headers
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from keepsake import dispatch
from keepsake.auth import limits
from keepsake.auth.external import Issuers
from keepsake.context import App, Ctx
from keepsake.core.errors import BadInput, KeepsakeError, NoSession, UnknownResource, UnknownTool
from keepsake.surfaces import batches, bearer, bodies, mcp, strict, workspaces
from keepsake.surfaces.bodies import BadMessage
from keepsake.surfaces.following import Following
from keepsake.surfaces.managers import Managers
from keepsake.surfaces.replies import INVALID_REQUEST, as_json, rpc_error, rpc_refusal
from keepsake.surfaces.sessions import Session, Sessions
from keepsake.tools.dialect import Dialect, Tool

Begin = Callable[[str], Awaitable[None]]
_CTX = "keepsake.ctx"


class Refused(Exception):
    """The request is answered here and goes no further."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


@dataclass(slots=True)
class Endpoint:
    """A dialect at a path, with the SDK's managers behind it."""

    app: App
    dialect: Dialect
    sessions: Sessions
    #: Another server than the dialect's own, for tests of the protocol.
    server: Server[Any] | None = None
    #: Who besides us vouches for those who ask here.
    issuers: Issuers | None = None
    #: Whether answers may be streams; else they are plain JSON, all of them.
    streams: bool = True
    door: dispatch.Door = field(init=False)
    managers: Managers = field(init=False)
    following: Following | None = None
    #: Ids of orgs as paths have them, which never change.
    projects: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.door = dispatch.Door(self.dialect)
        if self.dialect.resources and self.streams:
            self.following = Following(self.door, self.again, self.sessions.lives, self.sessions.listens)
        server = self.server or mcp.server(self.dialect, ctx_of, following=self.following)
        self.managers = Managers(server, self.app.settings, self.sessions.ttl(self.dialect))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the managers alive."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.managers.running())
            if self.following is not None:
                await stack.enter_async_context(self.following.running())
            yield

    async def identified(self, request: Request, bank: str | None) -> Ctx:
        """Who sends a request, if they are let in here at all."""
        ctx = await self.door.placed(self.app.ctx(await bearer.principal(self.app, request, self.issuers), bank))
        workspaces.check_admission(ctx, self.dialect)
        await workspaces.check_project(ctx, request, self.projects)
        return ctx

    async def again(self, incoming: Any) -> Ctx:
        """Who sent a request, as of now: a credential or session may have ended since."""
        request: Request = incoming.request
        ctx, id = await self.identified(request, None), request.headers.get("mcp-session-id")
        session = await self.sessions.find(id, self.dialect, ctx) if id else None
        if id and session is None:
            raise NoSession("The session has ended.")
        return await workspaces.placed(ctx, request, self.dialect, session)

    async def serve(self, scope: Scope, receive: Receive, send: Send, bank: str | None) -> None:
        """Answer one HTTP request."""
        request = Request(scope, receive)
        try:
            if self.dialect.needs_session:
                strict.check_origin(request, self.app.settings)
            await Exchange(self, request, await self.identified(request, bank), send).serve()
        except Refused as refused:
            await refused.response(scope, receive, send)
        except BadMessage as error:
            await rpc_refusal(error, error.id)(scope, receive, send)
        except KeepsakeError as error:
            await rpc_refusal(error)(scope, receive, send)


async def ctx_of(incoming: Any) -> Ctx:
    """Our context of the request that the SDK is handling."""
    ctx: Ctx = incoming.request.scope[_CTX]
    return replace(ctx, report=incoming.session.report_progress)


@dataclass(slots=True)
class Exchange:
    """One HTTP request at an endpoint."""

    endpoint: Endpoint
    request: Request
    ctx: Ctx
    send: Send
    headers: dict[str, str] = field(default_factory=dict)
    has_begun: bool = False

    @property
    def managers(self) -> Managers:
        """Who may serve it."""
        return self.endpoint.managers

    @property
    def is_modern(self) -> bool:
        """Whether the request belongs to the era without sessions."""
        version = self.request.headers.get("mcp-protocol-version")
        return version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS

    async def serve(self) -> None:
        """Route by method; only POST carries messages."""
        method, session = self.request.method, await self._session()
        self.ctx = await workspaces.placed(self.ctx, self.request, self.endpoint.dialect, session)
        self.request.scope[_CTX] = self.ctx
        if method == "POST":
            await self._post(session)
        elif method == "DELETE" and session is not None:
            await self._end(session)
        elif method == "GET" and session is not None and session.manager is not None and self.endpoint.streams:
            with session.busy():
                await self._listen(session.manager, self.request.receive)
        else:
            self._check_session(session)
            response = as_json(rpc_error(INVALID_REQUEST, "Send a POST; GET and DELETE need an Mcp-Session-Id."), 405)
            response.headers["Allow"] = "POST"
            raise Refused(response)

    async def _session(self) -> Session | None:
        id = self.request.headers.get("mcp-session-id")
        if id is None or self.is_modern:
            return None
        session = await self.endpoint.sessions.find(id, self.endpoint.dialect, self.ctx)
        lives_elsewhere = session is not None and session.manager is None
        if session is None or (lives_elsewhere and self.endpoint.dialect.needs_session):
            raise NoSession("The session is unknown or has ended. Send `initialize` to start a new one.")
        return session

    async def _end(self, session: Session) -> None:
        await self.endpoint.sessions.end(session)
        if session.manager is not None:
            await self._pass(session.manager, self.request.receive)
        else:
            await Response(status_code=200)(self.request.scope, self.request.receive, self.send)

    async def _post(self, session: Session | None) -> None:
        bodies.check_type(self.request)
        body = await bodies.read(self.request, self.ctx.app.settings.body_limit)
        found = bodies.decoded(body)
        if isinstance(found, list):
            self._check_session(session)
            await self._batch(found, session)
            return
        message = bodies.message(found)
        if isinstance(message, types.JSONRPCRequest) and message.method == "initialize" and not self.is_modern:
            await self._begin(message, session, body)
            return
        self._check_session(session, message)
        await self._admit(message)
        receive = bodies.replayed(body, self.request.receive)
        if session is not None and session.manager is not None:
            await self._in_session(session, session.manager, message, receive)
        elif (
            isinstance(message, types.JSONRPCRequest)
            and message.method == "subscriptions/listen"
            and (self.endpoint.streams)
        ):
            await self._listen(self.managers.stateless[True], receive)
        elif self.is_modern:
            await self._until_gone(self.managers.stateless[self._streams(message)], receive)
        else:
            await self._pass(self.managers.stateless[self._streams(message)], receive)

    def _check_session(self, session: Session | None, message: types.JSONRPCMessage | None = None) -> None:
        """Where sessions are enforced, every message of their era belongs to one."""
        if session is None and self.endpoint.dialect.needs_session and not self.is_modern:
            id = message.id if isinstance(message, types.JSONRPCRequest) else None
            raise Refused(rpc_refusal(strict.missing(), id))

    async def _begin(self, message: types.JSONRPCRequest, session: Session | None, body: bytes) -> None:
        """Begin a session, with whatever the client left out where its dialect allows that."""
        await self._admit(message)
        if self.endpoint.dialect.needs_session:
            message = strict.completed(message)
            body = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        await self._initialize(message, session, bodies.replayed(body, self.request.receive))

    async def _admit(self, message: types.JSONRPCMessage) -> None:
        """Answer missing rights and spent allowances with their status, before the SDK sees the call."""
        id = message.id if isinstance(message, types.JSONRPCRequest) else None
        try:
            for method, name, arguments in _calls([message]):
                # An unknown tool is refused by whoever answers, with the status of an answer.
                with suppress(UnknownTool, UnknownResource):
                    tool = self._tool(method, name)
                    self.endpoint.door.admit(self.ctx, tool, arguments)
                    await self.endpoint.door.admit_stored(self.ctx, tool, arguments)
            await self._count([message])
        except KeepsakeError as error:
            raise Refused(rpc_refusal(error, id)) from error

    def _tool(self, method: str, name: str) -> Tool:
        """What a call would run."""
        door = self.endpoint.door
        if method == "prompts/get":
            return door.prompt(self.ctx, name).tool
        return door.resource(self.ctx, name)[0].tool if method == "resources/read" else door.tool(self.ctx, name)

    async def _count(self, messages: list[types.JSONRPCMessage]) -> None:
        calls = sum(method == "tools/call" for method, _, _ in _calls(messages))
        if calls == 0:
            await limits.note_use(self.ctx.store, self.ctx.principal, self.ctx.now)
        elif allowance := await dispatch.limit(self.ctx, calls):
            self.headers |= allowance.headers()

    async def _initialize(self, message: types.JSONRPCRequest, session: Session | None, receive: Receive) -> None:
        if session is not None:
            raise BadMessage("This session is initialized already. Use it, or initialize without its id.", message.id)
        version = str(bodies.initialization(message).protocol_version)
        manager = self.managers.stateful[self._wants_stream()]

        async def begin(id: str) -> None:
            begun = await self.endpoint.sessions.begin(id, manager, self.endpoint.dialect, self.ctx, version)
            await workspaces.connected(self.ctx, begun)

        await self._pass(manager, receive, begin)

    def _wants_stream(self) -> bool:
        """Whether a session is to stream; where sessions are enforced, answers are plain JSON."""
        accepts = "text/event-stream" in self.request.headers.get("accept", "").lower()
        return accepts and self.endpoint.streams and not self.endpoint.dialect.needs_session

    async def _in_session(
        self, session: Session, manager: StreamableHTTPSessionManager, message: types.JSONRPCMessage, receive: Receive
    ) -> None:
        if not isinstance(message, types.JSONRPCRequest):
            with session.busy():
                await self._pass(manager, receive)
            return
        # The SDK tells requests apart by their id's text.
        if str(message.id) in session.open_ids:
            raise BadMessage("This request id is still in use. Use a new one.", message.id)
        with session.busy(str(message.id)):
            await self._pass(manager, receive)

    def _streams(self, message: types.JSONRPCMessage) -> bool:
        """Whether a request without a session asks for more than its answer, and can take it."""
        takes_json, takes_stream = self._accepted()
        if not self.endpoint.streams:
            return False
        if not takes_stream or not takes_json:
            return takes_stream
        meta = (getattr(message, "params", None) or {}).get("_meta")
        if not isinstance(meta, dict):
            return False
        return "progressToken" in meta or (self.is_modern and "io.modelcontextprotocol/logLevel" in meta)

    def _accepted(self) -> tuple[bool, bool]:
        return check_accept_headers(self.request) if "accept" in self.request.headers else (True, True)

    async def _batch(self, found: list[object], session: Session | None) -> None:
        version = session.version if session else self.request.headers.get("mcp-protocol-version", batches.VERSION)
        messages = batches.parts(found, version)
        await self._count([message for message in messages if not isinstance(message, BadMessage)])
        answers = [await batches.answer(self.managers.stateless[False], self.request, one) for one in messages]
        told = [answer for answer in answers if answer is not None]
        response = as_json(told, headers=self.headers) if told else Response(status_code=202, headers=self.headers)
        await response(self.request.scope, self.request.receive, self.send)

    async def _listen(self, manager: StreamableHTTPSessionManager, receive: Receive) -> None:
        """The same as `_pass` for a stream on which the client only listens: it ends when the server does."""
        with self.endpoint.sessions.listening() as scope:
            await self._pass(manager, receive)
        if scope.cancelled_caught and self.has_begun:
            await self.send({"type": "http.response.body", "body": b""})

    async def _until_gone(self, manager: StreamableHTTPSessionManager, receive: Receive) -> None:
        """The same as `_pass`, ended when the client hangs up: that is how the 2026 era cancels."""
        async with anyio.create_task_group() as tasks:

            async def watched() -> Message:
                message = await receive()
                if message["type"] == "http.request" and not message.get("more_body"):
                    tasks.start_soon(partial(_gone, receive, tasks.cancel_scope))
                return message

            await self._pass(manager, watched)
            tasks.cancel_scope.cancel()

    async def _pass(self, manager: StreamableHTTPSessionManager, receive: Receive, begin: Begin | None = None) -> None:
        """Let the SDK answer; a session that it mints is known before the client learns of it."""

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.has_begun = True
                names = [(name.encode(), value.encode()) for name, value in self.headers.items()]
                message = {**message, "headers": [*message.get("headers", []), *names]}
                minted = dict(message["headers"]).get(b"mcp-session-id")
                if begin is not None and minted is not None and message["status"] < 400:
                    await begin(minted.decode())
            await self.send(message)

        scope = self.request.scope
        if "accept" not in self.request.headers:
            scope = {**scope, "headers": [*scope["headers"], (b"accept", b"application/json, text/event-stream")]}
        await manager.handle_request(scope, receive, told)


async def _gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


#: Messages that run something, and what names it.
_RUNNING = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def _calls(messages: list[types.JSONRPCMessage]) -> list[tuple[str, str, dict[str, object]]]:
    """The calls among messages, as far as they can be read: method, name and arguments."""
    found: list[tuple[str, str, dict[str, object]]] = []
    for message in messages:
        if isinstance(message, types.JSONRPCRequest) and message.method in _RUNNING:
            params = message.params or {}
            arguments = params.get("arguments")
            named = str(params.get(_RUNNING[message.method]))
            found.append((message.method, named, arguments if isinstance(arguments, dict) else {}))
    return found


def bank_of(request: Request) -> str | None:
    """The bank that a header names, in UTF-8."""
    named = request.headers.get("x-bank-id")
    # What is not UTF-8 becomes lone surrogates, which no bank's name may have.
    return named.encode("latin-1").decode("utf-8", "surrogateescape") if named else None


def checked_bank(name: str) -> str:
    """A bank name from a path or header, refused like one from an argument."""
    try:
        return bodies.bank_name.validate_python(name)
    except ValueError as error:
        raise BadInput(
            "The bank's name is not usable: it must have 1 to 128 characters,"
            " and no '/', '\\', '..' or control characters."
        ) from error
