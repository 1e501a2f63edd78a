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
    #: By what the person knows the browser again.
    browser: str = ""


_COLUMNS = "org, sha256, person, created_at, expires_at, recent_login_at, browser"


async def insert(tx: Tx, session: WebSession, now: int) -> None:
    """Begin a session; what has ended goes."""
    await forget(tx, session.org, now)
    await tx.run(
        f"INSERT INTO web_sessions ({_COLUMNS})"
        " VALUES (:org, :sha256, :person, :created_at, :expires_at, :recent_login_at, :browser)",
        org=session.org,
        sha256=session.sha256,
        person=session.person,
        created_at=session.created_at,
        expires_at=session.expires_at,
        recent_login_at=session.recent_login_at,
        browser=session.browser,
    )


async def forget(tx: Tx, org: int, now: int) -> int:
    """Forget the sessions that have ended; tells how many."""
    return await tx.run("DELETE FROM web_sessions WHERE org = :org AND expires_at < :now", org=org, now=now)


async def alive(tx: Tx, sha256: str, now: int) -> tuple[WebSession, str] | None:
    """A session that has not ended, of someone who is not shut out, with their name."""
    row = await tx.one(
        "SELECT s.org AS org, s.sha256 AS sha256, s.person AS person, s.created_at AS created_at,"
        " s.expires_at AS expires_at, s.recent_login_at AS recent_login_at, s.browser AS browser, u.name AS name"
        " FROM web_sessions s"
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


async def listed(tx: Tx, org: int, person: int, now: int) -> list[WebSession]:
    """The sessions of a person, newest first."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM web_sessions WHERE org = :org AND person = :person AND expires_at > :now"
        " ORDER BY created_at DESC, sha256",
        org=org,
        person=person,
        now=now,
    )
    return [WebSession(**row) for row in rows]


async def end_others(tx: Tx, org: int, person: int, kept: str) -> None:
    """End every session of a person but one."""
    await tx.run(
        "DELETE FROM web_sessions WHERE org = :org AND person = :person AND sha256 <> :kept",
        org=org,
        person=person,
        kept=kept,
    )
