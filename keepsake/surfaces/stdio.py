"""MCP over stdio: one client, the local owner, the same tools."""

import os
import sys
from dataclasses import replace
from typing import Any, BinaryIO

import anyio
from mcp.shared.message import SessionMessage

from keepsake import context, dispatch, worker
from keepsake.auth import verify
from keepsake.context import App, Ctx, Report
from keepsake.core.bank_name import HERE
from keepsake.core.principal import Principal, local_owner
from keepsake.ops import banks
from keepsake.settings import Settings
from keepsake.surfaces import mcp, strict, workspaces
from keepsake.surfaces.following import Following
from keepsake.surfaces.roots import Roots
from keepsake.surfaces.wire import Wire
from keepsake.surfaces.workspaces import Local
from keepsake.tools.dialect import Dialect


def claimed() -> tuple[BinaryIO, BinaryIO]:
    """Take the wire for ourselves: what anything else prints goes to stderr."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdin = open(os.devnull)  # noqa: SIM115  # as long as the process
    return source, sink


async def bound(app: App, settings: Settings, bank: str | None, report: Report, folder: str = "") -> Ctx:
    """A request of whoever started the process, narrowed by the key and bank that were given."""
    who = await _holder(app, settings)
    if bank == HERE:
        return await _here(app, who, report, folder)
    return app.ctx(who.narrowed(banks=None if bank is None else frozenset({bank})), bank, report)


async def _holder(app: App, settings: Settings) -> Principal:
    if settings.api_key:
        return await verify.principal(app.store, settings, settings.api_key, open_door=False)
    return local_owner()


async def _here(app: App, who: Principal, report: Report, folder: str) -> Ctx:
    """Looked up anew for each request, as hooks do: a bank may be made, renamed or deleted meanwhile."""
    bank, project = await banks.here(app, who.org, folder)
    return replace(app.ctx(who.narrowed(banks=frozenset({bank})), bank, report), project=project)


def _always(ctx: Ctx) -> bool:
    """The client of a pipe is there as long as the pipe is."""
    return True


async def serve(settings: Settings, dialect: Dialect, bank: str | None) -> None:
    """Serve one client until it closes its end and has its answers."""
    source, sink = claimed()
    async with context.open(settings) as app, worker.beside(app):
        roots, door, local = Roots(), dispatch.Door(dialect), Local()

        async def ctx_of(incoming: Any) -> Ctx:
            ctx = await door.placed(await bound(app, settings, bank, incoming.session.report_progress, roots.folder))
            if dialect.workspace and bank is None:
                return await workspaces.remembered(ctx, local)
            return replace(ctx, connection=local, is_pinned=bank is not None)

        following = Following(door, ctx_of, _always, _always) if dialect.resources else None
        made = mcp.server(dialect, ctx_of, roots if bank == HERE else None, following)
        wire = Wire(source, sink, settings.body_limit, strict.completed if dialect.needs_session else None)
        inbox, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        answers, outbox = anyio.create_memory_object_stream[SessionMessage](0)

        async def read() -> None:
            async with inbox:
                async for message in wire.messages():
                    await inbox.send(message)
                with anyio.move_on_after(settings.shutdown_seconds):
                    await wire.settled()

        async def write() -> None:
            async with outbox:
                async for answer in outbox:
                    wire.answer(answer.message)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(write)
            if following is not None:
                tasks.start_soon(following.watch)
            await made.run(received, answers, made.create_initialization_options())
            tasks.cancel_scope.cancel()
