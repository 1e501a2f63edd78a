"""The store: an engine, the ids it hands out and the secrets it keeps."""

import asyncio
import hmac
import os
import secrets
import socket
import time
from dataclasses import dataclass, field
from typing import TypeVar

from keepsake.core.ids import EPOCH, NODES, IdMaker
from keepsake.store.engine import Body, Engine, Tx

T = TypeVar("T")
LEASE_S = 600
#: A lease is renewed by the first write after this much of it has passed.
RENEW_S = 300


@dataclass(slots=True)
class Store:
    """Everything above asks the database through this."""

    engine: Engine
    digest_key: bytes
    _maker: IdMaker | None = None
    _leasing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, org: int, body: Body[T]) -> T:
        """Read within one org, on one snapshot."""
        return await self.engine.read(org, body)

    async def write(self, org: int, body: Body[T]) -> T:
        """Write within one org; the answer comes when it is durable."""
        await self.lease()
        return await self.engine.write(org, body)

    def new_id(self) -> int:
        """An id that no one else has; within `write` only, which holds the lease."""
        if self._maker is None:
            raise RuntimeError("Ids are made inside Store.write.")
        return self._maker.next(int(time.time()))

    def digest(self, text: str) -> str:
        """A keyed hash, so that what was forgotten cannot be guessed from it."""
        return hmac.digest(self.digest_key, text.encode(), "sha256").hex()

    async def lease(self) -> None:
        """Hold a node slot for making ids."""
        now = int(time.time())
        if self._maker is not None and self._maker.lease_until - now > RENEW_S:
            return
        # Callers that arrive together must not each take a slot.
        async with self._leasing:
            if self._maker is None or self._maker.lease_until - now <= RENEW_S:
                self._maker = await self.engine.claim(lambda tx: self._take_slot(tx, now))

    async def _take_slot(self, tx: Tx, now: int) -> IdMaker:
        held = self._maker
        if held is not None and await self._renewed(tx, held, now):
            held.lease_until = now + LEASE_S
            return held
        row = await tx.one("SELECT max(slot) AS top FROM nodes")
        top = -1 if row is None or row["top"] is None else int(row["top"])
        free = await tx.all("SELECT slot FROM nodes WHERE lease_until < :now ORDER BY lease_until LIMIT 8", now=now)
        for slot in [int(row["slot"]) for row in free] + list(range(top + 1, NODES)):
            taken = await tx.one(
                "INSERT INTO nodes (slot, holder, lease_until, last_id) VALUES (:slot, :holder, :until, 0)"
                " ON CONFLICT (slot) DO UPDATE SET holder = excluded.holder, lease_until = excluded.lease_until"
                " WHERE nodes.lease_until < :now RETURNING last_id",
                slot=slot,
                holder=HOLDER,
                until=now + LEASE_S,
                now=now,
            )
            if taken:
                return IdMaker(slot, max(int(taken["last_id"]), (now - EPOCH - 1) << 22), now + LEASE_S)
        raise RuntimeError(f"All {NODES} node slots are taken; a process more could not make ids of its own.")

    async def _renewed(self, tx: Tx, maker: IdMaker, now: int) -> bool:
        changed = await tx.run(
            "UPDATE nodes SET lease_until = :until, last_id = :last"
            " WHERE slot = :slot AND holder = :holder AND lease_until >= :now",
            until=now + LEASE_S,
            last=maker.last,
            slot=maker.node,
            holder=HOLDER,
            now=now,
        )
        return changed == 1

    async def close(self) -> None:
        """Give the slot back and close the engine."""
        if (maker := self._maker) is not None:
            await self.engine.claim(lambda tx: self._released(tx, maker))
        await self.engine.close()

    async def _released(self, tx: Tx, maker: IdMaker) -> None:
        await tx.run(
            "UPDATE nodes SET lease_until = 0, last_id = :last WHERE slot = :slot AND holder = :holder",
            last=maker.last,
            slot=maker.node,
            holder=HOLDER,
        )


HOLDER = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


async def opened(engine: Engine) -> Store:
    """Build the store over a migrated database."""
    key = await engine.look(_digest_key)
    if key is None:
        key = await engine.claim(_new_digest_key)
    return Store(engine, bytes.fromhex(key))


async def _digest_key(tx: Tx) -> str | None:
    row = await tx.one("SELECT value FROM meta WHERE key = 'digest_key'")
    return str(row["value"]) if row else None


async def _new_digest_key(tx: Tx) -> str:
    await tx.run(
        "INSERT INTO meta (key, value) VALUES ('digest_key', :value) ON CONFLICT (key) DO NOTHING",
        value=secrets.token_hex(32),
    )
    if (key := await _digest_key(tx)) is None:
        raise RuntimeError("The server's secret could not be stored.")
    return key
