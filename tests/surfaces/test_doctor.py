"""The doctor: what it finds, and what it says to do about it."""

import asyncio
import json
import socket
import tempfile
from pathlib import Path

import asyncpg
import pytest

from keepsake.services import sandbox
from tests.endpoint_server import serving
from tests.exec.executing import NO_SANDBOX
from tests.llm_server import Fails
from tests.surfaces.helpers import Terminal, damaged, keepsake, levels

__all__ = ["keepsake"]


def problems(keepsake: Terminal, *words: str) -> dict[str, str]:
    """The problems that the doctor finds, with what it says to do."""
    ran = keepsake("doctor", "--json", *words)
    found = {one["check"]: one["mend"] for one in json.loads(ran.out)["findings"] if one["level"] == "problem"}
    assert ran.code == (1 if found else 0)
    return found


def test_a_machine_without_a_store_is_well_and_stays_without_one(keepsake: Terminal) -> None:
    ran = keepsake("doctor")

    assert ran.code == 0
    assert ran.out.endswith("All is well.\n")
    assert not keepsake.folder.exists()


def test_a_store_in_use_is_well_and_an_open_door_is_told(keepsake: Terminal) -> None:
    keepsake("call", "retain", "--dialect", "hindsight", "--content", "Ada likes tea")

    before = levels(keepsake("doctor", "--json").out)
    keepsake("key", "create", "--name", "laptop")
    after = levels(keepsake("doctor", "--json").out)

    checks = ("python", "data folder", "disk space", "database", "integrity", "door", "jobs", "embedding", "git")
    notes = {"door": "note", "sandbox": "note" if NO_SANDBOX else "ok"}
    assert before == dict.fromkeys((*checks, "quick model", "sharp model", "port"), "ok") | notes
    assert after["door"] == "ok"


def test_a_door_that_would_be_open_to_the_world_is_a_problem(keepsake: Terminal) -> None:
    keepsake("status")
    keepsake.set(KEEPSAKE_HOST="0.0.0.0")

    assert problems(keepsake) == {"door": "`keepsake key create --name NAME` makes one."}


def test_files_that_others_can_read_are_a_problem(keepsake: Terminal) -> None:
    keepsake("status")
    keepsake.folder.chmod(0o755)
    (keepsake.folder / "keepsake.db").chmod(0o644)

    assert problems(keepsake) == {"data folder": f"chmod 700 '{keepsake.folder}'"}


def test_a_folder_that_is_none_is_a_problem(keepsake: Terminal) -> None:
    keepsake.folder.write_text("not a folder")

    assert list(problems(keepsake)) == ["data folder"]


def test_a_file_that_is_no_database_is_a_problem(keepsake: Terminal) -> None:
    keepsake.folder.mkdir(mode=0o700)
    (keepsake.folder / "keepsake.db").write_bytes(b"nothing like a database " * 200)

    assert list(problems(keepsake)) == ["database"]
    assert "`keepsake doctor` tells how to mend it" in keepsake("status").err


def test_a_damaged_database_is_a_problem(keepsake: Terminal) -> None:
    keepsake("status")
    damaged(
        keepsake.folder,
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)"
        " INSERT INTO meta SELECT 'entry ' || i, hex(zeroblob(200)) FROM n",
    )
    path = keepsake.folder / "keepsake.db"
    content = bytearray(path.read_bytes())
    page = content.index(b"entry 100") // 4096 * 4096
    content[page : page + 64] = bytes(64)
    path.write_bytes(content)

    assert {"database", "integrity"} & set(problems(keepsake))


def test_a_newer_schema_is_a_problem_and_an_older_one_is_not(keepsake: Terminal) -> None:
    keepsake("status")
    damaged(keepsake.folder, "INSERT INTO migrations VALUES (99, 'later', 'x', 0)")
    newer = problems(keepsake)
    damaged(keepsake.folder, "DELETE FROM migrations")
    older = levels(keepsake("doctor", "--json").out)["database"]

    assert newer == {"database": "Install the newer version again, or restore the backup made before it."}
    assert older == "note"


def test_jobs_that_keep_failing_are_a_problem(keepsake: Terminal) -> None:
    keepsake("call", "retain", "--dialect", "hindsight", "--content", "Ada likes tea")
    damaged(keepsake.folder, "UPDATE jobs SET error = 'ValueError: Ada likes tea', attempt = 3")

    ran = keepsake("doctor")

    assert ran.code == 1
    assert "1 keep failing: enrich (ValueError)." in ran.out
    assert "Ada likes tea" not in ran.out


def enrolled(keepsake: Terminal, *words: str) -> None:
    assert keepsake("tool", "add", "--argv", "true", "--effect", "read", "--approval", "none", *words).code == 0


