"""Tools enrolled, asked for, agreed to and run, in process and on a store that a test chooses."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App, Ctx
from keepsake.core.principal import Principal, Rights, local_owner
from keepsake.ops import running
from keepsake.services import sandbox
from keepsake.services.sandbox import Program
from keepsake.store import users
from keepsake.store.engine import Tx

Json = dict[str, Any]


async def _unheard(_: bytes) -> None:
    """Nobody listens."""


def _why_not() -> str:
    """Why the sandbox does not work here: there is none, or this machine lets nobody make one."""
    try:
        ended = asyncio.run(sandbox.run(Program(["true"], "probe"), _unheard, asyncio.Event()))
    except sandbox.Refused as refused:
        return str(refused)
    return "" if ended.state == "succeeded" else f"The sandbox does not work here: {ended.reason}"


#: Why a test of the sandbox cannot be run here; empty where it can.
NO_SANDBOX = _why_not()
needs_sandbox = pytest.mark.skipif(bool(NO_SANDBOX), reason=NO_SANDBOX or "never")
ANY = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def agent(app: App, **rights: Any) -> Ctx:
    """A request of an agent with a key of its own."""
    given = {"org": 1, "name": "key:agent", "scopes": local_owner().scopes - {"admin"}, "key": 7, **rights}
    return app.ctx(Principal(**given), "default")


def owner(app: App) -> Ctx:
    """The owner, who types a command at the machine."""
    return app.ctx(local_owner(), "default", surface="cli")


async def ask(ctx: Ctx, operation: str, /, **given: object) -> Json:
    """The result of an operation."""
    return (await dispatch.call(ctx, operation, given)).model_dump(mode="json")


async def enrolled(app: App, name: str = "say", *argv: str, **more: object) -> Json:
    """A tool, which only reads unless told otherwise."""
    words = list(argv) or ([] if "http" in more else ["echo", "{text}"])
    free: Json = {"effect": "read", "approval": "none"}
    free |= {"parameters": ANY} if any("{text}" in word for word in words) else {}
    given: Json = {"name": name, **({} if "http" in more else {"argv": words}), **free, **more}
    return await ask(owner(app), "exec.enrol", **given)


async def invoked(ctx: Ctx, tool: str = "say", /, **arguments: object) -> Json:
    return await ask(ctx, "exec.invoke", tool=tool, arguments=arguments)


async def looked(ctx: Ctx, made: Json) -> Json:
    return await ask(ctx, "exec.get", id=made["id"])


async def ran(app: App, ctx: Ctx, tool: str = "say", /, **arguments: object) -> Json:
    """What came of one run that nobody had to agree to."""
    made = await invoked(ctx, tool, **arguments)
    await running.step(app)
    return await looked(ctx, made)


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 20) -> None:
    """Wait for something that happens beside us."""
    async with asyncio.timeout(seconds):
        while not await holds():
            await asyncio.sleep(0.02)


async def person(app: App, name: str, *roles: str, **more: object) -> Ctx:
    """A person on a page of ours, who was just added."""
    await ask(owner(app), "user.add", name=name)
    for role in roles:
        await ask(owner(app), "user.role", name=name, role=role)

    async def found(tx: Tx) -> int:
        user = await users.named(tx, 1, name)
        assert user is not None
        return user.id

    id = await app.store.read(1, found)
    scopes = owner(app).principal.scopes
    who = replace(owner(app).principal, name=f"user:{name}", person=id, rights=Rights(scopes))
    return replace(app.ctx(who, "default", surface="web"), **more)  # type: ignore[arg-type]  # fields of a request


def later(app: App, by: int) -> App:
    now = app.now
    return replace(app, now=lambda: now() + by)


async def waiting(app: App, ctx: Ctx | None = None, **more: object) -> Json:
    """An invocation that waits for a person."""
    await enrolled(app, **{"effect": "mutate", "approval": "person", **more})  # type: ignore[arg-type]  # of an enrolment
    return await invoked(ctx or agent(app), str(more.get("name", "say")), text="x")
