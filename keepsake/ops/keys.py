"""API keys: make, list, revoke; nobody can make a key that may do more than its maker."""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from keepsake.auth import keys as secrets
from keepsake.auth import verify
from keepsake.context import Changed, Ctx
from keepsake.core import clock, duration
from keepsake.core.errors import BadInput, Conflict, Forbidden, NotFound
from keepsake.core.models import BankName, Given, Result
from keepsake.core.operation import SCOPES, Effect, operation
from keepsake.core.principal import DEFAULT_SCOPES, Principal
from keepsake.core.project import is_placed
from keepsake.core.text import Clean, Filled
from keepsake.store import banks, keys, projects, users
from keepsake.store.engine import Tx

Tier = Literal["core", "exec", "intel", "all"]
#: What still has a date that everyone can read.
_FURTHEST = 36_500 * clock.DAY


def _known(scope: str) -> str:
    if scope not in SCOPES:
        raise ValueError(f"is not a scope; the scopes are {', '.join(SCOPES)}")
    return scope


def _printable(name: str) -> str:
    if not name.isprintable() or name != name.strip():
        raise ValueError("must be printable, without blanks at its ends")
    return name


Scope = Annotated[Clean, AfterValidator(_known), Field(json_schema_extra={"enum": list(SCOPES)})]
KeyName = Annotated[Filled, Field(max_length=200), AfterValidator(_printable)]


class Key(Result):
    """A key as it is listed: never its secret."""

    name: str = Field(description="What it is called.")
    prefix: str = Field(description="The beginning of its secret, to recognise it by.")
    tier: str = Field(description="Which tools of the xerotier dialect it opens: core, exec, intel or all.")
    scopes: list[str] = Field(description="What it may do.")
    banks: list[str] | None = Field(description="The banks it reaches; null means every bank.")
    may_destroy: bool = Field(description="Whether it may delete.")
    created_at: str = Field(description="When it was made, ISO 8601.")
    expires_at: str | None = Field(description="When it stops working; null means never.")
    revoked_at: str | None = Field(description="When it was revoked.")
    user: str | None = Field(None, description="The person whose key it is.")
    last_used_at: str | None = Field(None, description="When a request last carried it.")


def _shown(key: keys.Key, last_used: int | None = None) -> Key:
    return Key(
        name=key.name,
        prefix=key.prefix,
        tier=key.tier,
        scopes=sorted(key.scopes),
        banks=None if key.banks is None else sorted(key.banks),
        may_destroy=key.may_destroy,
        created_at=clock.iso(key.created_at),
        expires_at=_told(key.expires_at),
        revoked_at=_told(key.revoked_at),
        last_used_at=_told(last_used),
    )


def _told(moment: int | None) -> str | None:
    return None if moment is None else clock.iso(moment)


class CreateKey(Given):
    """What the new key is for."""

    name: KeyName = Field(description="A name that no other active key has.")
    tier: Tier = Field("all", description="Which tools of the xerotier dialect it opens.")
    banks: list[BankName] | None = Field(
        None, min_length=1, max_length=1_000, description="Only these banks; every bank of its maker when left out."
    )
    scopes: list[Scope] | None = Field(
        None, min_length=1, description="Only these scopes; every one but admin and memory:delete when left out."
    )
    allow_destructive: bool = Field(False, description="Whether it may delete; adds the scope memory:delete.")
    expires: Clean | None = Field(
        None, max_length=64, description="When it stops working: ISO 8601, or a time from now such as 12h or 30d."
    )
    replace: bool = Field(False, description="Whether to revoke the active key of this name in the same step.")
    user: Clean | None = Field(
        None, max_length=200, description="Whose key it is: it may do no more than that person may, at any moment."
    )


class NewKey(Key):
    """A new key with its secret, which is shown only here."""

    secret: str = Field(description="The key itself. It cannot be shown again.")
    closed_door: bool = Field(description="Whether requests without a key were accepted until now.")


@operation("key.create", effect=Effect.MUTATE, scope="admin")
async def create(ctx: Ctx, given: CreateKey) -> NewKey:
    """Make an API key; its secret is in this answer and nowhere else."""
    _check_reach(ctx.principal, given)
    expires_at = None if given.expires is None else _moment(given.expires, ctx.now)
    was_open = not await verify.credentials_exist(ctx.store, ctx.app.settings)
    secret = secrets.made()

    async def body(tx: Tx) -> Changed[keys.Key]:
        key = keys.Key(
            org=ctx.org,
            id=ctx.store.new_id(),
            sha256=secret.sha256,
            prefix=secret.prefix,
            name=given.name,
            owner=ctx.principal.name,
            scopes=_scopes(ctx.principal, given),
            tier=given.tier,
            banks=await _banks(tx, ctx, given),
            may_destroy=given.allow_destructive,
            created_at=ctx.now,
            expires_at=_within(expires_at, await _end_of(tx, ctx)),
            person=await _person(tx, ctx, given),
        )
        if given.replace:
            await _revoked(tx, ctx, given.name)
        if not await keys.insert(tx, key):
            raise Conflict(f"An active key is called {given.name!r} already. Choose another name, or revoke that one.")
        return Changed(key, 0, [key.id], given.model_dump_json())

    made = _shown(await ctx.change(body)).model_copy(update={"user": given.user})
    return NewKey(**made.model_dump(), secret=secret.text, closed_door=was_open)


async def _revoked(tx: Tx, ctx: Ctx, name: str) -> None:
    """Revoke the active key of a name; one that reaches more than the principal stays, and keeps its name."""
    held = [key for key in await keys.listed(tx, ctx.org) if key.name == name and key.revoked_at is None]
    if held and all(_sees(ctx.principal, key) for key in held):
        await keys.revoke(tx, ctx.org, name, ctx.now)


