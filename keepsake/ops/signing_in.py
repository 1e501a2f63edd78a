"""Signing in with a browser: passwords, sessions, and how often one may guess."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import Field, SecretStr, field_serializer

from keepsake.auth import oauth as rules
from keepsake.auth import passwords as hashing
from keepsake.auth import policy, verify
from keepsake.context import App, Changed, Ctx
from keepsake.core.clock import DAY, HOUR, MINUTE
from keepsake.core.errors import BadInput, Forbidden, NotFound, Unavailable
from keepsake.core.models import Given, Result
from keepsake.core.operation import REGISTRY, Effect, operation
from keepsake.core.principal import EVERY_SCOPE, LOCAL_ORG, Principal
from keepsake.ops.users import UserName
from keepsake.store import passwords, users, web_sessions
from keepsake.store.engine import Tx
from keepsake.store.web_sessions import WebSession

#: Wrong passwords for one name, and from one address, before a pause; how long both are counted.
PER_NAME, PER_ADDRESS, PAUSE = 5, 50, 10 * MINUTE
SHORT, LONG = 12 * HOUR, 30 * DAY


@dataclass(frozen=True, slots=True)
class Entered:
    """Someone has signed in; the id is for their browser alone."""

    id: str
    lasts: int


@dataclass(frozen=True, slots=True)
class Denied:
    """A name and password that do not match, whatever the reason; no tries left means a pause."""

    left: int


@dataclass(frozen=True, slots=True)
class Signed:
    """Someone who is signed in."""

    session: WebSession
    name: str


async def people_exist(app: App) -> bool:
    """Whether there is anyone who could sign in."""
    row = await app.store.engine.look(lambda tx: tx.one("SELECT 1 AS one FROM users WHERE disabled_at IS NULL LIMIT 1"))
    return row is not None


async def sign_in(
    app: App, name: str, password: str, address: str, stay: bool = False, browser: str = ""
) -> Entered | Denied:
    """Let someone in who knows their password; the answer never tells which names there are."""
    name = name if 0 < len(name) <= 200 and name.isprintable() else ""
    by_name, by_address = app.store.digest(f"name\0{name}"), app.store.digest(f"address\0{address}")
    now = app.now()

    async def counted(tx: Tx) -> tuple[int, int]:
        of_name = await passwords.tried(tx, LOCAL_ORG, "name", by_name, now, PAUSE)
        return of_name, await passwords.tried(tx, LOCAL_ORG, "address", by_address, now, PAUSE)

    # Counted before it is looked at, so that guesses sent at once are not all free.
    of_name, of_address = await app.store.write(LOCAL_ORG, counted)
    if of_name > PER_NAME or of_address > PER_ADDRESS:
        return Denied(0)
    found = await app.store.read(LOCAL_ORG, lambda tx: passwords.of(tx, LOCAL_ORG, name))
    is_right = await hashing.fits(found[1] if found else None, password[: hashing.LONGEST + 1])
    if found is None or not is_right:
        return Denied(PER_NAME - of_name)
    entered, session = begun(LOCAL_ORG, LONG if stay else SHORT, now, browser)

    async def body(tx: Tx) -> Changed[None]:
        await passwords.forgive(tx, LOCAL_ORG, "name", by_name, of_name)
        await passwords.forgive(tx, LOCAL_ORG, "address", by_address, 1)
        await web_sessions.insert(tx, session(found[0]), now)
        return Changed(None, 0, [found[0]])

    someone = Principal(LOCAL_ORG, f"user:{name}", frozenset(), person=found[0])
    await app.ctx(someone, surface="web").running("user.sign_in").change(body)
    return entered


def begun(org: int, lasts: int, now: int, browser: str) -> tuple[Entered, Callable[[int], WebSession]]:
    """A new session: its id for the browser, and what is kept of it for a person."""
    id, lasts = secrets.token_urlsafe(32), lasts or SHORT

    def session(person: int) -> WebSession:
        return WebSession(org, rules.hashed(id), person, now, now + lasts, now, browser[:60])

    return Entered(id, lasts), session


async def proves(app: App, name: str, password: str) -> bool:
    """Whether someone who is signed in knows their password; guesses count as when signing in."""
    by_name, now = app.store.digest(f"name\0{name}"), app.now()
    tries = await app.store.write(LOCAL_ORG, lambda tx: passwords.tried(tx, LOCAL_ORG, "name", by_name, now, PAUSE))
    if tries > PER_NAME:
        raise Unavailable("Too many tries. Wait ten minutes, then try again.")
    found = await app.store.read(LOCAL_ORG, lambda tx: passwords.of(tx, LOCAL_ORG, name))
    if not await hashing.fits(found[1] if found else None, password[: hashing.LONGEST + 1]):
        return False
    await app.store.write(LOCAL_ORG, lambda tx: passwords.forgive(tx, LOCAL_ORG, "name", by_name, tries))
    return True


def on_page(ctx: Ctx) -> int:
    """The person, on a page of ours: no key and no client of theirs manages their account."""
    policy.check_page(REGISTRY[ctx.operation], ctx.signed_in_at is not None)
    if ctx.principal.person is None:
        raise Forbidden("there is no account to manage: nobody has signed in.")
    return ctx.principal.person


async def signed_in(app: App, id: str) -> Signed | None:
    """Whose session it is, asked anew on every request."""
    sha256, now = rules.hashed(id), app.now()
    found = await app.store.engine.look(lambda tx: web_sessions.alive(tx, sha256, now))
    return Signed(*found) if found else None


async def sign_out(app: App, id: str) -> None:
    """End a session."""
    await app.store.write(LOCAL_ORG, lambda tx: web_sessions.end(tx, LOCAL_ORG, rules.hashed(id)))


async def principal(app: App, signed: Signed) -> Principal:
    """Who is signed in, with what they may do now."""
    who = Principal(signed.session.org, f"user:{signed.name}", EVERY_SCOPE, may_destroy=True)
    return await verify.of_person(app.store, who, signed.session.person)


class SetPassword(Given):
    """Whose password, and what it is to be."""

    name: UserName = Field(description="The person.")
    password: SecretStr = Field(
        description=f"The new password, of {hashing.SHORTEST} to {hashing.LONGEST:,} characters; it is kept as a hash.",
        strict=False,
        json_schema_extra={"minLength": hashing.SHORTEST, "maxLength": hashing.LONGEST},
    )

    @field_serializer("password", when_used="json")
    def _told(self, password: SecretStr) -> str:
        # The command line sends what it was given to the server.
        return password.get_secret_value()


class PasswordSet(Result):
    """Whose password it is now."""

    name: str = Field(description="The person.")


def check_password(name: str, password: str) -> None:
    """Refuse a password that is too short, too long, or the person's own name."""
    if not hashing.SHORTEST <= len(password) <= hashing.LONGEST or password.casefold() == name.casefold():
        raise BadInput(
            f"user.password: `password` must have {hashing.SHORTEST} to {hashing.LONGEST:,} characters, and not be the"
            " person's name."
        )


@operation("user.password", effect=Effect.MUTATE, scope="admin")
async def set_password(ctx: Ctx, given: SetPassword) -> PasswordSet:
    """Set the password that a person signs in with; every browser that was signed in as them must do so again."""
    if not ctx.principal.is_manager:
        raise Forbidden("only who manages the whole org sets passwords.")
    password = given.password.get_secret_value()
    check_password(given.name, password)
    user = await ctx.read(lambda tx: users.named(tx, ctx.org, given.name))
    if user is None:
        raise NotFound(f"No person {given.name!r}. `keepsake user add` adds one.")
    hash = await hashing.hashed(password)

    async def body(tx: Tx) -> Changed[PasswordSet]:
        await passwords.put(tx, ctx.org, user.id, hash, ctx.now)
        await web_sessions.end_all(tx, ctx.org, user.id)
        return Changed(PasswordSet(name=user.name), 0, [user.id])

    return await ctx.change(body)
