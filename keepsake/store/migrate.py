"""Numbered migrations with checksums: under a lock, after a snapshot, counting rows."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import apsw

from keepsake.core import clock
from keepsake.core.errors import Misconfigured
from keepsake.store import sqlite

PARTITIONS = 16
_PARTITIONED = re.compile(r"CREATE TABLE (\w+) \(((?:(?!\n\)).)*)\n\) PARTITIONED;", re.DOTALL)
TABLE = (
    "CREATE TABLE IF NOT EXISTS migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL,"
    " checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)"
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema, as one engine runs it."""

    number: int
    name: str
    script: str
    #: Tables whose row counts this step may change.
    changes: frozenset[str]

    @property
    def checksum(self) -> str:
        """Tells whether an applied step was edited later."""
        return hashlib.sha256(self.script.encode()).hexdigest()


def known(engine: str) -> list[Migration]:
    """Every step this version knows, oldest first."""
    folder = resources.files("keepsake.store").joinpath("schema")
    scripts: dict[tuple[int, str], str] = {}
    # What both engines share comes before what is one engine's own.
    for file in sorted(folder.iterdir(), key=lambda file: (file.name.split(".")[0], file.name.count("."))):
        name, *only = file.name.removesuffix(".sql").split(".")
        number, _, title = name.partition("_")
        if not file.name.endswith(".sql") or title == "volatile" or (only and only[0] != engine):
            continue
        step = (int(number), title)
        scripts[step] = scripts.get(step, "") + file.read_text(encoding="utf-8")
    return [_rendered(number, title, script, engine) for (number, title), script in sorted(scripts.items())]


def volatile() -> str:
    """The schema of the counters."""
    return resources.files("keepsake.store").joinpath("schema/0001_volatile.sql").read_text(encoding="utf-8")


def _rendered(number: int, title: str, script: str, engine: str) -> Migration:
    changes = frozenset(re.findall(r"^-- changes rows of: (\w+)", script, re.MULTILINE))
    if engine == "sqlite":
        return Migration(number, title, script.replace(") PARTITIONED;", ");"), changes)

    def partitioned(match: re.Match[str]) -> str:
        table = match[1]
        parts = "\n".join(
            f"CREATE TABLE {table}_{n} PARTITION OF {table} FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {n});"
            for n in range(PARTITIONS)
        )
        return f"CREATE TABLE {table} ({match[2]}\n) PARTITION BY HASH (bank);\n{parts}"

    return Migration(number, title, _PARTITIONED.sub(partitioned, script), changes)


def pending(steps: list[Migration], applied: Mapping[int, str]) -> list[Migration]:
    """Which steps are still to do; refuses a schema that is newer or was edited."""
    newest = max((step.number for step in steps), default=0)
    if applied and max(applied) > newest:
        raise Misconfigured(
            f"This database has schema {max(applied)}, newer than this version of Keepsake knows ({newest})."
            " Install the newer version again, or restore the backup made before it."
        )
    for step in steps:
        if step.number in applied and applied[step.number] != step.checksum:
            raise Misconfigured(
                f"Migration {step.number} was applied with other contents than this version has."
                " Install the version that made the database."
            )
    return [step for step in steps if step.number not in applied]


def compare(step: Migration, before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """Refuse a step that lost or made rows it did not say it would."""
    for table, count in before.items():
        if table not in step.changes and after.get(table) != count:
            raise Misconfigured(
                f"Migration {step.number} changed {table} from {count} to {after.get(table)} rows, which it must not."
                " Nothing was kept of it. Please report this."
            )


def sqlite_file(path: Path, steps: list[Migration] | None = None) -> None:
    """Bring a SQLite file to the newest schema, or leave it exactly as it was."""
    steps = known("sqlite") if steps is None else steps
    connection = sqlite.connect(path)
    try:
        if not pending(steps, _applied(connection)):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have migrated while this one waited for the lock.
            applied = _applied(connection)
            todo = pending(steps, applied)
            if applied and todo:
                _snapshot(path, todo[0])
            for step in todo:
                _apply(connection, step)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    finally:
        connection.close()


def counters_file(path: Path) -> None:
    """Make the file of counters beside the database."""
    connection = sqlite.connect(path, "OFF")
    connection.execute(volatile())
    connection.close()


def _applied(connection: apsw.Connection) -> dict[int, str]:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone():
        return {}
    rows: list[tuple[Any, ...]] = connection.execute("SELECT number, checksum FROM migrations").fetchall()
    return dict(rows)


def _snapshot(path: Path, step: Migration) -> None:
    target = path.with_name(f"{path.name}.before-{step.number:04}")
    target.unlink(missing_ok=True)
    source = sqlite.connect(path)
    source.execute("VACUUM INTO ?", (str(target),))
    source.close()


def _apply(connection: apsw.Connection, step: Migration) -> None:
    before = _counts(connection)
    connection.execute(TABLE)
    connection.execute(step.script)
    connection.execute(
        "INSERT INTO migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)",
        (step.number, step.name, step.checksum, clock.now()),
    )
    before.pop("migrations", None)
    compare(step, before, _counts(connection))


def _counts(connection: apsw.Connection) -> dict[str, int]:
    # Virtual tables and their shadows follow the tables they index.
    names: list[tuple[Any, ...]] = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        " AND name NOT LIKE 'search_%' AND name <> 'search' OR name = 'search_docs'"
    ).fetchall()
    counts: dict[str, int] = {}
    for (name,) in names:
        rows: list[tuple[Any, ...]] = connection.execute(f'SELECT count(*) FROM "{name}"').fetchall()
        counts[name] = rows[0][0]
    return counts
