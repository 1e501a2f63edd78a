"""Invitations: one-time links by which people get an account, or a new password for the one they have."""

import secrets
from dataclasses import dataclass

from pydantic import Field

from keepsake.auth import oauth as rules
from keepsake.auth import passwords as hashing
from keepsake.auth import verify
from keepsake.context import App, Changed, Ctx
from keepsake.core import clock, duration, ids
from keepsake.core.clock import DAY, HOUR, MINUTE
from keepsake.core.errors import BadInput, Conflict, Forbidden, KeepsakeError, NotFound
from keepsake.core.intake import validated
from keepsake.core.models import Given, KnownBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.principal import EVERY_SCOPE, LOCAL_ORG, Principal, local_owner
from keepsake.core.roles import Role
from keepsake.core.text import Clean
from keepsake.ops import signing_in
from keepsake.ops.proposals import address
from keepsake.ops.signing_in import Entered
from keepsake.ops.users import UserName, check_manager, place_of
from keepsake.store import banks, invitations, keys, passwords, users, web_sessions
from keepsake.store.engine import Tx
from keepsake.store.invitations import Invitation

#: How long a link is good: the least, the most; and the one that makes the first account.
SHORTEST, LONGEST, FIRST = 5 * MINUTE, 30 * DAY, HOUR
_GONE = "This link is not good any more: it was used, taken back, or is past its time. Ask whoever sent it for another."


class Invited(Result):
    """A link that can still be used, without the link itself."""

    id: str = Field(description="Its id.")
    name: str = Field(description="Who it is for.")
    is_new: bool = Field(description="Whether it makes an account; else it sets a new password for the one there is.")
    role: str | None = Field(description="The role that it gives.")
    bank: str | None = Field(description="Where the role holds; null means the whole org.")
    made_by: str = Field(description="Who made it.")
    created_at: str = Field(description="When, ISO 8601.")
    expires_at: str = Field(description="Until when it can be used, ISO 8601.")


class Invite(Given):
    """Who is to come, and as what."""

    name: UserName = Field(description="What they are called; someone there is already gets a new password by it.")
    role: Role | None = Field(None, description="A role to begin with; someone who is there keeps theirs.")
    bank: KnownBank | None = Field(None, description="The bank where the role holds; the whole org when left out.")
    expires: Clean = Field("3d", max_length=16, description="For how long it can be used, such as 12h or 3d.")


class NewInvitation(Invited):
    """A new link, which is shown only here."""

    link: str = Field(description="The link. It can be used once and cannot be shown again.")


@operation("user.invite", effect=Effect.MUTATE, scope="admin")
async def invite(ctx: Ctx, given: Invite) -> NewInvitation:
    """Make a one-time link by which someone sets their password; the account is made when they do."""
    check_manager(ctx)
    lasts = duration.parsed(given.expires)
    if lasts is None or not SHORTEST <= lasts <= LONGEST:
        raise BadInput("user.invite: `expires` must be a time such as 12h or 3d, from 5 minutes to 30 days.")
    token = secrets.token_urlsafe(32)

    async def body(tx: Tx) -> Changed[NewInvitation]:
        user = await users.named(tx, ctx.org, given.name)
        if user is not None and (user.disabled_at is not None or given.role is not None):
            raise Conflict(
                f"There is a person {given.name!r} already. Leave the role out to give them a new password; `keepsake"
                " user disable --enable` lets in whoever is shut out."
            )
        bank = await place_of(tx, ctx, given.bank) if given.role is not None else users.EVERYWHERE
        made = Invitation(
            org=ctx.org,
            id=ctx.store.new_id(),
            sha256=rules.hashed(token),
            name=given.name,
            person=user.id if user else None,
            role=given.role or "",
            bank=bank,
            made_by=ctx.principal.name,
            maker=ctx.principal.person,
            maker_key=ctx.principal.key,
            created_at=ctx.now,
            expires_at=ctx.now + lasts,
        )
        await invitations.insert(tx, made)
        shown = await _shown(tx, made)
        told = NewInvitation(**shown.model_dump(), link=link(ctx.app, token))
        return Changed(told, 0, [made.id], given.model_dump_json())

    return await ctx.change(body)


def link(app: App, token: str) -> str:
    """The address that whoever is invited opens."""
    return f"{address(app.settings)}/console/join/{token}"


async def _shown(tx: Tx, one: Invitation) -> Invited:
    bank = await banks.of_id(tx, one.org, one.bank) if one.bank else None
    return Invited(
        id=str(one.id),
        name=one.name,
        is_new=one.person is None,
        role=one.role or None,
        bank=bank.name if bank else None,
        made_by=one.made_by,
        created_at=clock.iso(one.created_at),
        expires_at=clock.iso(one.expires_at),
    )


class ListInvitations(Given):
    """Nothing to say."""


class Invitations(Result):
    """The links that can still be used."""

    invitations: list[Invited] = Field(description="Newest first.")


@operation("user.invitations", effect=Effect.READ, scope="admin")
async def list_(ctx: Ctx, given: ListInvitations) -> Invitations:
    """List the one-time links that can still be used, newest first; never the links themselves."""
    check_manager(ctx)

    async def body(tx: Tx) -> Invitations:
        held = await invitations.listed(tx, ctx.org, ctx.now)
        return Invitations(invitations=[await _shown(tx, one) for one in held])

    return await ctx.read(body)


