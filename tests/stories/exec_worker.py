"""Servers and workers that are born quickly, to be killed: `python -m tests.stories.exec_worker` forks one per line.

A line is a JSON object: where the store is, what to ask for, where to write down what was acknowledged, and whether to
run what waits. Time passes faster here than outside, so that the lease of whoever was killed is soon over.
"""

import asyncio
import json
import os
import secrets
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from keepsake import context, dispatch, settings
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.principal import Principal, local_owner
from keepsake.ops import everything, running
from keepsake.ops import exec as execution
from keepsake.services import sandbox
from keepsake.store import postgres, sqlite, store

HASTE = 10
#: Seconds between two requests of one server, so that it is as likely killed between them as after the last.
APART_S = 0.05
# More are born here in ten minutes than there are slots for making ids; whoever is killed gives none back.
store.LEASE_S, store.RENEW_S = 30, 15
# Whoever only runs must not come too late for everything.
running.POLL_S = running.IDLE_S = 0.1
# And what the dead asked for is still open when others ask.
execution.MOST = 10_000
# Loaded before anyone is born.
LOADED = (everything.REGISTRY, sandbox, postgres, sqlite)


def agent() -> Principal:
    return Principal(1, "key:agent", local_owner().scopes, key=7)


async def main(given: dict[str, Any]) -> None:
    """Ask for what is to be asked for, and run whatever waits if told so, until killed."""
    since = int(given["since"])
    async with context.open(loaded(Path(given["folder"]), given["url"])) as opened:
        app = App(opened.settings, opened.store, now=lambda: since + (clock.now() - since) * HASTE)
        async with asyncio.TaskGroup() as tasks:
            if given["runs"]:
                tasks.create_task(running.run(app))
            for text in given["texts"]:
                note(Path(given["acknowledged"]), json.dumps([text, await asked(app, text)]))
                await asyncio.sleep(APART_S)
            await orphaned()
            os._exit(0)


async def orphaned() -> None:
    """Return once nobody is left who would kill us."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(1)


def loaded(folder: Path, url: str = "") -> settings.Settings:
    return settings.load({"KEEPSAKE_DATABASE_URL": url}, data_dir=folder, worker=False)


async def asked(app: App, text: str) -> str:
    """The id of what was asked for."""
    wanted = {"tool": "mark", "arguments": {"text": text}}
    return str((await dispatch.call(app.ctx(agent(), "story"), "exec.invoke", wanted)).model_dump()["id"])


def note(file: Path, line: str) -> None:
    """Write down what was acknowledged; what another process kills, the system still has."""
    with file.open("a") as notes:
        notes.write(f"{line}\n")


async def warm() -> None:
    """Load and compile whatever a life needs, by living one."""
    parameters = {"properties": {"text": {"type": "string"}}, "required": ["text"]}
    given = {"name": "mark", "argv": ["true", "{text}"], "parameters": parameters, "sandbox": {"kind": "none"}}
    with tempfile.TemporaryDirectory() as folder:
        async with context.open(loaded(Path(folder))) as app:
            free = {"effect": "read", "approval": "none"}
            await dispatch.call(app.ctx(local_owner(), "story"), "exec.enrol", {**given, **free})
            await asked(app, "warm")
            assert await running.step(app) == 1


def born(line: str) -> int:
    """A process of its own for one line."""
    if pid := os.fork():
        return pid
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    store.HOLDER = secrets.token_hex(8)
    asyncio.run(main(json.loads(line)))
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(warm())
    # Whoever is killed need not be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        print(born(line), flush=True)
