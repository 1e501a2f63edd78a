"""Consents: what people let OAuth clients do, listed and taken back."""

from dataclasses import replace

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import clock
from keepsake.core.errors import Forbidden, NotFound
from keepsake.core.models import Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.ops import signing_in
from keepsake.store import banks, keys, oauth, users
from keepsake.store.engine import Tx


class Consent(Result):
    """What a person lets a client do."""

    id: str = Field(description="Its id.")
    user: str = Field(description="Whose consent it is.")
    client_id: str = Field(description="The client that has it.")
    client: str = Field(description="The name that the client gave itself.")
    scopes: list[str] = Field(description="What it may do, as far as the person may.")
    banks: list[str] | None = Field(description="The banks it reaches; null means every bank of the person.")
    resource: str = Field(description="The address that its tokens are for.")
    created_at: str = Field(description="When it was given, ISO 8601.")
    expires_at: str = Field(description="When it ends, ISO 8601.")
    revoked_at: str | None = Field(description="When it was taken back; null means it was not.")
    last_used_at: str | None = Field(None, description="When the client last asked with it, ISO 8601.")


class ListGrants(Given):
    """Which consents."""

    ended: bool = Field(False, description="Whether to list those as well that have ended or were taken back.")


class Consents(Result):
    """Consents, newest first."""

    grants: list[Consent] = Field(description="Newest first.")


@operation("grant.list", effect=Effect.READ, scope="admin")
async def list_(ctx: Ctx, given: ListGrants) -> Consents:
    """List what people let OAuth clients do, newest first."""
    return await _listed(ctx, given, None)


@operation("grant.mine", effect=Effect.READ, scope="")
async def mine(ctx: Ctx, given: ListGrants) -> Consents:
    """List what you let OAuth clients do in your name, newest first; on your account's page."""
    return await _listed(ctx, given, signing_in.on_page(ctx))


async def _listed(ctx: Ctx, given: ListGrants, person: int | None) -> Consents:
    uses = await ctx.store.engine.volatile(keys.last_uses)

    async def body(tx: Tx) -> Consents:
        held = [one for one in await oauth.grants(tx, ctx.org) if given.ended or _holds(one, ctx.now)]
        shown = await _shown(tx, ctx, [one for one in held if person in (None, one.person)])
        return Consents(grants=[one.model_copy(update={"last_used_at": _told(uses.get(int(one.id)))}) for one in shown])

    return await ctx.read(body)


class RevokeGrant(Given):
    """Which consent."""

    id: str = Field(pattern=r"^\d{1,19}$", description="Its id, as listed.")


@operation("grant.revoke", effect=Effect.MUTATE, scope="admin")
async def revoke(ctx: Ctx, given: RevokeGrant) -> Consent:
    """Take a consent back; every token that came of it is refused from the next request on."""
    return await _revoked(ctx, given, None)


@operation("grant.withdraw", effect=Effect.MUTATE, scope="")
async def withdraw(ctx: Ctx, given: RevokeGrant) -> Consent:
    """Take back what you let an OAuth client do in your name; on your account's page."""
    return await _revoked(ctx, given, signing_in.on_page(ctx))


async def _revoked(ctx: Ctx, given: RevokeGrant, person: int | None) -> Consent:
    async def body(tx: Tx) -> Changed[Consent]:
        id = int(given.id)
        grant = await oauth.grant(tx, ctx.org, id) if id < 2**63 else None
        if grant is None or not _holds(grant, ctx.now) or person not in (None, grant.person):
            raise NotFound("No such consent that holds. grant.list tells them.")
        if grant.person != ctx.principal.person and not ctx.principal.is_manager:
            raise Forbidden("only who manages the whole org takes back what others consented to.")
        await oauth.revoke_grant(tx, ctx.org, id, ctx.now)
        shown = await _shown(tx, ctx, [replace(grant, revoked_at=ctx.now)])
        return Changed(shown[0], 0, [id])

    return await ctx.change(body)


def _holds(grant: oauth.Grant, now: int) -> bool:
    return grant.revoked_at is None and grant.expires_at > now


async def _shown(tx: Tx, ctx: Ctx, held: list[oauth.Grant]) -> list[Consent]:
    """As far as whoever asks may see: all of it for a manager, else their own."""
    who = ctx.principal
    seen = [one for one in held if who.is_manager or (who.person is not None and one.person == who.person)]
    people = {one.id: one.name for one in await users.listed(tx, ctx.org)}
    clients = {one.id: one for one in await oauth.clients(tx, ctx.org)}
    names = {one.id: one.name for one in await banks.listed(tx, ctx.org)}
    return [
        Consent(
            id=str(one.id),
            user=people.get(one.person, ""),
            client_id=clients[one.client].client_id if one.client in clients else "",
            client=clients[one.client].name if one.client in clients else "",
            scopes=sorted(one.scopes),
            banks=None if one.banks is None else sorted(names[bank] for bank in one.banks if bank in names),
            resource=one.resource,
            created_at=clock.iso(one.created_at),
            expires_at=clock.iso(one.expires_at),
            revoked_at=_told(one.revoked_at),
        )
        for one in seen
    ]


def _told(moment: int | None) -> str | None:
    return None if moment is None else clock.iso(moment)
