"""People: who there is, what roles each has where, and who is shut out."""

from typing import Annotated

from pydantic import AfterValidator, Field

from keepsake.auth import policy
from keepsake.context import Changed, Ctx
from keepsake.core import clock, roles
from keepsake.core.errors import Conflict, Forbidden, NotFound
from keepsake.core.models import Given, KnownBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.roles import Role
from keepsake.core.text import Filled
from keepsake.store import banks, users
from keepsake.store.engine import Tx


def _plain(name: str) -> str:
    if not name.isprintable() or any(letter.isspace() for letter in name):
        raise ValueError("must be printable, without blanks")
    return name


UserName = Annotated[Filled, Field(max_length=200), AfterValidator(_plain)]


class Held(Result):
    """A role that someone has."""

    role: str = Field(description="owner, editor, reader, approver or auditor.")
    bank: str | None = Field(description="The bank it holds at; null means the whole org.")


class Person(Result):
    """Someone who may use this server."""

    name: str = Field(description="What they are called.")
    roles: list[Held] = Field(description="What they are, where; roles add up.")
    created_at: str = Field(description="When they were added, ISO 8601.")
    disabled_at: str | None = Field(description="Since when they are shut out; null means they are not.")


class AddUser(Given):
    """Who is new."""

    name: UserName = Field(description="A name that nobody else has, such as an e-mail address.")
    role: Role | None = Field(None, description="A role to begin with; none may do nothing.")
    bank: KnownBank | None = Field(None, description="The bank where the role holds; the whole org when left out.")


@operation("user.add", effect=Effect.MUTATE, scope="admin")
async def add(ctx: Ctx, given: AddUser) -> Person:
    """Add a person, with a role in the whole org or at one bank."""
    check_manager(ctx)

    async def body(tx: Tx) -> Changed[Person]:
        user = users.User(ctx.org, ctx.store.new_id(), given.name, ctx.now)
        if not await users.insert(tx, user):
            raise Conflict(f"There is a person {given.name!r} already. `keepsake user role` changes what they may do.")
        if given.role is not None:
            place = await place_of(tx, ctx, given.bank)
            await users.grant(tx, ctx.org, users.Member(user.id, place, given.role), ctx.now)
        return Changed(await _person(tx, ctx, user), 0, [user.id], given.model_dump_json())

    return await ctx.change(body)


class ListUsers(Given):
    """Nothing to say."""


class People(Result):
    """Everyone who may use this server."""

    users: list[Person] = Field(description="By name.")


@operation("user.list", effect=Effect.READ, scope="admin")
async def list_(ctx: Ctx, given: ListUsers) -> People:
    """List the people, what each may do where, and who is shut out."""
    check_manager(ctx)

    async def body(tx: Tx) -> People:
        held = await _held(tx, ctx)
        return People(users=[_shown(user, held.get(user.id, [])) for user in await users.listed(tx, ctx.org)])

    return await ctx.read(body)


class WhoAmI(Given):
    """Nothing to say."""


@operation("user.me", effect=Effect.READ, scope="")
async def me(ctx: Ctx, given: WhoAmI) -> Person:
    """Tell who you are and what roles you have where."""

    async def body(tx: Tx) -> Person:
        user = await users.of_id(tx, ctx.org, ctx.principal.person) if ctx.principal.person is not None else None
        if user is None:
            raise NotFound("This credential belongs to no person. `keepsake key list` tells what it may do.")
        return _shown(user, (await _held(tx, ctx)).get(user.id, []))

    return await ctx.read(body)


class SetRole(Given):
    """Which role, whose, and where."""

    name: UserName = Field(description="The person.")
    role: Role = Field(description="The role to give or take away.")
    bank: KnownBank | None = Field(None, description="The bank where it holds; the whole org when left out.")
    remove: bool = Field(False, description="Take the role away instead.")


@operation("user.role", effect=Effect.MUTATE, scope="admin")
async def role(ctx: Ctx, given: SetRole) -> Person:
    """Give a person a role, in the whole org or at one bank, or take it away; it counts from the next request on."""

    async def body(tx: Tx) -> Changed[Person]:
        user, place = await _known(tx, ctx, given.name), await place_of(tx, ctx, given.bank)
        member = users.Member(user.id, place, given.role)
        if given.remove:
            is_changed = await users.withdraw(tx, ctx.org, member)
        else:
            is_changed = await users.grant(tx, ctx.org, member, ctx.now)
        told = await _person(tx, ctx, user)
        return Changed(told, place, [user.id] if is_changed else [], given.model_dump_json())

    return await ctx.change(body)


class DisableUser(Given):
    """Who is to be shut out."""

    name: UserName = Field(description="The person.")
    enable: bool = Field(False, description="Let them in again instead.")


@operation("user.disable", effect=Effect.MUTATE, scope="admin")
async def disable(ctx: Ctx, given: DisableUser) -> Person:
    """Shut a person out, or let them in again; every key of theirs stops or works with the next request."""
    check_manager(ctx)

    async def body(tx: Tx) -> Changed[Person]:
        user = await _known(tx, ctx, given.name)
        if user.id == ctx.principal.person and not given.enable:
            raise Forbidden("you cannot shut yourself out. Ask another owner.")
        await users.disable(tx, ctx.org, user.id, None if given.enable else ctx.now)
        return Changed(await _person(tx, ctx, await _known(tx, ctx, given.name)), 0, [user.id], given.model_dump_json())

    return await ctx.change(body)


def check_manager(ctx: Ctx) -> None:
    """Refuse who does not manage the whole org."""
    if not ctx.principal.is_manager:
        raise Forbidden("only who manages the whole org manages its people. At a bank, you can give and take roles.")


async def place_of(tx: Tx, ctx: Ctx, bank: str | None) -> int:
    """Where a role is to hold; refused where the one who gives it is no owner."""
    if bank is None:
        check_manager(ctx)
        return users.EVERYWHERE
    policy.check_bank(ctx.principal, bank)
    found = await banks.named(tx, ctx.org, bank)
    if found is None:
        raise NotFound(f"No bank {bank!r}. `keepsake bank list` tells the banks.")
    return found.id


async def _known(tx: Tx, ctx: Ctx, name: str) -> users.User:
    user = await users.named(tx, ctx.org, name)
    if user is None:
        raise NotFound(f"No person {name!r}. `keepsake user add` adds one.")
    return user


async def _person(tx: Tx, ctx: Ctx, user: users.User) -> Person:
    held = (await _held(tx, ctx)).get(user.id, [])
    return _shown(user, [one for one in held if one.bank is None or ctx.principal.sees(one.bank)])


async def _held(tx: Tx, ctx: Ctx) -> dict[int, list[Held]]:
    """Everyone's roles."""
    places: dict[int, str | None] = {bank.id: bank.name for bank in await banks.listed(tx, ctx.org)}
    places[users.EVERYWHERE] = None
    found: dict[int, list[Held]] = {}
    for one in await users.members(tx, ctx.org):
        if one.bank in places:
            found.setdefault(one.person, []).append(Held(role=one.role, bank=places[one.bank]))
    return found


def _shown(user: users.User, held: list[Held]) -> Person:
    return Person(
        name=user.name,
        roles=sorted(held, key=lambda one: (one.bank or "", roles.NAMES.index(one.role))),
        created_at=clock.iso(user.created_at),
        disabled_at=None if user.disabled_at is None else clock.iso(user.disabled_at),
    )
