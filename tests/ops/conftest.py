"""The dialects over a real store, without a transport."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from keepsake import dispatch, settings, worker
from keepsake.context import App
from keepsake.core.principal import local_owner
from keepsake.store.store import Store
from keepsake.tools import catalog

Call = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def app(store: Store, tmp_path: Path) -> App:
    """An application over the store, with nothing in the background."""
    return App(settings.load({}, data_dir=tmp_path), store)


@pytest.fixture
def call(app: App) -> Call:
    """Call a tool of multi-bank hindsight as the local owner; gives its result as JSON."""
    door = dispatch.Door(catalog.DIALECTS["hindsight"])

    async def called(tool: str, /, **arguments: Any) -> dict[str, Any]:
        result = await dispatch.call_tool(app.ctx(local_owner()), door, tool, arguments)
        return result.model_dump(mode="json", exclude_none=True)

    return called


@pytest.fixture
def sharpened(app: App) -> Callable[[], Awaitable[None]]:
    """Let the background do all that waits."""

    async def done() -> None:
        while await worker.step(app):
            pass

    return done
