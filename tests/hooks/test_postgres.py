"""`keepsake hook` straight into PostgreSQL."""

import asyncio
import json
from pathlib import Path

import pytest

from keepsake import context, settings
from keepsake.hooks import spool
from tests.conftest import Database
from tests.hooks.replaying import all_rows, kept, recorded, repository_at, worked
from tests.hooks.running import ran, start


@pytest.fixture
def url(database: Database) -> str:
    return database.place


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_session_goes_into_the_database_and_comes_back(tmp_path: Path, url: str) -> None:
    root = repository_at(tmp_path / "work" / "my-api")
    for _, given in recorded("claude-code", root):
        assert ran(tmp_path, "claude-code", given, KEEPSAKE_DATABASE_URL=url).stderr == b""

    async def observed() -> list[str]:
        async with context.open(settings.load({}, data_dir=tmp_path, database_url=url)) as app:
            assert len(await all_rows(app, "SELECT key FROM events")) == 6
            await worked(app)
            return [one.text for one in await kept(app, root, "decision")]

    assert asyncio.run(observed()) == ["We decided to use JWT for API authentication."]
    said = ran(tmp_path, "claude-code", {**start(root), "session_id": "later"}, KEEPSAKE_DATABASE_URL=url).stdout
    assert "We decided to use JWT" in json.loads(said)["hookSpecificOutput"]["additionalContext"]
    assert not (tmp_path / spool.NAME).exists()


def test_a_database_that_is_away_costs_no_event(tmp_path: Path) -> None:
    root = repository_at(tmp_path / "work" / "my-api")

    done = ran(tmp_path, "claude-code", start(root), KEEPSAKE_DATABASE_URL="postgresql://127.0.0.1:9/none")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / spool.NAME).exists()
