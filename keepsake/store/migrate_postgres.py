"""Migrations of a PostgreSQL database, by the same rules as SQLite's.

A whole upgrade is one transaction, DDL included: what a refusal rolls back is the snapshot that SQLite has to copy.
"""

import asyncpg

from keepsake.core import clock
from keepsake.core.errors import Misconfigured, Unavailable
from keepsake.store import migrate

#: Any number, as long as everyone takes the same one; advisory locks belong to one database.
LOCK = 7_208_118_431
VECTOR = (0, 8)


async def postgres_database(url: str, steps: list[migrate.Migration] | None = None) -> None:
    """Bring a PostgreSQL database to the newest schema, or leave it exactly as it was."""
    steps = migrate.known("postgres") if steps is None else steps
    try:
        connection = await asyncpg.connect(url)
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError) as error:
        told = error or type(error).__name__
        raise Unavailable(f"PostgreSQL cannot be reached ({told}). Check the database URL and that it runs.") from error
    try:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
            await _upgrade(connection, migrate.pending(steps, await _applied(connection)))
    except asyncpg.InsufficientPrivilegeError as error:
        raise Misconfigured(
            f"PostgreSQL refused a step of the migration ({error}). Migrate as the owner of the database, with the"
            " right CREATEROLE, or have an administrator run: CREATE EXTENSION vector; CREATE ROLE keepsake_app;"
            " CREATE ROLE keepsake_claim; GRANT keepsake_app, keepsake_claim TO the user of the URL."
        ) from error
    finally:
        await connection.close()


async def _upgrade(connection: asyncpg.Connection, steps: list[migrate.Migration]) -> None:
    if steps:
        await _require_pgvector(connection)
    for step in steps:
        await _apply(connection, step)
    await connection.execute(migrate.volatile().replace("CREATE TABLE", "CREATE UNLOGGED TABLE"))
    await connection.execute("SELECT keepsake_secure()")


async def _apply(connection: asyncpg.Connection, step: migrate.Migration) -> None:
    tables = await _tables(connection)
    if tables:
        # Someone else's insert between the two counts must not look like our own.
        await connection.execute(f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE")
    before = await _counts(connection, tables)
    await connection.execute(migrate.TABLE)
    await connection.execute(step.script)
    await connection.execute(
        "INSERT INTO migrations (number, name, checksum, applied_at) VALUES ($1, $2, $3, $4)",
        step.number,
        step.name,
        step.checksum,
        clock.now(),
    )
    before.pop("migrations", None)
    migrate.compare(step, before, await _counts(connection, await _tables(connection)))


async def _applied(connection: asyncpg.Connection) -> dict[int, str]:
    if not await connection.fetchval("SELECT to_regclass('migrations')"):
        return {}
    return {row["number"]: row["checksum"] for row in await connection.fetch("SELECT number, checksum FROM migrations")}


async def _tables(connection: asyncpg.Connection) -> list[str]:
    rows = await connection.fetch(
        "SELECT quote_ident(relname) AS name FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
        " AND relkind IN ('r', 'p') AND NOT relispartition AND relpersistence = 'p' ORDER BY relname"
    )
    return [row["name"] for row in rows]


async def _counts(connection: asyncpg.Connection, tables: list[str]) -> dict[str, int]:
    return {table: await connection.fetchval(f"SELECT count(*) FROM {table}") for table in tables}


async def _require_pgvector(connection: asyncpg.Connection) -> None:
    version = await connection.fetchval(
        "SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector'"
    )
    if version is None or tuple(int(part) for part in version.split(".")[:2]) < VECTOR:
        raise Misconfigured(
            f"PostgreSQL has {f'pgvector {version}' if version else 'no pgvector'}, and Keepsake needs 0.8 or newer."
            " Install it on the database server (the image pgvector/pgvector has it), or set no database URL to keep"
            " memories in a SQLite file."
        )
