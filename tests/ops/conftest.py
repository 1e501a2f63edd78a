"""The dialects over a real store, without a transport."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keepsake import dispatch, settings, worker
from keepsake.context import App
from keepsake.core.principal import local_owner
from keepsake.services import llm
from keepsake.store.store import Store
from keepsake.tools import catalog
from tests.llm_server import MODEL, Script, serving

Call = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def app(store: Store, tmp_path: Path) -> App:
    """An application over the store, with nothing in the background."""
    return App(settings.load({}, data_dir=tmp_path), store)


@pytest.fixture
def call(app: App) -> Call:
    """Call a tool of multi-bank hindsight as the local owner; gives its result as JSON."""
    return calling(app)


def calling(app: App) -> Call:
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


@pytest.fixture
def script() -> Iterator[Script]:
    """What the language model will say."""
    with serving() as script:
        yield script


@pytest.fixture
def thinking(app: App, script: Script) -> App:
    """The same application with a language model."""
    environment = {"KEEPSAKE_LLM_BASE_URL": script.url, "KEEPSAKE_LLM_MODEL": MODEL, "KEEPSAKE_LLM_TIMEOUT": "10"}
    made = replace(app, settings=settings.load(environment, data_dir=app.settings.data_dir))
    asked = llm.configured(made.settings)
    assert asked is not None
    asked.pause_s = 0.01
    return made


@pytest.fixture
def think(thinking: App) -> Call:
    """Call a tool where there is a language model."""
    return calling(thinking)


@pytest.fixture
def thought(thinking: App) -> Callable[[], Awaitable[None]]:
    """Let a background with a language model do all that waits."""

    async def done() -> None:
        while await worker.step(thinking):
            pass

    return done