class Uninvite(Given):
    """Which link."""

    id: Clean = Field(min_length=1, max_length=64, description="Its id, as listed.")


class Uninvited(Result):
    """A link that is good no more."""

    id: str = Field(description="Its id.")


@operation("user.uninvite", effect=Effect.MUTATE, scope="admin")
async def uninvite(ctx: Ctx, given: Uninvite) -> Uninvited:
    """Take a one-time link back; whoever opens it is told that it is good no more."""
    check_manager(ctx)

    async def body(tx: Tx) -> Changed[Uninvited]:
        number = ids.parse(given.id)
        if not number or not await invitations.revoke(tx, ctx.org, number, ctx.now):
            raise NotFound("No such invitation that can still be used. `keepsake user invitations` lists them.")
        return Changed(Uninvited(id=str(number)), 0, [number])

    return await ctx.change(body)


@dataclass(frozen=True, slots=True)
class Joining:
    """What a link is for, as its page tells."""

    #: Empty where whoever opens it chooses a name.
    name: str
    is_new: bool
    role: str
    bank: str


async def set_up(app: App) -> str | None:
    """A link for the first account, for whoever started the server; None once there are people."""
    if await signing_in.people_exist(app):
        return None
    token, now, me = secrets.token_urlsafe(32), app.now(), local_owner()

    async def body(tx: Tx) -> Changed[None]:
        made = Invitation(
            org=LOCAL_ORG,
            id=app.store.new_id(),
            sha256=rules.hashed(token),
            name="",
            person=None,
            role="owner",
            bank=users.EVERYWHERE,
            made_by=me.name,
            maker=None,
            maker_key=None,
            created_at=now,
            expires_at=now + FIRST,
        )
        await invitations.insert(tx, made)
        return Changed(None, 0, [made.id])

    await app.ctx(me, surface="cli").running("user.invite").change(body)
    return link(app, token)


async def any_open(app: App) -> bool:
    """Whether someone has a link by which they can get an account."""
    return await app.store.engine.look(lambda tx: invitations.any_open(tx, app.now()))


async def opened(app: App, token: str) -> Joining:
    """What a link is for; the words are the same whatever the reason it is not good."""
    found = await _good(app, token)
    bank = await app.store.read(found.org, lambda tx: banks.of_id(tx, found.org, found.bank)) if found.bank else None
    return Joining(found.name, found.person is None, found.role, bank.name if bank else "")


async def _good(app: App, token: str) -> Invitation:
    sha256, now = rules.hashed(token), app.now()
    found = await app.store.engine.look(lambda tx: invitations.open_by_hash(tx, sha256, now))
    is_first = found is not None and not found.name
    if found is None or not await _may_still(app, found) or (is_first and await signing_in.people_exist(app)):
        raise NotFound(_GONE)
    return found


async def _may_still(app: App, found: Invitation) -> bool:
    """Whether whoever made the link could make it now."""
    if found.maker is not None:
        try:
            who = Principal(found.org, found.made_by, EVERY_SCOPE)
            return (await verify.of_person(app.store, who, found.maker)).acting(frozenset({"admin"})).is_manager
        except KeepsakeError:
            return False
    if found.maker_key in (None, verify.TENANT):
        return True
    held = await app.store.read(found.org, lambda tx: keys.listed(tx, found.org))
    return any(key.id == found.maker_key and key.revoked_at is None for key in held)


class Joined(Given):
    """What someone is called who chooses it themselves."""

    name: UserName


async def join(app: App, token: str, name: str, password: str, browser: str = "") -> Entered:
    """Use a link: the person is made or gets a new password, and is signed in; of all who try, one succeeds."""
    found = await _good(app, token)
    chosen = found.name or str(getattr(validated(Joined, {"name": name}, "name"), "name", ""))
    signing_in.check_password(chosen, password)
    hash, now = await hashing.hashed(password), app.now()
    entered, session = signing_in.begun(found.org, 0, now, browser)

    async def body(tx: Tx) -> Changed[None]:
        if not await invitations.claim(tx, found, now):
            raise NotFound(_GONE)
        person = await _person(tx, app, found, chosen)
        await passwords.put(tx, found.org, person, hash, now)
        await web_sessions.end_all(tx, found.org, person)
        await web_sessions.insert(tx, session(person), now)
        return Changed(None, 0, [person, found.id])

    someone = Principal(found.org, f"user:{chosen}", frozenset())
    await app.ctx(someone, surface="web").running("user.join").change(body)
    return entered


async def _person(tx: Tx, app: App, found: Invitation, name: str) -> int:
    """Whom the link is for: someone there is, or someone new with the role that it gives."""
    if found.person is not None:
        user = await users.of_id(tx, found.org, found.person)
        if user is None or user.disabled_at is not None:
            raise NotFound(_GONE)
        return user.id
    user = users.User(found.org, app.store.new_id(), name, app.now())
    if not await users.insert(tx, user):
        raise Conflict("Someone has this name already. Choose another.") if not found.name else Forbidden(_GONE)
    if found.role:
        await users.grant(tx, found.org, users.Member(user.id, found.bank, found.role), app.now())
    return user.id
