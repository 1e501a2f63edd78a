"""Servers and workers that are born quickly, to be killed: `python -m tests.stories.exec_worker` forks one per line.

A line is a JSON object: where the store is, what to ask for, and where to write down what was acknowledged. Time passes
faster here than outside, so that the lease of whoever was killed is soon over.
"""

import asyncio
import json
import os
import signal
import sys
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
# More are born here in ten minutes than there are slots for making ids; whoever is killed gives none back.
store.LEASE_S, store.RENEW_S = 60, 30
# And what the dead asked for is still open when others ask.
execution.MOST = 10_000
# Loaded before anyone is born.
LOADED = (everything.REGISTRY, sandbox, postgres, sqlite)


def agent() -> Principal:
    return Principal(1, "key:agent", local_owner().scopes, key=7)


async def main(given: dict[str, Any]) -> None:
    """Ask for what is to be asked for, then run whatever waits until killed."""
    since = int(given["since"])
    loaded = settings.load({"KEEPSAKE_DATABASE_URL": given["url"]}, data_dir=Path(given["folder"]), worker=False)
    async with context.open(loaded) as opened:
        app = App(opened.settings, opened.store, now=lambda: since + (clock.now() - since) * HASTE)
        work = asyncio.create_task(running.run(app))
        for text in given["texts"]:
            wanted = {"tool": "mark", "arguments": {"text": text}}
            told = (await dispatch.call(app.ctx(agent(), "story"), "exec.invoke", wanted)).model_dump()
            note(Path(given["acknowledged"]), json.dumps([text, told["id"]]))
        await work


def note(file: Path, line: str) -> None:
    """Write down what was acknowledged; what another process kills, the system still has."""
    with file.open("a") as notes:
        notes.write(f"{line}\n")


def born(line: str) -> int:
    """A process of its own for one line."""
    if pid := os.fork():
        return pid
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    asyncio.run(main(json.loads(line)))
    os._exit(0)


if __name__ == "__main__":
    # Whoever is killed need not be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        print(born(line), flush=True)
