"""Migrations: what is refused, and that a refusal leaves the database as it was."""

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keepsake.core.errors import Misconfigured
from keepsake.store import insights, jobs, migrate
from keepsake.store.engine import Tx
from keepsake.store.store import Store
from tests.conftest import execute

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
    more = [migrate.Migration(n, "more", script, frozenset()) for n, script in enumerate(scripts, known[-1].number + 1)]
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


def test_a_file_is_copied_once_before_however_many_steps(tmp_path: Path) -> None:
    place = tmp_path / "keepsake.db"
    migrate.sqlite_file(place)
    one, two = "CREATE TABLE one (n BIGINT)", "CREATE TABLE two (n BIGINT)"
    known = migrate.known("sqlite")
    first = known[-1].number + 1
    more = [migrate.Migration(first + n, "more", script, frozenset()) for n, script in enumerate((one, two))]

    migrate.sqlite_file(place, [*known, *more])

    assert [copy.name for copy in tmp_path.glob("*.before-*")] == [f"keepsake.db.before-{first:04}"]


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


@pytest.fixture
async def old(request: pytest.FixtureRequest, database: "Database", tmp_path: Path) -> AsyncIterator["Database"]:
    """An empty database of the same engine."""
    if database.engine == "sqlite":
        migrate.counters_file(tmp_path / "counters.db")
        yield replace(database, place=str(tmp_path / "old.db"))
        return
    url, name = request.getfixturevalue("postgres_server"), f"old_{secrets.token_hex(6)}"
    await execute(url.format("postgres"), f"CREATE DATABASE {name}")
    yield replace(database, place=url.format(name))
    await execute(url.format("postgres"), f"DROP DATABASE {name} WITH (FORCE)")


async def test_a_bank_keeps_its_place_when_the_job_no_longer_holds_it(old: "Database") -> None:
    every = migrate.known(old.engine)
    await old.migrate(every[:2])
    store = await old.open()

    async def consolidated(tx: Tx) -> None:
        await tx.run("INSERT INTO bank_seq (org, bank, seq, purges) VALUES (1, 42, 9, 0)")
        await tx.run("INSERT INTO bank_seq (org, bank, seq, purges) VALUES (1, 43, 9, 0)")
        await jobs.wanted(tx, store, 1, 42, insights.JOB, 5)
        await tx.run("UPDATE jobs SET input = :input", input='{"seq": 7, "id": 1234567890123}')

    await store.write(ORG, consolidated)
    await store.close()

    await old.migrate(every)

    store = await old.open()
    reached = [await store.read(ORG, lambda tx: insights.reached(tx, ORG, bank)) for bank in (42, 43)]  # noqa: B023
    await store.close()
    assert reached == [insights.Place(7, 1234567890123), insights.Place()]
