"""What is a person's own: where they are signed in, and their password."""

from pydantic import Field, SecretStr, field_serializer

from keepsake.auth import passwords as hashing
from keepsake.context import Changed, Ctx
from keepsake.core import clock
from keepsake.core.errors import BadInput, NotFound
from keepsake.core.models import Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.ops import signing_in
from keepsake.store import passwords, users, web_sessions
from keepsake.store.engine import Tx
from keepsake.store.web_sessions import WebSession

#: Characters of a session's hash by which it is named.
NAMED = 16


class Login(Result):
    """A browser in which someone is signed in."""

    id: str = Field(description="By what to end it.")
    browser: str = Field(description="Which browser it said to be.")
    created_at: str = Field(description="When they signed in, ISO 8601.")
    expires_at: str = Field(description="Until when, ISO 8601.")


class ListLogins(Given):
    """Nothing to say."""


class Logins(Result):
    """Where someone is signed in."""

    sessions: list[Login] = Field(description="Newest first.")


@operation("user.sessions", effect=Effect.READ, scope="")
async def sessions(ctx: Ctx, given: ListLogins) -> Logins:
    """List the browsers in which you are signed in."""
    person = signing_in.on_page(ctx)
    held = await ctx.read(lambda tx: web_sessions.listed(tx, ctx.org, person, ctx.now))
    return Logins(sessions=[_login(one) for one in held])


def _login(one: WebSession) -> Login:
    return Login(
        id=one.sha256[:NAMED],
        browser=one.browser,
        created_at=clock.iso(one.created_at),
        expires_at=clock.iso(one.expires_at),
    )


class EndLogin(Given):
    """Which one."""

    id: str = Field(pattern=r"^[0-9a-f]{16}$", description="Its id, as listed.")


@operation("user.end_session", effect=Effect.MUTATE, scope="")
async def end_session(ctx: Ctx, given: EndLogin) -> Login:
    """Sign yourself out of one of your browsers."""
    person = signing_in.on_page(ctx)

    async def body(tx: Tx) -> Changed[Login]:
        held = await web_sessions.listed(tx, ctx.org, person, ctx.now)
        found = next((one for one in held if one.sha256.startswith(given.id)), None)
        if found is None:
            raise NotFound("You are not signed in there any more.")
        await web_sessions.end(tx, ctx.org, found.sha256)
        return Changed(_login(found), 0, [person])

    return await ctx.change(body)


class ChangePassword(Given):
    """The password that you have, and the one you want."""

    old: SecretStr = Field(description="The password that you have.", strict=False)
    new: SecretStr = Field(
        description=f"The new one, of {hashing.SHORTEST} to {hashing.LONGEST:,} characters.", strict=False
    )

    @field_serializer("old", "new", when_used="json")
    def _told(self, password: SecretStr) -> str:
        return password.get_secret_value()


@operation("user.change_password", effect=Effect.MUTATE, scope="")
async def change_password(ctx: Ctx, given: ChangePassword) -> signing_in.PasswordSet:
    """Change your own password; every browser you are signed in with must sign in again."""
    person = signing_in.on_page(ctx)
    user = await ctx.read(lambda tx: users.of_id(tx, ctx.org, person))
    if user is None:
        raise NotFound("There is no such person any more.")
    new = given.new.get_secret_value()
    signing_in.check_password(user.name, new)
    if not await signing_in.proves(ctx.app, user.name, given.old.get_secret_value()):
        raise BadInput("user.change_password: `old` is not your password.")
    hash = await hashing.hashed(new)

    async def body(tx: Tx) -> Changed[signing_in.PasswordSet]:
        await passwords.put(tx, ctx.org, person, hash, ctx.now)
        await web_sessions.end_all(tx, ctx.org, person)
        return Changed(signing_in.PasswordSet(name=user.name), 0, [person])

    return await ctx.change(body)
