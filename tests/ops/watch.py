"""A bank with checks, on a clock that stands still, run step by step."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.clock import SECOND
from keepsake.core.principal import Principal, local_owner
from keepsake.ops import watching
from keepsake.store import checks
from tests.ops.working import Clock, time

__all__ = ["app", "run", "time"]
ORG = 1
Run = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def app(app: App, time: Clock, monkeypatch: pytest.MonkeyPatch) -> App:
    """The application on that clock, where a second try comes at once."""
    monkeypatch.setattr(checks, "PAUSE", 0)
    return replace(app, now=time)


@pytest.fixture
def run(app: App) -> Run:
    """Run an operation in the bank `shop`; as the local owner unless told otherwise."""
    return running(app)


def running(app: App, who: Principal | None = None, bank: str = "shop") -> Run:
    async def ran(operation: str, /, **arguments: Any) -> dict[str, Any]:
        result = await dispatch.call(app.ctx(who or local_owner(), bank), operation, arguments)
        return result.model_dump(mode="json", exclude_none=True)

    return ran


async def after(app: App, seconds: float) -> int:
    """Let time pass, then run what is due; tells how many runs that were."""
    assert isinstance(app.now, Clock)
    app.now.at += int(seconds * SECOND)
    return await watching.step(app)


async def rounds(app: App, count: int, seconds: float = 70) -> None:
    """So many runs of a check that is due every minute."""
    for _ in range(count):
        assert await after(app, seconds)