async def _person(tx: Tx, ctx: Ctx, given: CreateKey) -> int | None:
    """Whose the key is: the person that is named, else the maker."""
    if given.user is None:
        return ctx.principal.person
    user = await users.named(tx, ctx.org, given.user)
    if user is None or user.disabled_at is not None:
        raise NotFound(f"No person {given.user!r} who is not shut out. `keepsake user list` tells who there is.")
    if user.id != ctx.principal.person and not ctx.principal.is_manager:
        raise Forbidden("only who manages the whole org can make a key for someone else.")
    return user.id


def _check_reach(principal: Principal, given: CreateKey) -> None:
    """Refuse a key that could do more than the one who makes it."""
    wanted = frozenset(given.scopes or ()) | (frozenset({"memory:delete"}) if given.allow_destructive else frozenset())
    if beyond := sorted(wanted - principal.scopes):
        raise Forbidden(f"you lack the scope {', '.join(beyond)}, so you cannot hand it on.")
    if any(not principal.sees(bank) for bank in given.banks or ()):
        raise Forbidden("you do not reach one of those banks, so you cannot hand it on.")
    if given.allow_destructive and not principal.may_destroy:
        raise Forbidden("you may not delete, so you cannot make a key that may.")
    if principal.tier not in ("all", given.tier) and given.tier != "core":
        raise Forbidden(f"your tier is {principal.tier}, so the new key's can be that or core.")


def _scopes(principal: Principal, given: CreateKey) -> frozenset[str]:
    chosen = frozenset(given.scopes) if given.scopes is not None else DEFAULT_SCOPES & principal.scopes
    return chosen | {"memory:delete"} if given.allow_destructive else chosen


async def _banks(tx: Tx, ctx: Ctx, given: CreateKey) -> frozenset[str] | None:
    """What it reaches, by every name that those banks have."""
    if given.banks is None:
        return ctx.principal.banks
    known = [await banks.named(tx, ctx.org, name) for name in given.banks]
    others = [await projects.names(tx, ctx.org, bank.id) for bank in known if bank is not None]
    return frozenset(given.banks).union(name for names in others for name in names if not is_placed(name))


def _moment(text: str, now: int) -> int:
    """When a key ends, given as a time or as a duration from now."""
    try:
        stretch = duration.parsed(text)
        moment = clock.parse(text) if stretch is None else now + stretch
    except ValueError as error:
        raise BadInput("`expires` must be ISO 8601, such as 2027-01-31T12:00:00Z, or a duration: 12h, 30d.") from error
    if not now < moment <= now + _FURTHEST:
        raise BadInput("`expires` must lie in the future, and within a hundred years. Leave it out for no end.")
    return moment


async def _end_of(tx: Tx, ctx: Ctx) -> int | None:
    """When the maker's own key ends."""
    held = await keys.listed(tx, ctx.org) if ctx.principal.key is not None else []
    return next((key.expires_at for key in held if key.id == ctx.principal.key), None)


def _within(wanted: int | None, end: int | None) -> int | None:
    if wanted is not None and end is not None and wanted > end:
        raise Forbidden(f"your own key ends {clock.iso(end)}, so the new one cannot outlive it.")
    return end if wanted is None else wanted


class ListKeys(Given):
    """Which keys."""

    revoked: bool = Field(False, description="Whether to list revoked keys as well.")


class Keys(Result):
    """Keys, newest first."""

    keys: list[Key] = Field(description="Newest first.")


@operation("key.list", effect=Effect.READ, scope="admin")
async def list_(ctx: Ctx, given: ListKeys) -> Keys:
    """List the API keys, newest first, with when each was last used; never their secrets."""
    held, people = await ctx.read(lambda tx: _listed(tx, ctx))
    uses = await ctx.store.engine.volatile(keys.last_uses)
    wanted = [key for key in held if _sees(ctx.principal, key) and (given.revoked or key.revoked_at is None)]
    shown = [(_shown(key, uses.get(key.id)), people.get(key.person or 0)) for key in wanted]
    return Keys(keys=[key.model_copy(update={"user": user}) for key, user in shown])


async def _listed(tx: Tx, ctx: Ctx) -> tuple[list[keys.Key], dict[int, str]]:
    """The keys of the org, and the names of the people."""
    return await keys.listed(tx, ctx.org), {user.id: user.name for user in await users.listed(tx, ctx.org)}


def _sees(principal: Principal, key: keys.Key) -> bool:
    """Whether a key reaches nothing that the principal does not."""
    return principal.banks is None or (key.banks is not None and key.banks <= principal.banks)


class RevokeKey(Given):
    """Which key."""

    name: KeyName = Field(description="The name of the key to revoke.")


class RevokedKey(Key):
    """A key that no longer works."""

    opened_door: bool = Field(description="Whether it was the last key, so that loopback needs none again.")


@operation("key.revoke", effect=Effect.MUTATE, scope="admin")
async def revoke(ctx: Ctx, given: RevokeKey) -> RevokedKey:
    """Revoke an API key; the next request that carries it is refused."""

    async def body(tx: Tx) -> Changed[keys.Key]:
        held = [key for key in await keys.listed(tx, ctx.org) if _sees(ctx.principal, key)]
        named = next((key for key in held if key.name == given.name and key.revoked_at is None), None)
        if named is None:
            raise NotFound(f"No active key is called {given.name!r}. Use `keepsake key list` to see them.")
        at = ctx.now
        await keys.revoke(tx, ctx.org, given.name, at)
        return Changed(replace(named, revoked_at=at), 0, [named.id])

    revoked = _shown(await ctx.change(body))
    still_closed = await verify.credentials_exist(ctx.store, ctx.app.settings)
    return RevokedKey(**revoked.model_dump(), opened_door=not still_closed)
