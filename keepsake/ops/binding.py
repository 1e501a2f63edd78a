"""Workspaces: which bank a connection works in, as xerotier's clients choose it."""

import re
import uuid

from pydantic import Field

from keepsake.context import App, Ctx
from keepsake.core.errors import BadInput, Conflict, NotFound
from keepsake.core.models import Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.store import banks, orgs
from keepsake.store.engine import Tx

HEADER = "X-Xerotier-Workspace"
#: What a bank must be open for to whoever works in it.
_SCOPES = frozenset({"memory:read"})
_WS = re.compile(r"ws_([0-9a-f]{1,64})")
#: The same words whether an id is malformed, unknown, of another project or not for this credential.
_UNKNOWN = "No such workspace. {} takes the id of one that this credential may use: ws_… or its UUID."
#: Workspaces that a refusal or a question names.
SHOWN = 20


async def project(app: App, org: int) -> str:
    """The id by which addresses know an org, made when it is first asked for."""
    known = await app.store.read(org, lambda tx: orgs.external(tx, org))
    return known or await app.store.write(org, lambda tx: orgs.named(tx, org)) or ""


async def pinned(ctx: Ctx, told: str) -> str:
    """The bank that a header names, if it is of this org and within the credential's reach."""
    found = await ctx.read(lambda tx: _of_id(tx, ctx, told))
    if found is None:
        raise BadInput(_UNKNOWN.format(HEADER))
    return found.name


async def remembered(ctx: Ctx, bank: int) -> str | None:
    """The bank that a session was bound to, as long as it is there and within reach."""
    found = await ctx.read(lambda tx: banks.of_id(tx, ctx.org, bank))
    return found.name if found is not None and _sees(ctx, found) else None


async def choices(ctx: Ctx) -> list[str]:
    """The names of the banks that this credential may work in."""
    return [bank.name for bank in await ctx.read(lambda tx: _within_reach(tx, ctx))]


async def choose(ctx: Ctx, name: str) -> str | None:
    """Work in the bank of a name, if it is within reach, and let the session remember it where there is one."""
    found = await ctx.read(lambda tx: banks.named(tx, ctx.org, name))
    if found is None or not _sees(ctx, found):
        return None
    if ctx.connection is not None:
        await ctx.connection.bind(found.id)
    return found.name


async def _within_reach(tx: Tx, ctx: Ctx) -> list[banks.Bank]:
    return [bank for bank in await banks.listed(tx, ctx.org) if _sees(ctx, bank)]


def _sees(ctx: Ctx, bank: banks.Bank) -> bool:
    return ctx.acting(_SCOPES).principal.sees(bank.name)


async def _of_id(tx: Tx, ctx: Ctx, told: str) -> banks.Bank | None:
    """A bank within reach by one of its ids."""
    given = told.strip().lower()
    is_ws = _WS.fullmatch(given)
    try:
        named = "" if is_ws else str(uuid.UUID(given))
    except ValueError:
        return None
    bank = await banks.of_workspace(tx, ctx.org, named, is_ws[1] if is_ws else "")
    return bank if bank is not None and _sees(ctx, bank) else None


class Bind(Given):
    """Which workspace to work in."""

    workspace: Clean | None = Field(
        None, min_length=1, max_length=200, description="Id (ws_… or UUID) or name of the workspace to work in."
    )


class Workspace(Result):
    """A bank as a connection works in it."""

    name: str = Field(description="Its name.")
    title: str = Field(description="A human-friendly name.")
    id: str | None = Field(None, description="Its id for addresses and headers, ws_…; absent before its first write.")
    uuid: str | None = Field(None, description="Its other id.")


class Bound(Result):
    """What a connection works in."""

    workspace: Workspace = Field(description="The workspace.")
    project: str = Field(description="Id of the project it belongs to, as addresses have it.")
    tier: str = Field(description="Which part of the tools this credential sees: core, exec, intel or all.")


@operation("session.bind", effect=Effect.READ, scope="memory:read")
async def bind(ctx: Ctx, given: Bind) -> Bound:
    """Choose the workspace that this connection works in from now on, or tell which one it is."""
    bank = await ctx.read(lambda tx: _chosen(tx, ctx, given.workspace))
    if bank is None:
        implied = bank_ops.wanted(ctx, None)[0]
        return await _told(ctx, Workspace(name=implied, title=implied))
    if bank.name != ctx.bank:
        await _rebound(ctx, bank)
    shown = Workspace(name=bank.name, title=bank.title or bank.name, id=f"ws_{bank.ws_hex}", uuid=bank.uuid)
    return await _told(ctx, shown)


async def _told(ctx: Ctx, workspace: Workspace) -> Bound:
    return Bound(workspace=workspace, project=await project(ctx.app, ctx.org), tier=ctx.principal.tier)


async def _rebound(ctx: Ctx, bank: banks.Bank) -> None:
    """Let the session work in another bank, where there is one and nothing pins it."""
    if ctx.is_pinned:
        raise Conflict("This connection is pinned to another workspace. Change its header or flag to work elsewhere.")
    if ctx.connection is None:
        raise BadInput(
            f"There is no session here that could remember the workspace. Send the header"
            f" `{HEADER}: ws_{bank.ws_hex}` with every request."
        )
    await ctx.connection.bind(bank.id)


async def _chosen(tx: Tx, ctx: Ctx, told: str | None) -> banks.Bank | None:
    """The bank that is meant; None for one that is pinned and has no writes yet."""
    if told is None and ctx.bank is not None:
        return await bank_ops.found(tx, ctx, None)
    within = await _within_reach(tx, ctx)
    if told is None:
        if len(within) == 1:
            return within[0]
        raise BadInput(f"Say which `workspace` to work in.{_listed(within)}")
    found = await _of_id(tx, ctx, told) or await banks.named(tx, ctx.org, told)
    if found is None or not _sees(ctx, found):
        raise NotFound(f"No such workspace within reach of this credential.{_listed(within)}")
    return found


def _listed(within: list[banks.Bank]) -> str:
    if not within:
        return " There is none yet; `keepsake bank create` makes one."
    names = ", ".join(bank.name for bank in within[:SHOWN])
    return f" There are: {names}{', …' if len(within) > SHOWN else ''}."
