"""The store without a server: one short transaction, given up at once when the store is busy."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from keepsake.core.errors import KeepsakeError
from keepsake.core.lazy import lazy
from keepsake.settings import Settings
from keepsake.store.engine import Tx

if TYPE_CHECKING:
    import asyncio

    import apsw
    import asyncpg

    from keepsake.store import postgres, sqlite
else:
    apsw = lazy("apsw")
    asyncio = lazy("asyncio")
    asyncpg = lazy("asyncpg")
    postgres = lazy("keepsake.store.postgres")
    sqlite = lazy("keepsake.store.sqlite")

T = TypeVar("T")
Body = Callable[[Tx], Coroutine[Any, Any, T]]
#: `LOCAL_ORG` of core/principal.py, which takes too long to load.
ORG = 1
#: How long an editor may wait for someone else's commit, in milliseconds; after that the event is spooled.
PATIENCE_MS = 300


class Unwritable(Exception):
    """The store cannot take anything now; the message says why."""


def run(settings: Settings, body: Body[T], *, writes: bool) -> T:
    """Run one transaction on the store that is configured; raises Unwritable."""
    if settings.database_url:
        return asyncio.run(_postgres(settings.database_url, body, writes))
    return _sqlite(settings.data_dir / "keepsake.db", body, writes)


def _sqlite(path: Path, body: Body[T], writes: bool) -> T:
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            return _transaction(connection, body, writes)
        finally:
            connection.close()
    except (apsw.Error, OSError) as error:
        raise Unwritable(f"{type(error).__name__}: {error}") from error


def _transaction(connection: "apsw.Connection", body: Body[T], writes: bool) -> T:
    connection.set_busy_timeout(PATIENCE_MS)
    # The last to leave would move the whole log into the file while an editor waits.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
    try:
        value = sqlite.drive(body(sqlite.SqliteTx(connection)))
        connection.execute("COMMIT")
        return value
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


async def _postgres(url: str, body: Body[T], writes: bool) -> T:
    try:
        engine = await postgres.connected(url)
        try:
            return await (engine.write(ORG, body) if writes else engine.read(ORG, body))
        finally:
            await engine.close()
    except (KeepsakeError, asyncpg.PostgresError, OSError, TimeoutError) as error:
        raise Unwritable(type(error).__name__) from error
