"""Servers and workers killed at random while commands are asked for and run: nothing runs twice, nothing is lost."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from keepsake import context, dispatch, settings
from keepsake.core import clock
from keepsake.core.principal import local_owner
from tests.conftest import Database
from tests.exec.executing import ANY, Json, needs_sandbox

#: How many are killed on each store, and what each asks for.
KILLS = 500 if os.environ.get("KEEPSAKE_SOAK") else 10
EACH = 3
#: Two at a time contend for what there is to run.
AT_ONCE = 2


@dataclass
class Nursery:
    """Where servers and workers are born, and what they said before they died."""

    process: subprocess.Popen[str]
    database: Database
    folder: Path
    since: int
    born: int = 0
    alive: list[int] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def acknowledged(self) -> Path:
        return self.folder / "acknowledged"

    def bear(self, again: bool = True) -> None:
        """One more, which asks for something new and for some of what was asked before."""
        self.born += 1
        new = [f"{self.born}-{n}" for n in range(EACH)]
        told = {
            "folder": str(self.folder),
            "url": self.database.place if self.database.engine == "postgres" else "",
            "since": self.since,
            "acknowledged": str(self.acknowledged),
            "texts": [*self.asked[-1:], *new] if again else [],
        }
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()
        self.alive.append(int(self.process.stdout.readline()))
        self.asked += new if again else []

    def wait(self) -> None:
        """Until something more was acknowledged, more often than not, and a moment that nobody knows."""
        end, held = time.monotonic() + 10, len(self.noted())
        while random.random() < 0.98 and len(self.noted()) == held and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(random.uniform(0.0, 0.6))

    def noted(self) -> list[list[str]]:
        """What was acknowledged, each with its id."""
        told = self.acknowledged.read_text() if self.acknowledged.exists() else ""
        return [json.loads(line) for line in told.splitlines()]

    def kill(self, pid: int) -> None:
        """As a power cut would."""
        self.alive.remove(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def nursery(database: Database, folder: Path) -> Iterator[Nursery]:
    command = [sys.executable, "-m", "tests.stories.exec_worker"]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        made = Nursery(process, database, folder, clock.now())
        try:
            yield made
        finally:
            for pid in list(made.alive):
                made.kill(pid)
            process.kill()


async def enrol(database: Database, folder: Path, ran: Path) -> None:
    """A command that leaves its mark on the host each time it runs, and takes a moment."""
    script = f"echo $EXEC_INVOCATION >> {ran}; sleep 0.2; echo done"
    given = {"name": "mark", "argv": ["sh", "-c", script, "{text}"], "parameters": ANY, "concurrency": 64}
    free = {"effect": "read", "approval": "none", "sandbox": {"writable": [str(ran.parent)]}}
    async with context.open(opened(database, folder)) as app:
        await dispatch.call(app.ctx(local_owner(), "story"), "exec.enrol", {**given, **free})


def opened(database: Database, folder: Path) -> settings.Settings:
    url = database.place if database.engine == "postgres" else ""
    return settings.load({"KEEPSAKE_DATABASE_URL": url}, data_dir=folder, worker=False)


async def standing(made: Nursery) -> dict[str, Json]:
    """Every invocation as it stands, by its id."""
    async with context.open(opened(made.database, made.folder)) as app:
        rows = await app.store.read(1, lambda tx: tx.all("SELECT id, state, arguments FROM invocations"))
        assert (await dispatch.call(app.ctx(local_owner()), "audit.verify", {})).model_dump()["ok"]
    return {str(row["id"]): dict(row) for row in rows}


def settled(made: Nursery) -> dict[str, Json]:
    """How everything stands once one process was left alone with it."""
    made.bear(again=False)
    end = time.monotonic() + 120
    while True:
        found = asyncio.run(standing(made))
        if all(one["state"] not in ("queued", "running") for one in found.values()):
            return found
        assert time.monotonic() < end, Counter(one["state"] for one in found.values())
        time.sleep(0.5)


@needs_sandbox
def test_of_what_is_killed_at_random_nothing_runs_twice_and_nothing_is_lost(
    tmp_path: Path, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as outside, nursery(database, tmp_path) as made:
        Path(outside).chmod(0o777)
        ran = Path(outside, "ran")
        ran.touch()
        ran.chmod(0o666)
        asyncio.run(enrol(database, tmp_path, ran))
        for _ in range(AT_ONCE):
            made.bear()

        for _ in range(KILLS):
            made.wait()
            made.kill(random.choice(made.alive))
            made.bear()
        time.sleep(1.0)
        for pid in list(made.alive):
            made.kill(pid)
        found = settled(made)
        runs = Counter(ran.read_text().split())
        notes = made.noted()

    states = Counter(one["state"] for one in found.values())
    with capsys.disabled():
        print(f"\n{database.engine}: {KILLS} kills, {len(notes)} acknowledged, {dict(states)}")
    assert set(states) <= {"succeeded", "unknown", "expired"}
    assert states["succeeded"] > 0
    assert {id for _, id in notes} <= found.keys()
    assert len(dict(notes)) == len({id for _, id in notes})
    assert [id for id, count in runs.items() if count > 1] == []
    assert [id for id, one in found.items() if one["state"] == "succeeded" and runs[id] != 1] == []
    # What nobody lived to begin in time was not begun.
    assert [id for id, one in found.items() if one["state"] == "expired" and runs[id]] == []
    assert [id for id in runs if id not in found] == []
