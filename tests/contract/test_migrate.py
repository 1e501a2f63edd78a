"""Migrations: what is refused, and that a refusal leaves the database as it was."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from keepsake.core.errors import Misconfigured
from keepsake.store import migrate
from keepsake.store.store import Store

if TYPE_CHECKING:
    from conftest import Database

pytestmark = pytest.mark.anyio
ORG = 1


async def wrote(store: Store, *words: str) -> None:
    sql = "INSERT INTO terms (org, bank, term, docs, total) VALUES (:org, 42, :term, 1, 0)"
    await store.write(ORG, lambda tx: tx.many(sql, [{"org": ORG, "term": word} for word in words]))


async def terms(store: Store) -> list[str]:
    rows = await store.read(ORG, lambda tx: tx.all("SELECT term FROM terms ORDER BY term"))
    return [row["term"] for row in rows]


def steps(database: "Database", *scripts: str) -> list[migrate.Migration]:
    known = migrate.known(database.engine)
    more = [migrate.Migration(n, "more", script, frozenset()) for n, script in enumerate(scripts, len(known) + 1)]
    return [*known, *more]


async def test_migrating_again_changes_nothing(store: Store, database: "Database") -> None:
    await wrote(store, "apple")

    await database.migrate(steps(database))
    await database.migrate(steps(database))

    assert await terms(store) == ["apple"]


async def test_a_new_step_is_applied_once(store: Store, database: "Database") -> None:
    await database.migrate(steps(database, "CREATE TABLE extra (org BIGINT, id BIGINT)"))
    await database.migrate(steps(database, "CREATE TABLE extra (org BIGINT, id BIGINT)"))

    await store.write(ORG, lambda tx: tx.run("INSERT INTO extra (org, id) VALUES (:org, 1)", org=ORG))
    assert await store.read(ORG, lambda tx: tx.all("SELECT id FROM extra")) == [{"id": 1}]


async def test_a_newer_schema_is_refused(database: "Database") -> None:
    await database.migrate(steps(database, "CREATE TABLE extra (id BIGINT)"))

    with pytest.raises(Misconfigured, match="newer than this version"):
        await database.migrate(steps(database))


async def test_an_edited_step_is_refused(database: "Database") -> None:
    first, *rest = steps(database)

    with pytest.raises(Misconfigured, match="other contents"):
        await database.migrate([replace(first, script=first.script + "-- edited\n"), *rest])


async def test_a_step_that_loses_rows_is_refused_and_leaves_everything(store: Store, database: "Database") -> None:
    await wrote(store, "apple", "pear")

    with pytest.raises(Misconfigured, match="terms from 2 to 1 rows"):
        await database.migrate(
            steps(database, "CREATE TABLE extra (id BIGINT); DELETE FROM terms WHERE term = 'pear';")
        )
    await database.migrate(steps(database, "CREATE TABLE extra (id BIGINT)"))

    assert await terms(store) == ["apple", "pear"]
