"""What was handed out: keyed hashes of texts, with the counters, so that no one waits for them to be durable."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from keepsake.core.clock import DAY
from keepsake.store.engine import Tx
from keepsake.store.readings import Reading
from keepsake.store.recalls import Recall

#: How long a text is known to have come from here.
KEPT_FOR = 7 * DAY


@dataclass(frozen=True, slots=True)
class Given:
    """A text and who it was handed to; one that was made for an answer is no memory, and knows its bank."""

    org: int
    principal: str
    text: str
    memory: int = 0
    bank: str = ""


@dataclass(slots=True)
class Outbox:
    """What was handed out and waits to be noted, and what this process has noted a while ago."""

    waiting: list[Given] = field(default_factory=list)
    #: Held by whoever notes.
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: Whether someone will come and note it.
    is_called: bool = False
    #: Until when, by the monotonic clock, nobody is believed to have been handed anything.
    empty_until: float = 0.0
    noted: dict[tuple[int, str, str, int], int] = field(default_factory=dict)
    #: What came from outside, by who was handed it.
    readings: list[tuple[str, Reading]] = field(default_factory=list)
    #: Who was handed which memory.
    recalls: list[Recall] = field(default_factory=list)


async def put(tx: Tx, digests: Mapping[str, int], expires_at: int) -> None:
    """Note texts, each with the memory it is, or 0."""
    await tx.many(
        "INSERT INTO handed_out (digest, memory, expires_at) VALUES (:digest, :memory, :expires_at)"
        " ON CONFLICT (digest) DO UPDATE SET memory = excluded.memory, expires_at = excluded.expires_at",
        # In one order, so that two who note the same texts do not wait for each other.
        [{"digest": digest, "memory": digests[digest], "expires_at": expires_at} for digest in sorted(digests)],
    )


async def known(tx: Tx, digests: Sequence[str], now: int) -> tuple[dict[str, int], bool]:
    """Those of these texts that were handed out, each with the memory it is, or 0; and whether no text at all was."""
    rows = await tx.all(
        "SELECT digest, memory FROM handed_out WHERE digest = ANY_TEXT(:digests) AND expires_at > :now",
        digests=list(digests),
        now=now,
    )
    is_empty = not rows and await tx.one("SELECT 1 AS one FROM handed_out LIMIT 1") is None
    return {row["digest"]: row["memory"] for row in rows}, is_empty


async def expire(tx: Tx, now: int) -> int:
    """Drop what was handed out so long ago that no one will bring it back; tells how many."""
    return await tx.run("DELETE FROM handed_out WHERE expires_at <= :now", now=now)


async def memories(tx: Tx, now: int, limit: int) -> list[int]:
    """The memories that were handed out lately, to whomever; the last ones."""
    rows = await tx.all(
        "SELECT DISTINCT memory FROM handed_out WHERE memory <> 0 AND expires_at > :now"
        " ORDER BY memory DESC LIMIT :limit",
        now=now,
        limit=limit,
    )
    return [row["memory"] for row in rows]
