"""`keepsake hook` as clients run it: a process of its own that never fails, never lingers and never tells a secret."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from keepsake.hooks import clients, spool
from tests.hooks.replaying import client_of, folders, recorded, repository_at
from tests.hooks.running import inbox, made, ran, start
from tests.surfaces.serving import environment

HEAVY = ("pydantic", "mcp", "mcp_types", "typer", "rich", "numpy", "asyncio", "asyncpg", "structlog", "openai", "httpx")


def test_nothing_heavy_is_loaded_on_the_way(tmp_path: Path) -> None:
    made(tmp_path)
    root = repository_at(tmp_path / "my-api")
    prompt = start(root) | {"hook_event_name": "UserPromptSubmit", "prompt": "How do we check the tokens of the API?"}
    script = (
        "import sys; from keepsake.surfaces import main\n"
        "main.command.run(['x', '--client', 'claude-code'])\n"
        f"print(*sorted(set({HEAVY!r}) & sys.modules.keys()), file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(prompt).encode(),
        env=environment(tmp_path),
        capture_output=True,
        check=True,
    )

    assert done.stderr.split() == []
    assert inbox(tmp_path) == [("prompt", "claude-code")]


@pytest.mark.parametrize("folder", folders())
def test_every_client_gets_an_answer_that_it_can_read(tmp_path: Path, folder: str) -> None:
    made(tmp_path)
    root = repository_at(tmp_path / "my-api")
    client = client_of(folder)

    for name, given in recorded(folder, root):
        done = ran(tmp_path, client, given, DEVIN_PROJECT_DIR=str(root))

        assert (done.returncode, done.stderr) == (0, b""), name
        said = done.stdout.decode()
        if client in ("gemini", "cursor", "cline", "opencode"):
            assert isinstance(json.loads(said), dict), name
        else:
            assert said == "", name
    assert len(inbox(tmp_path)) >= 3


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"garbage",
        b'{"session_id": "s", "hook_ev',
        b"[1, 2]",
        b"\xff\xfe\x00",
        b"null",
        b"[" * 100_000,
        b"{" * 9_000_000,
    ],
    ids=["nothing", "garbage", "truncated", "list", "bytes", "null", "deep", "huge"],
)
@pytest.mark.parametrize("client", ["claude-code", "gemini", "cline", "kiro"])
def test_whatever_comes_in_nothing_fails(tmp_path: Path, client: str, told: bytes) -> None:
    done = ran(tmp_path, client, told)

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == clients.empty(client, "x")


def test_why_nothing_was_kept_stands_in_the_log_without_what_was_said(tmp_path: Path) -> None:
    ran(tmp_path, "claude-code", b'{"prompt": "the secret plan')

    log = (tmp_path / "hook.log").read_text()
    assert "claude-code" in log and "JSONDecodeError" in log and "plan" not in log


def test_unknown_events_and_clients_are_no_reason_to_fail(tmp_path: Path) -> None:
    made(tmp_path)
    root = repository_at(tmp_path / "my-api")

    unknown = ran(tmp_path, "claude-code", start(root) | {"hook_event_name": "TeammateIdle"})
    stranger = ran(tmp_path, "emacs", start(root))

    assert [(done.returncode, done.stdout) for done in (unknown, stranger)] == [(0, b""), (0, b"")]
    assert inbox(tmp_path) == []


def test_a_hook_inside_a_hook_does_nothing(tmp_path: Path) -> None:
    made(tmp_path)

    done = ran(tmp_path, "claude-code", start(repository_at(tmp_path / "my-api")), KEEPSAKE_IN_HOOK="1")

    assert done.returncode == 0 and inbox(tmp_path) == []


def test_an_event_is_spooled_without_secrets_when_there_is_no_database(tmp_path: Path) -> None:
    folder, root = tmp_path / "data", repository_at(tmp_path / "my-api")
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    prompt = f"Call it with {key}. <private>not this</private>"

    done = ran(folder, "claude-code", start(root) | {"hook_event_name": "UserPromptSubmit", "prompt": prompt})

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    spooled = (folder / spool.NAME).read_text()
    assert spooled.count("\n") == 1 and "Call it with" in spooled
    assert key not in spooled and "not this" not in spooled
    assert (folder / spool.NAME).stat().st_mode & 0o077 == 0


def test_an_event_is_spooled_while_another_process_holds_the_database(tmp_path: Path) -> None:
    made(tmp_path)
    root = repository_at(tmp_path / "my-api")
    connection = apsw.Connection(str(tmp_path / "keepsake.db"))
    connection.execute("BEGIN IMMEDIATE")

    began = time.monotonic()
    done = ran(tmp_path, "claude-code", start(root))

    assert done.returncode == 0 and time.monotonic() - began < 10
    assert (tmp_path / spool.NAME).exists()
    connection.execute("ROLLBACK")


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = ran(tmp_path / "file" / "data", "claude-code", start(repository_at(tmp_path / "my-api")))

    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.startswith(b"keepsake: ") and b"Traceback" not in done.stderr


def test_a_full_disk_is_no_reason_to_fail(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / spool.NAME).symlink_to("/dev/full")

    done = ran(folder, "claude-code", start(repository_at(tmp_path / "my-api")))

    assert (done.returncode, done.stdout) == (0, b"")


def test_a_dead_server_costs_no_event(tmp_path: Path) -> None:
    done = ran(tmp_path, "gemini", start(repository_at(tmp_path / "my-api")), KEEPSAKE_URL="http://127.0.0.1:9")

    assert (done.returncode, done.stdout) == (0, b"{}")
    assert (tmp_path / spool.NAME).read_text().count("\n") == 1


def test_a_stdin_that_stays_open_does_not_hold_the_editor(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "keepsake", "hook", "tool", "--client", "cline"]
    with subprocess.Popen(command, env=environment(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as hook:
        assert hook.stdout is not None
        said = hook.stdout.read()

        assert hook.wait(10) == 0

    assert json.loads(said) == {"cancel": False, "contextModification": "", "errorMessage": ""}


def test_a_wrong_setting_is_no_reason_to_fail(tmp_path: Path) -> None:
    done = ran(tmp_path, "claude-code", start(repository_at(tmp_path / "my-api")), KEEPSAKE_PORT="many")

    assert (done.returncode, done.stdout) == (0, b"")


def test_a_clock_of_long_ago_is_not_believed(tmp_path: Path) -> None:
    made(tmp_path)
    root = repository_at(tmp_path / "my-api")

    for stamp in ("1999-01-01T00:00:00Z", -5, "nonsense", 1e300, {"a": 1}):
        assert ran(tmp_path, "gemini", start(root) | {"timestamp": stamp, "source": str(stamp)}).returncode == 0

    rows = list(apsw.Connection(str(tmp_path / "keepsake.db")).execute("SELECT at FROM events"))
    assert len(rows) == 5 and all(abs(at / 1e6 - time.time()) < 600 for (at,) in rows)


def test_help_tells_the_clients(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "keepsake", "hook", "--help"]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=True)

    assert "claude-code" in done.stdout and "opencode" in done.stdout


def test_what_a_tool_was_given_is_kept_small(tmp_path: Path) -> None:
    made(tmp_path)
    root = repository_at(tmp_path / "my-api")
    edits = [{"old_string": "a\n" * 5_000, "new_string": "b\n" * 5_000} for _ in range(100)]
    used = {"tool_name": "MultiEdit", "tool_input": {"file_path": str(root / "src" / "auth.ts"), "edits": edits}}

    ran(tmp_path, "claude-code", start(root) | used | {"hook_event_name": "PostToolUse", "tool_response": "x" * 10**6})

    ((told,),) = apsw.Connection(str(tmp_path / "keepsake.db")).execute("SELECT envelope FROM events")
    assert len(told) < 60_000
    assert json.loads(told)["tool"]["input"]["new_lines"] == 500_000


def test_a_pipe_in_the_place_of_a_file_is_not_read(tmp_path: Path) -> None:
    made(tmp_path)
    root = repository_at(tmp_path / "my-api")
    os.mkfifo(root / "pipe")
    used = {"tool_name": "Write", "tool_input": {"file_path": str(root / "pipe"), "content": "x"}}

    ran(tmp_path, "claude-code", start(root) | used | {"hook_event_name": "PostToolUse", "tool_response": ""})

    assert inbox(tmp_path) == [("tool", "claude-code")]


def test_many_hooks_at_once_lose_nothing(tmp_path: Path) -> None:
    made(tmp_path)
    root = repository_at(tmp_path / "my-api")
    command = [sys.executable, "-m", "keepsake", "hook", "tool", "--client", "claude-code"]
    used = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "make"}}
    started = [subprocess.Popen(command, env=environment(tmp_path), stdin=subprocess.PIPE) for _ in range(12)]
    for n, process in enumerate(started):
        process.communicate(json.dumps(start(root) | used | {"tool_use_id": str(n)}).encode(), 30)

    spooled = tmp_path / spool.NAME
    lines = spooled.read_text().count("\n") if spooled.exists() else 0
    assert len(inbox(tmp_path)) + lines == 12
