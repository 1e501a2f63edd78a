"""Hashes of passwords, and how often strangers tried something."""

from keepsake.store.engine import Tx


async def put(tx: Tx, org: int, person: int, hash: str, at: int) -> None:
    """Set a person's password."""
    await tx.run(
        "INSERT INTO passwords (org, person, hash, changed_at) VALUES (:org, :person, :hash, :at)"
        " ON CONFLICT (org, person) DO UPDATE SET hash = excluded.hash, changed_at = excluded.changed_at",
        org=org,
        person=person,
        hash=hash,
        at=at,
    )


async def of(tx: Tx, org: int, name: str) -> tuple[int, str] | None:
    """The id and password hash of someone who may sign in."""
    row = await tx.one(
        "SELECT u.id AS id, p.hash AS hash FROM users u JOIN passwords p ON p.org = u.org AND p.person = u.id"
        " WHERE u.org = :org AND u.name = :name AND u.disabled_at IS NULL",
        org=org,
        name=name,
    )
    return (int(row["id"]), str(row["hash"])) if row else None


async def tried(tx: Tx, org: int, what: str, digest: str, now: int, window: int) -> int:
    """Count one more try; returns how many there were within the window that began with the first of them."""
    await tx.run("DELETE FROM tries WHERE org = :org AND since < :old", org=org, old=now - 24 * window)
    row = await tx.one(
        "INSERT INTO tries (org, what, digest, since, count) VALUES (:org, :what, :digest, :now, 1)"
        " ON CONFLICT (org, what, digest) DO UPDATE SET"
        " count = CASE WHEN tries.since < :start THEN 1 ELSE tries.count + 1 END,"
        " since = CASE WHEN tries.since < :start THEN excluded.since ELSE tries.since END RETURNING count",
        org=org,
        what=what,
        digest=digest,
        now=now,
        start=now - window,
    )
    return int(row["count"]) if row else 1


async def forgive(tx: Tx, org: int, what: str, digest: str, count: int) -> None:
    """Take back tries that were no mistakes."""
    await tx.run(
        "UPDATE tries SET count = CASE WHEN count > :count THEN count - :count ELSE 0 END"
        " WHERE org = :org AND what = :what AND digest = :digest",
        org=org,
        what=what,
        digest=digest,
        count=count,
    )
