"""Jobs of a kind that only tests know, on a clock that stands still."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from keepsake import worker
from keepsake.context import App
from keepsake.core import clock
from keepsake.ops.embedding import Alive
from keepsake.store import banks, jobs
from keepsake.store.engine import Tx

ORG = 1
Handler = Callable[[App, jobs.Job, Alive], Awaitable[None]]


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.at = clock.now()

    def __call__(self) -> int:
        return self.at


@pytest.fixture
def time() -> Clock:
    """The clock of the application."""
    return Clock()


@pytest.fixture
def app(app: App, time: Clock, monkeypatch: pytest.MonkeyPatch) -> App:
    """The application on that clock."""
    # Whether a job is still ours is asked so often that no test waits for it.
    monkeypatch.setattr(worker, "WATCH_S", 0.01)
    return replace(app, now=time)


@pytest.fixture
def does(monkeypatch: pytest.MonkeyPatch) -> Callable[[Handler], None]:
    """Say what a job of kind `work` does."""
    return lambda handler: monkeypatch.setitem(worker.HANDLERS, "work", handler)


async def nothing(app: App, job: jobs.Job, alive: Alive) -> None:
    """A job that is done at once."""


async def add(app: App, name: str = "default") -> str:
    """Leave a job in a bank and tell its id."""

    async def body(tx: Tx) -> int:
        bank = await banks.named(tx, ORG, name) or await banks.create(tx, app.store, ORG, name)
        assert bank is not None
        return await jobs.add(tx, app.store, ORG, bank.id, "work", app.now(), {"memory": 1})

    return str(await app.store.write(ORG, body))
