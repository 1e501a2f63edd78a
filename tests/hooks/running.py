"""The hook as a process, and what it leaves behind."""

import json
import subprocess
import sys
from pathlib import Path

import apsw

from tests.surfaces.serving import environment

Json = dict[str, object]


def ran(folder: Path, client: str, told: object, event: str = "x", **more: str) -> subprocess.CompletedProcess[bytes]:
    """The hook's whole life."""
    given = told if isinstance(told, bytes) else json.dumps(told).encode()
    command = [sys.executable, "-m", "keepsake", "hook", event, "--client", client]
    return subprocess.run(
        command, input=given, env=environment(folder) | more, capture_output=True, timeout=20, check=False
    )


def made(folder: Path) -> Path:
    """A data folder with a database."""
    command = [sys.executable, "-m", "keepsake", "bank", "list"]
    subprocess.run(command, env=environment(folder), check=True, capture_output=True)
    return folder


def inbox(folder: Path) -> list[tuple[str, str]]:
    """The events that wait, and who told them."""
    connection = apsw.Connection(str(folder / "keepsake.db"))
    return list(connection.execute("SELECT event, client FROM events ORDER BY at, told_at"))


def start(root: Path) -> Json:
    return {"session_id": "s", "cwd": str(root), "permission_mode": "default", "hook_event_name": "SessionStart"}
