"""Endpoints whose clients choose the bank they work in: by a header, or once for their session."""

import asyncio
import secrets
from dataclasses import dataclass, field, replace

from starlette.requests import Request

from keepsake.context import Connection, Ctx
from keepsake.core.errors import Forbidden, NotFound
from keepsake.ops import binding
from keepsake.tools.dialect import Dialect


def check_admission(ctx: Ctx, dialect: Dialect) -> None:
    """Refuse whoever lacks the scope that opens the endpoint."""
    if dialect.admission and dialect.admission not in ctx.principal.scopes:
        reason = f"this credential lacks the scope {dialect.admission}, which this endpoint wants of everyone."
        raise Forbidden(f"{reason} Ask its owner for a key that has it.", frozenset({dialect.admission}))


async def check_project(ctx: Ctx, request: Request, known: dict[int, str]) -> None:
    """Refuse a path of another project than the credential's, in the words for one that does not exist."""
    named = request.path_params.get("project")
    if named is None:
        return
    if ctx.org not in known:
        known[ctx.org] = await binding.project(ctx.app, ctx.org)
    if not secrets.compare_digest(named.encode(), known[ctx.org].encode()):
        raise NotFound("No such project for this credential. /v1/mcp is the credential's own project.")


async def placed(ctx: Ctx, request: Request, dialect: Dialect, connection: Connection | None) -> Ctx:
    """The request in the bank that its header names, else its session; looked up and allowed anew each time."""
    if not dialect.workspace:
        return ctx if connection is None else replace(ctx, connection=connection)
    told = request.headers.get(dialect.workspace)
    if told is not None:
        return replace(ctx, bank=await binding.pinned(ctx, told), connection=connection, is_pinned=True)
    return await remembered(ctx, connection)


async def connected(ctx: Ctx, session: Connection) -> None:
    """Let a session remember the bank that the header named as it began: clients may send it on connecting only."""
    if ctx.is_pinned and ctx.bank is not None:
        await binding.choose(replace(ctx, connection=session), ctx.bank)


async def remembered(ctx: Ctx, connection: Connection | None) -> Ctx:
    """The request in the bank that its session was bound to."""
    if connection is None or not connection.bank:
        return replace(ctx, connection=connection)
    return replace(ctx, bank=await binding.remembered(ctx, int(connection.bank)), connection=connection)


@dataclass(slots=True)
class Local:
    """The one connection of a stdio server."""

    id: str = field(default_factory=lambda: secrets.token_hex(16))
    bank: str = ""
    choosing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def bind(self, bank: int) -> None:
        """Work in a bank from now on."""
        self.bank = str(bank)
