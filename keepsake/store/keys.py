"""API keys, their use, and the calls each made in a minute."""

import json
from dataclasses import dataclass

from keepsake.core.clock import MINUTE
from keepsake.store.engine import Row, Tx


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret."""

    org: int
    id: int
    sha256: str
    prefix: str
    name: str
    owner: str
    scopes: frozenset[str]
    tier: str
    banks: frozenset[str] | None
    may_destroy: bool
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None
    #: The person whose key it is.
    person: int | None = None


_COLUMNS = (
    "org, id, sha256, prefix, name, owner, scopes, tier, banks, may_destroy, created_at, expires_at, revoked_at, person"
)


def _key(row: Row) -> Key:
    banks = json.loads(row["banks"])
    return Key(
        org=row["org"],
        id=row["id"],
        sha256=row["sha256"],
        prefix=row["prefix"],
        name=row["name"],
        owner=row["owner"],
        scopes=frozenset(json.loads(row["scopes"])),
        tier=row["tier"],
        banks=None if banks is None else frozenset(banks),
        may_destroy=bool(row["may_destroy"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        person=row["person"],
    )


async def insert(tx: Tx, key: Key) -> bool:
    """Store a new key; False when an active one has its name."""
    made = await tx.one(
        f"INSERT INTO api_keys ({_COLUMNS}) VALUES (:org, :id, :sha256, :prefix, :name, :owner, :scopes, :tier,"
        " :banks, :may_destroy, :created_at, :expires_at, NULL, :person)"
        " ON CONFLICT (org, name) WHERE revoked_at IS NULL DO NOTHING RETURNING id",
        org=key.org,
        id=key.id,
        sha256=key.sha256,
        prefix=key.prefix,
        name=key.name,
        owner=key.owner,
        scopes=json.dumps(sorted(key.scopes)),
        tier=key.tier,
        banks=json.dumps(None if key.banks is None else sorted(key.banks)),
        may_destroy=int(key.may_destroy),
        created_at=key.created_at,
        expires_at=key.expires_at,
        person=key.person,
    )
    return made is not None


async def by_hash(tx: Tx, sha256: str) -> Key | None:
    """Find a key by the hash of its secret, in whatever org."""
    row = await tx.one(f"SELECT {_COLUMNS} FROM api_keys WHERE sha256 = :sha256", sha256=sha256)
    return _key(row) if row else None


async def any_active(tx: Tx) -> bool:
    """Whether a key or a person exists, which closes the open door of loopback."""
    found = await tx.one(
        "SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM api_keys WHERE revoked_at IS NULL)"
        " OR EXISTS (SELECT 1 FROM users WHERE disabled_at IS NULL)"
    )
    return found is not None


async def listed(tx: Tx, org: int) -> list[Key]:
    """Every key of an org, newest first."""
    rows = await tx.all(f"SELECT {_COLUMNS} FROM api_keys WHERE org = :org ORDER BY id DESC", org=org)
    return [_key(row) for row in rows]


async def revoke(tx: Tx, org: int, name: str, at: int) -> int | None:
    """Revoke the active key of a name; None when there is none."""
    row = await tx.one(
        "UPDATE api_keys SET revoked_at = :at WHERE org = :org AND name = :name AND revoked_at IS NULL RETURNING id",
        at=at,
        org=org,
        name=name,
    )
    return int(row["id"]) if row else None


async def reach(tx: Tx, org: int, names: frozenset[str], name: str) -> None:
    """Let every key that reaches a bank by one of its names reach it by this name too."""
    for key in await listed(tx, org):
        if key.banks is not None and key.banks & names and name not in key.banks:
            await tx.run(
                "UPDATE api_keys SET banks = :banks WHERE org = :org AND id = :id",
                banks=json.dumps(sorted(key.banks | {name})),
                org=org,
                id=key.id,
            )


async def counted(tx: Tx, key: int, now: int, calls: int) -> int:
    """Count calls of a key in this minute and note its use; returns the minute's total."""
    minute = now // MINUTE
    row = await tx.one(
        "INSERT INTO counters (key_id, minute, calls) VALUES (:key, :minute, :calls)"
        " ON CONFLICT (key_id, minute) DO UPDATE SET calls = counters.calls + excluded.calls RETURNING calls",
        key=key,
        minute=minute,
        calls=calls,
    )
    total = int(row["calls"]) if row else calls
    if total == calls:
        await tx.run("DELETE FROM counters WHERE minute < :old", old=minute - 2)
    return total


async def used(tx: Tx, key: int, now: int) -> None:
    """Note when a key was last used."""
    await tx.run(
        "INSERT INTO key_uses (key_id, last_used) VALUES (:key, :now)"
        " ON CONFLICT (key_id) DO UPDATE SET last_used = excluded.last_used",
        key=key,
        now=now,
    )


async def last_uses(tx: Tx) -> dict[int, int]:
    """When each key was last used."""
    return {row["key_id"]: row["last_used"] for row in await tx.all("SELECT key_id, last_used FROM key_uses")}
