"""MCP sessions, kept with the counters: shared by servers, never awaited for durability."""

from dataclasses import dataclass

from keepsake.store.engine import Tx
from keepsake.store.store import HOLDER

#: The server of a session that was ended.
NOWHERE = ""


@dataclass(frozen=True, slots=True)
class Known:
    """A session that some server minted."""

    digest: str
    dialect: str
    principal: str
    version: str
    #: Id of the bank that it was bound to; empty before.
    bank: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a session stands for whoever serves it."""

    is_ended: bool = False
    bank: str = ""


async def put(tx: Tx, session: Known, now: int, expires_at: int) -> None:
    """Write a session, or keep it alive; what has expired goes."""
    await tx.run("DELETE FROM mcp_sessions WHERE expires_at < :now", now=now)
    await tx.run(
        "INSERT INTO mcp_sessions (digest, dialect, principal, version, bank, server, expires_at)"
        " VALUES (:digest, :dialect, :principal, :version, :bank, :server, :expires_at)"
        " ON CONFLICT (digest) DO UPDATE SET expires_at = excluded.expires_at",
        digest=session.digest,
        dialect=session.dialect,
        principal=session.principal,
        version=session.version,
        bank=session.bank,
        server=HOLDER,
        expires_at=expires_at,
    )


async def elsewhere(tx: Tx, digest: str, now: int, expires_at: int) -> Known | None:
    """A living session of another server; looking at it keeps it alive."""
    row = await tx.one(
        "UPDATE mcp_sessions SET expires_at = :until WHERE digest = :digest AND expires_at >= :now"
        " AND server <> :here AND server <> :nowhere RETURNING dialect, principal, version, bank",
        until=expires_at,
        digest=digest,
        now=now,
        here=HOLDER,
        nowhere=NOWHERE,
    )
    return Known(digest, row["dialect"], row["principal"], row["version"], row["bank"]) if row else None


async def end(tx: Tx, digest: str, expires_at: int) -> None:
    """End a session on every server."""
    # The row stays for a while: one that is only missing may have expired while its own server was busy with it.
    await tx.run(
        "UPDATE mcp_sessions SET server = :nowhere, expires_at = :until WHERE digest = :digest",
        nowhere=NOWHERE,
        until=expires_at,
        digest=digest,
    )


async def standing(tx: Tx, digest: str) -> Standing | None:
    """Whether some server has ended a session, and what it was bound to; None when nothing is known of it."""
    row = await tx.one("SELECT server, bank FROM mcp_sessions WHERE digest = :digest", digest=digest)
    return Standing(row["server"] == NOWHERE, row["bank"]) if row else None


async def bind(tx: Tx, digest: str, bank: int) -> None:
    """Let a session work in a bank, on every server."""
    await tx.run("UPDATE mcp_sessions SET bank = :bank WHERE digest = :digest", bank=str(bank), digest=digest)
