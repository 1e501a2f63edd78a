"""Reading another tool's SQLite file, whether it is in use or not, without leaving a trace beside it."""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from keepsake.core.errors import BadInput, Unavailable

Row = Mapping[str, object]
#: Long enough for a writer's commit.
PATIENCE_S = 5.0


@contextmanager
def opened(path: Path, tables: tuple[str, ...]) -> Iterator[sqlite3.Connection]:
    """A read-only connection to a database that has these tables, within one snapshot."""
    with tempfile.TemporaryDirectory(prefix="keepsake-import-") as spare:
        try:
            with closing(_connected(path, Path(spare))) as connection:
                connection.execute("BEGIN")
                missing = [table for table in tables if not columns(connection, table)]
                if missing:
                    raise BadInput(f"{path} has no table {missing[0]!r}; it does not look like what was asked for.")
                yield connection
        except sqlite3.OperationalError as error:
            raise Unavailable(f"{path} cannot be read now ({error}). Close what uses it, or try again.") from error
        except sqlite3.DatabaseError as error:
            raise BadInput(f"{path} is not a database that can be read ({error}).") from error


def _connected(path: Path, spare: Path) -> sqlite3.Connection:
    """Open it by the way that makes no file: shared with its writer, else untouched, else as a copy of our own."""
    if not path.is_file():
        raise BadInput(f"There is no file {path}. Give the path of the database.")
    log, shared = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    if log.exists() and not shared.exists() and log.stat().st_size:
        # What was not checkpointed can be seen only by making the shared file anew: not in somebody else's folder.
        shutil.copyfile(path, spare / path.name)
        shutil.copyfile(log, spare / log.name)
        path, way = spare / path.name, "mode=rw"
    else:
        way = "mode=ro" if shared.exists() else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{way}", uri=True, timeout=PATIENCE_S)
    connection.row_factory = sqlite3.Row
    # A text that is not UTF-8 spoils itself, not the import.
    connection.text_factory = lambda told: told.decode("utf-8", "replace")
    return connection


def columns(connection: sqlite3.Connection, table: str) -> set[str]:
    """What a table of this version has."""
    return {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}


def count(connection: sqlite3.Connection, table: str) -> int:
    """How many rows a table has; none when it is not there."""
    if not columns(connection, table):
        return 0
    return int(connection.execute(f"SELECT count(*) AS n FROM {table}").fetchone()["n"])


def rows(connection: sqlite3.Connection, table: str) -> Iterator[Row]:
    """The rows of a table, oldest first, one at a time."""
    known = columns(connection, table)
    if not known:
        return
    order = "created_at_epoch, id" if "created_at_epoch" in known else "id"
    for row in connection.execute(f"SELECT * FROM {table} ORDER BY {order}"):
        yield {name: row[name] for name in row.keys()}  # noqa: SIM118 - a row yields its values
