"""Who decides on what others ask for: another person who is an approver, or in an org of one, that person anew."""

from dataclasses import replace

from keepsake.context import Ctx
from keepsake.core.approver import FRESH, Asked
from keepsake.core.errors import Forbidden, KeepsakeError
from keepsake.core.principal import Principal
from keepsake.store import banks, keys, oauth, users
from keepsake.store.engine import Tx

#: What stands for someone who agreed to what their own agent asked.
SELF = "self"


def credential(principal: Principal) -> str:
    """What a principal came with: what it asks for is for this alone, not for its holder's other keys."""
    if principal.client is not None:
        return f"client:{principal.client}:{principal.key}"
    return "local" if principal.key is None else f"key:{principal.key}"


def is_own(principal: Principal, row: Asked) -> bool:
    """Whether something was asked for by this principal with this credential."""
    return (row.principal, row.credential, row.person) == (principal.name, credential(principal), principal.person)


async def decides(tx: Tx, ctx: Ctx, row: Asked) -> str | None:
    """Under what name this principal may decide; None when it may not."""
    who = ctx.principal
    # A client that acts for an approver is an agent, not the approver.
    if who.client is not None:
        return None
    if who.person is not None:
        is_other = row.person != who.person and not is_own(who, row)
        if is_other and await _is_approver(tx, ctx, row):
            return who.name
        is_theirs = is_for(ctx, row) or (row.person is None and who.is_manager)
        return SELF if is_theirs and _has_just_signed_in(ctx) and await _is_alone(tx, ctx) else None
    if not _is_at_the_machine(ctx):
        return None
    if await _is_alone(tx, ctx):
        return SELF
    return None if is_own(who, row) else who.name


async def could(tx: Tx, ctx: Ctx, row: Asked) -> str | None:
    """The same for who may have to sign in again first."""
    again = ctx if ctx.signed_in_at is None else replace(ctx, signed_in_at=ctx.now)
    return await decides(tx, again, row)


def is_for(ctx: Ctx, row: Asked) -> bool:
    """Whether it is the person themselves, on a page of ours, whose agent asked for it."""
    return ctx.signed_in_at is not None and row.person is not None and row.person == ctx.principal.person


def _is_at_the_machine(ctx: Ctx) -> bool:
    """The local owner who types a command is a person; the one behind an agent's connection is that agent."""
    who = ctx.principal
    return who.person is None and who.key is None and ctx.surface == "cli"


def _has_just_signed_in(ctx: Ctx) -> bool:
    """Whether a person gave their password on the page a moment ago, which no agent of theirs can."""
    return ctx.signed_in_at is not None and 0 <= ctx.now - ctx.signed_in_at <= FRESH


async def _is_alone(tx: Tx, ctx: Ctx) -> bool:
    return len([one for one in await users.listed(tx, ctx.org) if one.disabled_at is None]) <= 1


async def _is_approver(tx: Tx, ctx: Ctx, row: Asked) -> bool:
    """Whether the person has the role in the whole org, or at the bank that it is about, and reaches it."""
    person, reach = ctx.principal.person, ctx.principal.banks
    standing = await users.standing(tx, ctx.org, person) if person is not None else None
    held = standing.roles if standing is not None else {}
    bank = await banks.of_id(tx, ctx.org, row.bank) if row.bank else None
    if reach is not None and (bank is None or bank.name not in reach):
        return False
    return any("approver" in held.get(place, ()) for place in (None, *([bank.name] if bank else [])))


async def refusal(tx: Tx, ctx: Ctx, row: Asked, unknown: KeepsakeError) -> KeepsakeError:
    """Why someone may not decide; to whom it is none of their business it is unknown."""
    if ctx.principal.person is None and ctx.principal.key is None and ctx.surface == "web":
        return Forbidden("the owner decides at the server's machine: `keepsake approvals` there, without KEEPSAKE_URL.")
    if is_own(ctx.principal, row) or (row.person is not None and row.person == ctx.principal.person):
        if await _is_alone(tx, ctx) and ctx.surface == "web":
            return Forbidden("you decide on what your own agent asked only right after signing in. Sign in again.")
        return Forbidden("nobody decides on what their own credentials proposed. Another approver has to.")
    is_approver = ctx.principal.person is not None and await _is_approver(tx, ctx, row)
    if ctx.principal.client is not None or (not is_approver and ctx.principal.person is None):
        return Forbidden("only a person with the role approver decides on proposals, or the owner at this machine.")
    return unknown


async def client(tx: Tx, ctx: Ctx, row: Asked) -> str | None:
    """What asked, by the name that people know: a key, or an OAuth client."""
    kind, _, number = row.credential.partition(":")
    if kind == "client":
        clients = {one.id: one.name for one in await oauth.clients(tx, ctx.org)}
        return clients.get(int(number.partition(":")[0]))
    held = await keys.listed(tx, ctx.org) if kind == "key" else []
    return next((key.name for key in held if str(key.id) == number), None)


async def person(tx: Tx, ctx: Ctx, row: Asked) -> str | None:
    """For whom it was asked."""
    found = await users.of_id(tx, ctx.org, row.person) if row.person is not None else None
    return found.name if found else None
