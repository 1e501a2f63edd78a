"""Which workspace a client works in that has chosen none: its user is asked, where the client can ask."""

from dataclasses import replace

from keepsake.context import Ctx
from keepsake.ops import binding
from keepsake.surfaces import workspaces
from keepsake.surfaces.asking import Client

_ABOUT = "workspace"
_QUESTION = "Which workspace should this connection work in?"


async def placed(ctx: Ctx, client: Client) -> Ctx:
    """The request in the bank that the client's user chooses; as it is where nobody chooses one."""
    names = await binding.choices(ctx)
    if not names:
        return ctx
    if ctx.connection is None:
        return await _chosen(ctx, client, names)
    # Calls that come at once are one question to the user, whatever the answer.
    is_asked = ctx.connection.choosing.locked()
    async with ctx.connection.choosing:
        if ctx.connection.bank or is_asked:
            return await workspaces.remembered(ctx, ctx.connection)
        return await _chosen(ctx, client, names)


async def _chosen(ctx: Ctx, client: Client, names: list[str]) -> Ctx:
    name = await client.choose(_ABOUT, _QUESTION, names)
    chosen = await binding.choose(ctx, name) if name else None
    return ctx if chosen is None else replace(ctx, bank=chosen)
