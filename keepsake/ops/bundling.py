"""What a client's bundle needs of the server: a key of its own, and how its bank and project are addressed."""

from dataclasses import replace
from typing import Literal

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.ops import binding, keys
from keepsake.ops.keys import Tier
from keepsake.store import banks
from keepsake.store.engine import Tx

#: What stands for the bank in the name of a key that reaches all of them.
EVERY = "all"


class Bundle(InBank):
    """Which client, and what it is to reach."""

    client: Clean = Field(
        max_length=60, pattern="^[a-z][a-z0-9-]*$", description="Name of the client, as `keepsake connect` knows it."
    )
    tier: Tier = Field("all", description="Which tools of the xerotier dialect its key opens.")
    workspace: bool = Field(False, description="Whether the bank is to be there at once, so that it has an address.")


class Addressed(Result):
    """How a client's files address a bank and this server."""

    bank: str | None = Field(description="The only bank that it reaches; null means every bank.")
    workspace: str | None = Field(description="That bank in xerotier's headers, where it is there.")
    project: str = Field(description="This org in xerotier's addresses.")
    transport: Literal["streamable", "legacy"] = Field(description="How the xerotier endpoint answers.")


class Granted(Addressed):
    """A client's key, and how its bank is addressed."""

    name: str = Field(description="Name of the key: the client, and the bank it is for.")
    secret: str = Field(description="The key itself. It cannot be shown again.")
    closed_door: bool = Field(description="Whether requests without a key were accepted until now.")


@operation("client.bundle", effect=Effect.MUTATE, scope="admin")
async def bundle(ctx: Ctx, given: Bundle) -> Granted:
    """Make a key for one client at one bank, named `client@bank`; the one that it had before is revoked."""
    if given.workspace and given.bank is not None:
        await ctx.change(lambda tx: _ensured(tx, ctx, given))
    wanted = keys.CreateKey(
        name=key_name(given.client, given.bank),
        tier=given.tier,
        banks=None if given.bank is None else [given.bank],
        replace=True,
    )
    made = await keys.create(ctx, wanted)
    place = await _addressed(ctx, given.bank)
    return Granted(**place.model_dump(), name=made.name, secret=made.secret, closed_door=made.closed_door)


def key_name(client: str, bank: str | None) -> str:
    """What the key of a client at a bank is called."""
    return f"{client}@{bank or EVERY}"


class Address(InBank):
    """Which bank."""


@operation("client.address", effect=Effect.READ, scope="admin")
async def address(ctx: Ctx, given: Address) -> Addressed:
    """Tell how a client's files would address a bank, before a key is made for it."""
    return await _addressed(ctx, given.bank)


async def _addressed(ctx: Ctx, bank: str | None) -> Addressed:
    return Addressed(
        bank=bank,
        workspace=await ctx.read(lambda tx: _workspace(tx, ctx, bank)) if bank else None,
        project=await binding.project(ctx.app, ctx.org),
        transport="legacy" if ctx.app.settings.xerotier_transport == "legacy" else "streamable",
    )


async def _ensured(tx: Tx, ctx: Ctx, given: Bundle) -> Changed[None]:
    known = await banks.named(tx, ctx.org, given.bank or "")
    bank = known or await bank_ops.ensured(tx, replace(ctx, bank=given.bank), None)
    return Changed(None, bank.id, [] if known else [bank.id])


async def _workspace(tx: Tx, ctx: Ctx, name: str) -> str | None:
    bank = await banks.named(tx, ctx.org, name)
    return None if bank is None else f"ws_{bank.ws_hex}"
