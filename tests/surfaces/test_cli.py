"""The command line: every command, its JSON, its exit codes, and one clear sentence when something is wrong."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.surfaces import serving as wire
from tests.surfaces.helpers import Terminal, damaged, keepsake, levels, serving, typed

__all__ = ["keepsake"]
SECRET = re.compile(r"ks_live_[0-9a-f]{64}")


# --- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        ("version", {"version", "python"}),
        ("status", {"version", "store", "banks", "memories", "jobs", "failing", "embedding", "keys"}),
        (
            "bank create work",
            {"name", "title", "mission", "disposition", "created_at", "repository", "uuid", "workspace"},
        ),
        ("bank list", {"banks"}),
        ("key list", {"keys"}),
        ("config list", {"settings"}),
        ("verify", {"ok", "chains", "entries", "broken", "compared"}),
        ("call --list", {"dialect", "tools"}),
        ("call list_banks --dialect hindsight", {"banks"}),
    ],
)
def test_a_command_with_json_prints_one_document(keepsake: Terminal, command: str, keys: set[str]) -> None:
    ran = keepsake(*command.split(), "--json")

    assert set(ran.json) == keys
    assert ran.err == ""


def test_a_key_is_shown_once_listed_without_its_secret_and_revoked(keepsake: Terminal) -> None:
    made = keepsake(
        "key", "create", "--name", "laptop", "--bank", "a", "--bank", "b", "--expires", "30d", "--json"
    ).json
    listed = keepsake("key", "list")
    revoked = keepsake("key", "revoke", "laptop", "--json").json

    assert SECRET.fullmatch(made["secret"])
    assert made["banks"] == ["a", "b"]
    assert listed.out.splitlines()[1].split()[:5] == ["laptop", f"{made['prefix']}…", "all", "a,", "b"]
    assert made["secret"] not in listed.out
    assert revoked["revoked_at"] is not None
    assert keepsake("key", "list").out == "There are no keys. `keepsake key create --name NAME` makes one.\n"
    assert "revoked" in keepsake("key", "list", "--revoked").out


def test_the_first_key_says_that_it_closes_the_door_and_the_last_that_it_opens_it(keepsake: Terminal) -> None:
    closes = "The first key closes the open door: requests without a key are refused from now on."
    opens = "on this machine, requests without a key are accepted again"

    assert closes in keepsake("key", "create", "--name", "first").out
    assert closes not in keepsake("key", "create", "--name", "second").out
    assert opens not in keepsake("key", "revoke", "--name", "first").out
    assert opens in keepsake("key", "revoke", "--name", "second").out


def test_a_tool_is_called_with_arguments_of_every_type(keepsake: Terminal) -> None:
    words = ("--content", "Ada likes tea", "--tags", "food", "--tags", '["a", "b"]', "--metadata", '{"page": 3}')
    stored = keepsake("call", "retain", "--dialect", "hindsight", *words, "--document-id=d1").json

    found = keepsake("call", "list_memories", "--dialect", "hindsight", "--limit", "5", "--offset=0").json["memories"]

    assert stored["bank_id"] == "default"
    assert [(one["text"], one["metadata"], one["document_id"]) for one in found] == [
        ("Ada likes tea", {"page": 3}, "d1")
    ]
    assert sorted(found[0]["tags"]) == ["a", "b", "food"]


def test_json_arguments_and_a_bank_are_taken(keepsake: Terminal) -> None:
    keepsake(
        "call", "retain", "--dialect", "hindsight", "--json-args", '{"content": "Bo likes rye"}', "--bank", "bread"
    )

    assert keepsake("call", "--bank", "bread", "list_memories", "--dialect", "hindsight").json["total"] == 1
    assert keepsake("call", "list_memories", "--dialect", "hindsight", "--json").json["total"] == 0


def test_status_counts_what_there_is(keepsake: Terminal) -> None:
    keepsake("call", "retain", "--dialect", "hindsight", "--content", "Ada likes tea")
    keepsake("key", "create", "--name", "laptop")

    status = keepsake("status", "--json").json

    assert status["banks"] == [{"name": "default", "memories": 1}]
    assert (status["memories"], status["keys"], status["jobs"]) == (1, 1, {"pending": 1})
    assert "default  1" in keepsake("status").out


def test_help_names_every_command_and_the_arguments_of_a_tool(keepsake: Terminal) -> None:
    commands = "serve stdio worker call status doctor verify version key bank config".split()

    assert [name for name in commands if f"\n  {name} " not in keepsake().out] == []
    assert "--json-args" in keepsake("call", "--help").out
    assert "--content" in keepsake("call", "retain", "--dialect", "hindsight", "--help").out
    assert keepsake("--version").out == "keepsake 0.1.0\n"


# --- settings --------------------------------------------------------------------------------------------------------


def test_config_tells_where_each_value_came_from(keepsake: Terminal) -> None:
    keepsake.set(HINDSIGHT_MCP_BANK_ID="notes", KEEPSAKE_RATE_LIMIT=90)

    listed = keepsake("config", "list", "--data-dir", "/tmp/elsewhere", "--json").json["settings"]

    told = {one["name"]: (one["value"], one["from"]) for one in listed}
    assert told["default_bank"] == ("notes", "HINDSIGHT_MCP_BANK_ID")
    assert told["rate_limit"] == (90, "KEEPSAKE_RATE_LIMIT")
    assert told["data_dir"] == ("/tmp/elsewhere", "flag")
    assert told["body_limit"] == (4_194_304, "default")


def test_config_hides_secrets(keepsake: Terminal) -> None:
    keepsake.set(
        HINDSIGHT_API_TENANT_API_KEY="hunter2",
        KEEPSAKE_API_KEY="hunter2",
        KEEPSAKE_DATABASE_URL="postgresql://ada:hunter2@db.example:5433/memories?password=hunter2",
    )

    plain, listed = keepsake("config", "list"), keepsake("config", "list", "--json")

    assert "hunter2" not in plain.out + listed.out
    assert "postgresql://db.example:5433/memories" in plain.out


# --- wrong usage and refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("bogus", "No such command 'bogus'"),
        ("key", "Missing command"),
        ("key create", "Missing option '--name'"),
        ("key create --name x --tier big", "'core', 'exec', 'intel' or 'all'"),
        ("key create --name x --scope nope", "is not a scope; the scopes are memory:read"),
        ("key create --name x --expires 2001-01-01", "must lie in the future"),
        ("key create --name x --expires soon", "must be ISO 8601"),
        ("key revoke", "Say which key"),
        ("bank create ../x", "must not contain"),
        ("status --bogus", "No such option"),
        ("serve --port 99999", "--port"),
        ("call", "keepsake call --list"),
        ("call bogus", "There is no tool 'bogus'"),
        ("call remember", "`content` is required"),
        ("call remember --bogus 1", "has no argument --bogus"),
        ("call remember --content", "--content needs a value"),
        ("call list_memories --dialect hindsight --limit many", "is not a whole number"),
        ("call list_memories --dialect hindsight --limit 1 --limit 2", "given twice"),
        ("call list_memories --dialect hindsight extra", "stands alone"),
        ("call remember --json-args [1]", "must be a JSON object"),
        ("call retain --dialect hindsight --metadata {", "is not JSON"),
        ("call retain --dialect bogus", "the dialects are: keepsake, hindsight"),
        ("call remember --bank ../x --content y", "must not contain"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_2(keepsake: Terminal, command: str, said: str) -> None:
    ran = keepsake(*command.split())

    assert ran.code == 2
    assert ran.out == ""
    assert said in ran.err
    assert ran.err.startswith("keepsake: ") and ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("key revoke ghost", "No active key is called 'ghost'"),
        ("call get_memory --dialect hindsight --memory_id 5", "No memory '5'"),
        ("call recall --dialect hindsight --query x --bank_id ghost", "No bank 'ghost'"),
        ("serve --host 0.0.0.0 --port 0", "Not starting on 0.0.0.0"),
        ("status --database-url postgresql://127.0.0.1:1/x", "PostgreSQL cannot be reached"),
        ("status --database-url nonsense", "PostgreSQL cannot be reached"),
        ("status --data-dir /proc/nowhere", "Cannot use /proc/nowhere/keepsake.db"),
    ],
)
def test_a_refusal_is_one_sentence_and_exit_1(keepsake: Terminal, command: str, said: str) -> None:
    ran = keepsake(*command.split())

    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert ran.err.startswith("keepsake: ") and ran.err.count("\n") == 1


def test_a_bad_setting_is_named(keepsake: Terminal) -> None:
    keepsake.set(KEEPSAKE_RATE_LIMIT="many")

    ran = keepsake("status")

    assert (ran.code, ran.err) == (
        1,
        "keepsake: KEEPSAKE_RATE_LIMIT: 'many' is not usable; it must be a whole number.\n",
    )


def test_a_fault_of_ours_is_one_sentence_and_the_trace_is_for_who_asks(tmp_path: Path) -> None:
    typed(tmp_path, "status")
    damaged(tmp_path, "DROP TABLE api_keys")

    plain = typed(tmp_path, "key", "list")
    told = typed(tmp_path, "key", "list", log_level="debug")

    assert (plain.code, plain.out) == (1, "")
    assert plain.err.count("\n") == 1 and "KEEPSAKE_LOG_LEVEL=debug" in plain.err
    assert told.code == 1 and "Traceback" in told.err and "no such table: api_keys" in told.err


def test_a_reader_that_leaves_early_causes_no_complaint(tmp_path: Path) -> None:
    command = f"{sys.executable} -m keepsake config list | head -1"

    ran = subprocess.run(
        ["sh", "-c", command], cwd=wire.ROOT, env=wire.environment(tmp_path), capture_output=True, text=True, check=True
    )

    assert ran.stdout.startswith("SETTING")
    assert ran.stderr == ""


# --- the audit log ---------------------------------------------------------------------------------------------------


def test_verify_names_the_first_entry_that_was_changed(keepsake: Terminal) -> None:
    keepsake("bank", "create", "work")
    for content in ("one", "two", "three"):
        keepsake("call", "retain", "--dialect", "hindsight", "--content", content, "--bank", "work")
    whole = keepsake("verify")
    damaged(keepsake.folder, "UPDATE audit SET principal = 'someone else' WHERE n = 3")

    broken, listed = keepsake("verify"), keepsake("verify", "--json")

    assert (whole.code, whole.out) == (0, "The audit log holds: 4 entries in 1 chain.\n")
    assert broken.code == listed.code == 1
    assert "bank work: entry 3 is the first that does not fit." in broken.out
    assert [(chain["bank"], chain["entry"]) for chain in json.loads(listed.out)["broken"]] == [("work", 3)]


# --- a server --------------------------------------------------------------------------------------------------------


def test_serve_tells_where_it_listens_and_how_to_connect_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        ended = server.ended(signal.SIGINT)

    assert f"Keepsake 0.1.0 listens on {server.url}\n" in server.welcome
    assert f"\n  claude mcp add --transport http keepsake {server.url}/keepsake/mcp\n" in server.welcome
    assert str(tmp_path / "keepsake.db") in server.welcome
    assert f"The console, for people: {server.url}/console\nIt opens without a password" in server.welcome
    assert "/console/join/" not in server.welcome
    assert server.welcome.endswith("Ctrl-C stops it.\n")
    assert ended == 130


def test_commands_through_a_server_do_the_same_as_on_the_store(keepsake: Terminal) -> None:
    with serving(keepsake.folder, "--json") as server:
        keepsake.set(KEEPSAKE_URL=server.url)
        stored = keepsake(
            "call", "retain", "--dialect", "hindsight", "--content", "Ada likes tea", "--bank", "work"
        ).json
        key = keepsake("key", "create", "--name", "laptop", "--scope", "memory:read", "--json").json
        refused = keepsake("status")
        keepsake.set(KEEPSAKE_API_KEY=key["secret"])
        there = [
            keepsake("status", "--json"),
            keepsake("call", "list_memories", "--dialect", "hindsight", "--bank", "work"),
        ]
        forbidden, unknown, wrong = keepsake("key", "list"), keepsake("call", "x"), keepsake("bank", "create", "..")
        healthy = keepsake("doctor", "--json")
        keepsake.patch.delenv("KEEPSAKE_URL")
        here = [
            keepsake("status", "--json"),
            keepsake("call", "list_memories", "--dialect", "hindsight", "--bank", "work"),
        ]
        port = levels(keepsake("doctor", "--json").out)["port"]
        ended = server.ended(signal.SIGTERM)

    assert json.loads(server.welcome)["url"] == server.url
    assert key["closed_door"] is True
    assert (refused.code, "A credential is needed" in refused.err) == (1, True)
    assert there[0].json == here[0].json | {"keys": None}
    assert there[1].json == here[1].json and stored["memory_id"] == here[1].json["memories"][0]["id"]
    assert (forbidden.code, "403" in forbidden.err, unknown.code, wrong.code) == (1, True, 2, 2)
    assert levels(healthy.out) == {"python": "ok", "server": "ok"}
    assert (port, ended) == ("ok", 0)


def test_a_server_that_is_not_there_is_told_plainly(keepsake: Terminal) -> None:
    keepsake.set(KEEPSAKE_URL="http://127.0.0.1:1")

    ran = keepsake("status")

    assert (ran.code, ran.out) == (1, "")
    assert "No Keepsake answers at http://127.0.0.1:1" in ran.err
    assert keepsake("doctor").code == 1
    keepsake.set(KEEPSAKE_URL="elsewhere")
    assert keepsake("status").code == 2


def test_a_worker_of_its_own_does_what_waits(keepsake: Terminal) -> None:
    keepsake("call", "retain", "--dialect", "hindsight", "--content", "Ada likes tea")

    with subprocess.Popen(
        [sys.executable, "-m", "keepsake", "worker"], cwd=wire.ROOT, env=wire.environment(keepsake.folder), text=True
    ) as worker:
        wire.until(lambda: set(keepsake("status", "--json").json["jobs"]) == {"completed"}, 60)
        worker.terminate()
        ended = worker.wait(20)

    assert ended == 0


# --- stdio -----------------------------------------------------------------------------------------------------------


def test_stdio_starts_without_the_libraries_of_the_other_commands(tmp_path: Path) -> None:
    script = (
        "import sys, atexit, mcp.server.lowlevel; before = set(sys.modules); sys.argv = ['keepsake', 'stdio'];"
        "from keepsake.surfaces.main import main;"
        "atexit.register(lambda: print(*sorted({'typer', 'rich', 'structlog', 'prometheus_client', 'uvicorn', 'numpy',"
        "'tokenizers', 'httpx', 'asyncpg'} & (sys.modules.keys() - before)), file=sys.stderr)); main()"
    )

    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=wire.ROOT,
        env=wire.environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )

    assert (ran.stdout, ran.stderr.strip()) == ("", "")


@pytest.mark.parametrize("words", [("--bogus", "1"), ("--dialect", "bogus"), ("--bank", "../x"), ("--data-dir",)])
def test_stdio_refuses_wrong_usage(tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = typed(tmp_path, "stdio", *words)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("keepsake: ") and ran.err.count("\n") == 1
