"""Sessions of people who signed in with a browser; the id itself is only with them."""

from dataclasses import dataclass

from keepsake.store.engine import Tx


@dataclass(frozen=True, slots=True)
class WebSession:
    """Someone who is signed in."""

    org: int
    sha256: str
    person: int
    created_at: int
    expires_at: int
    #: When the password was last given.
    recent_login_at: int


async def insert(tx: Tx, session: WebSession, now: int) -> None:
    """Begin a session; what has ended goes."""
    await tx.run("DELETE FROM web_sessions WHERE org = :org AND expires_at < :now", org=session.org, now=now)
    await tx.run(
        "INSERT INTO web_sessions (org, sha256, person, created_at, expires_at, recent_login_at)"
        " VALUES (:org, :sha256, :person, :created_at, :expires_at, :recent_login_at)",
        org=session.org,
        sha256=session.sha256,
        person=session.person,
        created_at=session.created_at,
        expires_at=session.expires_at,
        recent_login_at=session.recent_login_at,
    )


async def alive(tx: Tx, sha256: str, now: int) -> tuple[WebSession, str] | None:
    """A session that has not ended, of someone who is not shut out, with their name."""
    row = await tx.one(
        "SELECT s.org AS org, s.sha256 AS sha256, s.person AS person, s.created_at AS created_at,"
        " s.expires_at AS expires_at, s.recent_login_at AS recent_login_at, u.name AS name FROM web_sessions s"
        " JOIN users u ON u.org = s.org AND u.id = s.person"
        " WHERE s.sha256 = :sha256 AND s.expires_at > :now AND u.disabled_at IS NULL",
        sha256=sha256,
        now=now,
    )
    if row is None:
        return None
    fields = {name: value for name, value in row.items() if name != "name"}
    return WebSession(**fields), str(row["name"])


async def end(tx: Tx, org: int, sha256: str) -> None:
    """End a session."""
    await tx.run("DELETE FROM web_sessions WHERE org = :org AND sha256 = :sha256", org=org, sha256=sha256)


async def end_all(tx: Tx, org: int, person: int) -> None:
    """End every session of a person."""
    await tx.run("DELETE FROM web_sessions WHERE org = :org AND person = :person", org=org, person=person)