def test_programs_that_are_not_there_are_told_with_what_that_means(
    keepsake: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keepsake("status")
    monkeypatch.setattr("keepsake.services.sandbox.PATH", str(tmp_path))
    keepsake.set(PATH=tmp_path)
    plain = keepsake("doctor")
    enrolled(keepsake, "bare", "--no-sandbox")
    bare = problems(keepsake)
    enrolled(keepsake, "walled")

    needed = problems(keepsake)

    assert plain.code == 0
    assert "note  git: git is not installed" in plain.out and "no bank learns from a repository" in plain.out
    assert "note  sandbox: bwrap and prlimit are not there, so enrolled commands fail." in plain.out
    assert bare == {}
    assert list(needed) == ["sandbox"] and needed["sandbox"].startswith("Install bubblewrap and util-linux")
    keepsake.set(KEEPSAKE_WORKER="false")
    assert problems(keepsake) == {}


def test_a_sandbox_that_cannot_be_made_is_told_with_the_reason(
    keepsake: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    enrolled(keepsake, "walled")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        fake = Path(folder, "bwrap")
        fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
        for path in (fake, fake.parent):
            path.chmod(0o755)
        monkeypatch.setattr("keepsake.services.sandbox.PATH", f"{folder}:{sandbox.PATH}")

        ran = keepsake("doctor")

    assert ran.code == 1
    assert "makes no sandbox here (No permissions to create a new namespace), so enrolled commands fail." in ran.out
    assert "docs/guides/execution.md" in ran.out


def test_a_port_that_another_program_has_is_a_problem(keepsake: Terminal) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        keepsake.set(KEEPSAKE_PORT=other.getsockname()[1])

        assert list(problems(keepsake)) == ["port"]


def test_postgresql_wants_pgvector_and_a_user_who_is_no_superuser(keepsake: Terminal, postgres_server: str) -> None:
    def administered(database: str, *statements: str) -> None:
        async def done() -> None:
            connection = await asyncpg.connect(postgres_server.format(database))
            for statement in statements:
                await connection.execute(statement)
            await connection.close()

        asyncio.run(done())

    role = "CREATE ROLE doctor LOGIN PASSWORD 'secret'"
    administered(
        "postgres", role, "CREATE DATABASE doctor OWNER doctor", "GRANT keepsake_app, keepsake_claim TO doctor"
    )
    superuser = postgres_server.format("doctor")
    owner = superuser.replace("//postgres:@", "//doctor:secret@")

    before = problems(keepsake, "--database-url", owner)
    administered("doctor", "CREATE EXTENSION vector")
    after = problems(keepsake, "--database-url", owner)
    used = keepsake("key", "create", "--name", "laptop", "--database-url", owner, "--json").json
    inside = levels(keepsake("doctor", "--json", "--database-url", owner).out)

    assert before == {"pgvector": "Have an administrator run CREATE EXTENSION vector; in this database, once."}
    assert after == {}
    assert used["closed_door"] is True
    assert (inside["database"], inside["door"], inside["jobs"]) == ("ok", "ok", "ok")
    assert list(problems(keepsake, "--database-url", superuser)) == ["database role"]


def test_a_postgresql_that_does_not_answer_is_a_problem(keepsake: Terminal) -> None:
    assert list(problems(keepsake, "--database-url", "postgresql://u:hunter2@127.0.0.1:1/x")) == ["database"]
    assert "hunter2" not in keepsake("doctor", "--database-url", "postgresql://u:hunter2@127.0.0.1:1/x").out


def test_a_model_whose_files_are_wrong_is_told(
    keepsake: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "wordllama"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("keepsake.services.embed.models", {})

    assert problems(keepsake) == {"quick model": "Install Keepsake again with its dependencies."}


def test_endpoints_are_asked_where_they_are_configured(keepsake: Terminal) -> None:
    keepsake("call", "retain", "--dialect", "hindsight", "--content", "Ada likes tea")
    with serving() as models:
        keepsake.set(KEEPSAKE_EMBEDDING_BASE_URL=models.url, KEEPSAKE_EMBEDDING_MODEL="small")
        keepsake.set(KEEPSAKE_RERANK_BASE_URL=models.url)
        well = json.loads(keepsake("doctor", "--json").out)["findings"]
        models.will(Fails(401), Fails(401))

        assert list(problems(keepsake)) == ["embedding endpoint", "rerank endpoint"]

    told = {one["check"]: (one["level"], one["found"]) for one in well}
    assert told["embedding"] == ("ok", "small is coming in; memories that wait for it: 1")
    assert told["embedding endpoint"] == told["rerank endpoint"] == ("ok", f"{models.url} answers")


def test_status_tells_the_embedding_model_and_what_waits_for_it(keepsake: Terminal) -> None:
    keepsake("call", "retain", "--dialect", "hindsight", "--content", "Ada likes tea")

    now = keepsake("status", "--json").json["embedding"]

    assert now == {"model": "granite-30m-384", "is_new": True, "waiting": 1}
    assert "embedding: granite-30m-384 (coming in), 1 memory waits" in keepsake("status").out
