"""A look at a database that changes nothing: does it open, is it whole, is its schema ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from keepsake.core.errors import Unavailable
from keepsake.core.lazy import lazy
from keepsake.store import migrate

if TYPE_CHECKING:
    import asyncpg
else:
    asyncpg = lazy("asyncpg")

#: Longest that a checkup waits for others.
PATIENCE_S = 10


@dataclass(frozen=True, slots=True)
class File:
    """What was found in a SQLite file."""

    applied: Mapping[int, str]
    #: What `quick_check` complains about.
    faults: list[str]


def sqlite_file(path: Path) -> File:
    """Look into a SQLite file."""
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(PATIENCE_S * 1000)
            rows = connection.execute("PRAGMA quick_check(5)").fetchall()
            return File(_applied(connection), [str(row[0]) for row in rows if row[0] != "ok"])
        finally:
            connection.close()
    except apsw.Error as error:
        raise Unavailable(f"{path} cannot be read as a database ({error}).") from error


def _applied(connection: apsw.Connection) -> dict[int, str]:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone():
        return {}
    rows = connection.execute("SELECT number, checksum FROM migrations")
    return {int(str(number)): str(checksum) for number, checksum in rows}


@dataclass(frozen=True, slots=True)
class Server:
    """What was found behind a PostgreSQL URL."""

    version: str
    #: Version of pgvector; None when the server does not have it.
    vector: str | None
    #: Whether this database has it already, or this user may add it.
    has_vector: bool
    is_superuser: bool
    applied: Mapping[int, str]


async def postgres_server(url: str) -> Server:
    """Look at a PostgreSQL database."""
    try:
        connection = await asyncpg.connect(url, timeout=PATIENCE_S)
        try:
            return await _looked(connection)
        finally:
            await connection.close()
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError) as error:
        raise Unavailable(f"PostgreSQL cannot be used ({error or type(error).__name__}).") from error


async def _looked(connection: Any) -> Server:
    applied = {}
    if await connection.fetchval("SELECT to_regclass('migrations')"):
        rows = await connection.fetch("SELECT number, checksum FROM migrations")
        applied = {row["number"]: row["checksum"] for row in rows}
    return Server(
        version=await connection.fetchval("SHOW server_version"),
        vector=await connection.fetchval(
            "SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector'"
        ),
        has_vector=await connection.fetchval(
            "SELECT coalesce(bool_or(installed OR trusted OR NOT superuser), false)"
            " FROM pg_available_extension_versions WHERE name = 'vector'"
        ),
        is_superuser=await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"),
        applied=applied,
    )


def schema(engine: str, applied: Mapping[int, str]) -> tuple[int, int]:
    """The schema that a database has and the newest one known; refuses one that is newer or was edited."""
    steps = migrate.known(engine)
    migrate.pending(steps, applied)
    return max(applied, default=0), max(step.number for step in steps)
