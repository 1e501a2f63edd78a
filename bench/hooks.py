"""What a hook costs: a process of its own per event, and the server's HTTP hook."""

import asyncio
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

from bench.speed import cpu, server
from keepsake import context, settings
from keepsake.core import clock
from keepsake.hooks import clients
from keepsake.ops import jobs, observe
from keepsake.services import repository
from keepsake.store import events as inbox
from keepsake.store.events import Event

ROUNDS = 15
POSTS, WARM = 200, 20
#: Sessions in the past of the project.
SESSIONS = 200


def event(name: str, cwd: str, **more: object) -> bytes:
    """An event as Claude Code tells it."""
    common = {"session_id": "bench", "cwd": cwd, "permission_mode": "default", "hook_event_name": name}
    return json.dumps({**common, **more}).encode()


def events(cwd: str) -> dict[str, bytes]:
    """The events that a client waits for, of a usual size."""
    lines = "\n".join(f"    value_{n} = compute({n})" for n in range(60))
    edit = {"file_path": f"{cwd}/src/auth.py", "old_string": lines, "new_string": lines + "\n    return value_1"}
    return {
        "session start": event("SessionStart", cwd, source="startup"),
        "prompt": event("UserPromptSubmit", cwd, prompt="How does the session middleware check the token expiry?"),
        "tool": event("PostToolUse", cwd, tool_name="Edit", tool_input=edit, tool_response={"ok": lines}),
    }


def ran(command: list[str], told: bytes, environment: dict[str, str]) -> float:
    """Milliseconds of CPU of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=told, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1_000


async def filled(folder: str, cwd: str) -> None:
    """Give the project a past: sessions with decisions, edits and answers."""
    async with context.open(settings.load({}, data_dir=Path(folder))) as app:
        found = []
        for n in range(SESSIONS):
            asked = f"Change part {n} of the parser. We decided to use approach {n} for module {n}."
            edit = {"file_path": f"{cwd}/src/part{n}.py", "old_string": "a", "new_string": "b"}
            for told in (
                event("UserPromptSubmit", cwd, prompt=asked),
                event("PostToolUse", cwd, tool_name="Edit", tool_input=edit, tool_use_id=f"edit_{n}"),
                event("Stop", cwd, last_assistant_message=f"Part {n} is done.\n\nNext steps:\n- Test part {n}"),
            ):
                given = json.loads(told) | {"session_id": f"past_{n}"}
                found += clients.read("claude-code", "", given, clock.now())
        told_now = [Event(envelope, repository.project_of(cwd)) for envelope in found]
        await app.store.write(1, lambda tx: inbox.put(tx, 1, told_now, clock.now()))
        while job := await jobs.claim(app, ["observe"]):
            await observe.observe(app, job, _always)
            await jobs.finish(app, job)


async def _always() -> bool:
    return True


def measured() -> dict[str, float]:
    """Medians of the hook process for each event, beside an empty Python, and of the server for one POST."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "project" / ".git").mkdir(parents=True)
        environment = {**os.environ, "KEEPSAKE_DATA_DIR": folder, "KEEPSAKE_PORT": "0"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        keepsake = shutil.which("keepsake", path=str(Path(sys.executable).parent)) or "keepsake"
        asyncio.run(filled(folder, f"{folder}/project"))
        told = events(f"{folder}/project")
        hook = [keepsake, "hook", "event", "--client", "claude-code"]
        found = {
            name: statistics.median(ran(hook, one, environment) for _ in range(ROUNDS)) for name, one in told.items()
        }
        found["empty Python"] = statistics.median(
            ran([sys.executable, "-c", "pass"], b"", environment) for _ in range(5)
        )
        return found | {"HTTP": posted()}


def posted() -> float:
    """Milliseconds of CPU that a server takes for one event over HTTP."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "project" / ".git").mkdir(parents=True)
        with server(Path(folder)) as (url, pid), httpx.Client(base_url=url, timeout=30) as client:
            for n in range(WARM):
                client.post("/hooks/claude-code", content=_post(f"{folder}/project", n)).raise_for_status()
            before = cpu(pid)
            for n in range(POSTS):
                client.post("/hooks/claude-code", content=_post(f"{folder}/project", WARM + n)).raise_for_status()
            return (cpu(pid) - before) / POSTS * 1_000


def _post(cwd: str, n: int) -> bytes:
    given = {"file_path": f"{cwd}/src/auth.py", "old_string": "a", "new_string": "b"}
    return event("PostToolUse", cwd, tool_name="Edit", tool_input=given, tool_response="", tool_use_id=f"use_{n}")


if __name__ == "__main__":
    for name, figure in measured().items():
        print(f"{name:<20}{figure:8.1f} ms CPU")
