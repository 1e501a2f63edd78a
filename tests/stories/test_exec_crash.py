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
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from keepsake import context, dispatch, settings
from keepsake.core import clock
from keepsake.core.principal import local_owner
from tests.conftest import Database
from tests.exec.executing import ANY, Json, needs_sandbox

#: How many are killed on each store: 1,000 in a soak, a tenth of them else.
KILLS = 500 if os.environ.get("KEEPSAKE_SOAK") else 50
#: Who is alive at any time: a server that also runs what it takes in, one that leaves that to others, and a worker.
ROLES = ("server", "front", "worker")
#: What a server takes in that was not asked for before.
EACH = 4


@dataclass
class Nursery:
    """Where servers and workers are born, and what they said before they died."""

    process: subprocess.Popen[str]
    database: Database
    folder: Path
    #: Where what runs leaves its mark, outside of every store.
    ran: Path
    since: int
    born: int = 0
    alive: dict[int, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    #: Who was dead before they were killed.
    fallen: list[int] = field(default_factory=list)

    @property
    def acknowledged(self) -> Path:
        return self.folder / "acknowledged"

    def bear(self, role: str) -> None:
        """One more; whoever takes requests gets new ones and one that was made before."""
        self.born += 1
        new = [f"{self.born}-{n}" for n in range(EACH)] if role != "worker" else []
        told = {
            "folder": str(self.folder),
            "url": self.database.place if self.database.engine == "postgres" else "",
            "since": self.since,
            "acknowledged": str(self.acknowledged),
            "texts": [*self.asked[-1:], *new] if new else [],
            "runs": role != "front",
        }
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()
        self.alive[int(self.process.stdout.readline())] = role
        self.asked += new

    def wait(self) -> None:
        """Until something more was taken in or began to run, more often than not, and a moment that nobody knows."""
        watched = random.choice((self.acknowledged, self.ran))
        end, held = time.monotonic() + 10, size(watched)
        while random.random() < 0.99 and size(watched) == held and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(random.uniform(0.0, 0.2))

    def noted(self) -> list[list[str]]:
        """What was acknowledged, each with its id."""
        told = self.acknowledged.read_text() if self.acknowledged.exists() else ""
        return [json.loads(line) for line in told.splitlines()]

    def kill(self, pid: int) -> str:
        """As a power cut would; tells who it was."""
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            self.fallen.append(pid)
        return self.alive.pop(pid)


def size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


@contextmanager
def nursery(database: Database, folder: Path, ran: Path) -> Iterator[Nursery]:
    command = [sys.executable, "-m", "tests.stories.exec_worker"]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        made = Nursery(process, database, folder, ran, clock.now())
        try:
            yield made
        finally:
            for pid in list(made.alive):
                made.kill(pid)
            process.kill()


async def enrol(made: Nursery) -> None:
    """A command that leaves its mark on the host each time it runs, and takes a moment."""
    script = f"echo $EXEC_INVOCATION >> {made.ran}; sleep 0.2; echo done"
    given = {"name": "mark", "argv": ["sh", "-c", script, "{text}"], "parameters": ANY, "concurrency": 64}
    free = {"effect": "read", "approval": "none", "sandbox": {"writable": [str(made.ran.parent)]}}
    async with context.open(opened(made)) as app:
        await dispatch.call(app.ctx(local_owner(), "story"), "exec.enrol", {**given, **free})


def opened(made: Nursery) -> settings.Settings:
    url = made.database.place if made.database.engine == "postgres" else ""
    return settings.load({"KEEPSAKE_DATABASE_URL": url}, data_dir=made.folder, worker=False)


async def settled(made: Nursery) -> dict[str, Json]:
    """How everything stands, by its id, once one process was left alone with it."""
    made.bear("worker")
    end = time.monotonic() + 120
    async with context.open(opened(made)) as app:
        while True:
            rows = await app.store.read(1, lambda tx: tx.all("SELECT id, state, arguments FROM invocations"))
            open_ones = Counter(row["state"] for row in rows if row["state"] in ("queued", "running"))
            if not open_ones:
                break
            assert time.monotonic() < end, open_ones
            await asyncio.sleep(0.2)
        assert (await dispatch.call(app.ctx(local_owner()), "audit.verify", {})).model_dump()["ok"]
    return {str(row["id"]): dict(row) for row in rows}


@needs_sandbox
def test_of_what_is_killed_at_random_nothing_runs_twice_and_nothing_is_lost(
    tmp_path: Path, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as outside:
        Path(outside).chmod(0o777)
        ran = Path(outside, "ran")
        ran.touch()
        ran.chmod(0o666)
        with nursery(database, tmp_path, ran) as made:
            asyncio.run(enrol(made))
            for role in ROLES:
                made.bear(role)

            for _ in range(KILLS):
                made.wait()
                made.bear(made.kill(random.choice(list(made.alive))))
                assert made.fallen == []
            for pid in list(made.alive):
                made.kill(pid)
            found = asyncio.run(settled(made))
            runs, notes = Counter(ran.read_text().split()), made.noted()

    states = Counter(one["state"] for one in found.values())
    with capsys.disabled():
        print(f"\n{database.engine}: {KILLS} kills, {len(notes)} acknowledged, {dict(states)}")
    assert set(states) <= {"succeeded", "unknown", "expired"}
    assert {id for _, id in notes} <= found.keys()
    assert len(dict(notes)) == len({id for _, id in notes})
    assert [id for id, count in runs.items() if count > 1] == []
    assert [id for id, one in found.items() if one["state"] == "succeeded" and runs[id] != 1] == []
    # What nobody lived to begin in time was not begun.
    assert [id for id, one in found.items() if one["state"] == "expired" and runs[id]] == []
    assert [id for id in runs if id not in found] == []
    # Some were killed while they ran something, and some lived to see the end of it.
    assert states["succeeded"] > 0 and states["unknown"] > 0
