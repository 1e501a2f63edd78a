"""Telling clients that a resource, or the list of them, has changed: whoever wrote it, on whatever server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from keepsake import dispatch
from keepsake.context import Ctx
from keepsake.core.errors import KeepsakeError
from keepsake.dispatch import Door
from keepsake.ops import following
from keepsake.ops.following import Trace

CtxOf = Callable[[Any], Awaitable[Ctx]]
Event = ResourceUpdated | ResourcesListChanged
#: How often banks are looked at, as long as someone wants to know.
PAUSE_S = 1.0
#: Addresses that one client may follow.
MOST = 1_000


@dataclass(slots=True)
class Follower:
    """One client that wants to know, and what it knows."""

    #: Who it is, found out anew: a credential may have gone meanwhile.
    ctx: Callable[[], Awaitable[Ctx]]
    tell: Callable[[Event], Awaitable[None]]
    #: Whether anyone hears it.
    is_listening: Callable[[], bool]
    is_gone: Callable[[], bool]
    addresses: set[str] = field(default_factory=set)
    #: Of the list of resources, and of each address that it follows.
    traces: dict[str, Trace] = field(default_factory=dict)
    bank: tuple[int, int] | None = None
    seq: int = -1
    #: Whether it was looked at before.
    is_known: bool = False


@dataclass(slots=True)
class Following:
    """Everyone at an endpoint who wants to know."""

    door: Door
    #: Who sent a request, found out anew.
    again: CtxOf
    #: Whether a session is still there, and whether its client listens.
    lives: Callable[[Ctx], bool]
    listens: Callable[[Ctx], bool]
    _known: dict[str, Follower] = field(default_factory=dict)
    _wanted: asyncio.Event = field(default_factory=asyncio.Event)

    async def subscribe(self, incoming: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Follow an address for as long as the session lives."""
        address = str(params.uri)
        try:
            ctx = await self.again(incoming)
            self.door.resource(ctx, address)
        except KeepsakeError as error:
            raise MCPError(error.rpc or types.INVALID_PARAMS, str(error)) from error
        follower = self._follower(incoming, ctx)
        if follower is None:
            raise MCPError(types.INVALID_REQUEST, "Subscribing needs a session. Send `initialize` first.")
        if len(follower.addresses) >= MOST:
            raise MCPError(types.INVALID_REQUEST, f"A session may follow {MOST:,} addresses. Unsubscribe some first.")
        follower.addresses.add(address)
        await self._looked(follower)
        return types.EmptyResult()

    async def unsubscribe(self, incoming: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Follow an address no longer."""
        with suppress(KeepsakeError):
            ctx = await self.again(incoming)
            if ctx.connection is not None and (follower := self._known.get(ctx.connection.id)):
                follower.addresses.discard(str(params.uri))
        return types.EmptyResult()

    async def begun(self, incoming: Any, params: types.NotificationParams) -> None:
        """A session is there, and is to be told when the list of resources changes."""
        with suppress(KeepsakeError):
            self._follower(incoming, await self.again(incoming))

    def _follower(self, incoming: Any, ctx: Ctx) -> Follower | None:
        connection, session = ctx.connection, incoming.session
        if connection is None:
            return None

        async def tell(event: Event) -> None:
            if isinstance(event, ResourceUpdated):
                await session.send_resource_updated(event.uri)
            else:
                await session.send_resource_list_changed()

        def made() -> Follower:
            return Follower(lambda: self.again(incoming), tell, lambda: self.listens(ctx), lambda: not self.lives(ctx))

        self._wanted.set()
        return self._known.setdefault(connection.id, made())

    async def listen(
        self, incoming: Any, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of the 2026 era; each has a bus of its own, for no two clients need see the same."""
        bus = InMemorySubscriptionBus()
        wanted = list(params.notifications.resource_subscriptions or ())[:MOST]
        follower = Follower(
            lambda: self.again(incoming), bus.publish, lambda: True, lambda: False, {str(uri) for uri in wanted}
        )
        key = f"listen {id(follower)}"
        self._known[key] = follower
        await self._looked(follower)
        self._wanted.set()
        try:
            return await ListenHandler(bus)(incoming, params)
        finally:
            self._known.pop(key, None)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look at what is followed, as long as the endpoint runs."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.watch)
            yield
            tasks.cancel_scope.cancel()

    async def watch(self) -> None:
        """Look every now and then, and do not look while nobody wants to know."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(PAUSE_S)
            for key in [key for key, one in self._known.items() if one.is_gone()]:
                del self._known[key]
            if not self._known:
                self._wanted.clear()
            for follower in [one for one in self._known.values() if one.is_listening()]:
                await self._looked(follower)

    async def _looked(self, follower: Follower) -> None:
        await dispatch.attempted(lambda: self._look(follower))

    async def _look(self, follower: Follower) -> None:
        """Tell a client what has changed since it was last looked at."""
        ctx = await follower.ctx()
        place = await following.place(ctx)
        is_seen = place is not None and (place.bank, place.seq) == (follower.bank, follower.seq)
        is_first, follower.is_known = not follower.is_known, True
        if place is None or (is_seen and follower.addresses <= follower.traces.keys()):
            return
        found = await following.traced(ctx, {one: self._kind(ctx, one) for one in sorted(follower.addresses)})
        has_moved = follower.bank != place.bank
        before, follower.traces = follower.traces, found
        follower.bank, follower.seq = place.bank, place.seq
        for address, trace in found.items():
            # What is followed only now has just been read; in another workspace everything is another.
            has_changed = not is_first if has_moved else address in before and before[address] != trace
            if has_changed:
                await follower.tell(ResourceUpdated(address) if address else ResourcesListChanged())

    def _kind(self, ctx: Ctx, address: str) -> tuple[str, str] | None:
        """What is at an address: the operation that reads it, and of what."""
        try:
            kind, arguments = self.door.resource(ctx, address)
        except KeepsakeError:
            return None
        return kind.tool.operation.id, next((str(value) for value in arguments.values()), "")
