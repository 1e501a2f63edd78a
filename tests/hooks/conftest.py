"""An application over a real store, and a project to work in."""

from pathlib import Path

import pytest

from keepsake import settings
from keepsake.context import App
from keepsake.store.store import Store
from tests.hooks.replaying import repository_at


@pytest.fixture
def app(store: Store, tmp_path: Path) -> App:
    """An application over the store, with nothing in the background."""
    return App(settings.load({}, data_dir=tmp_path), store)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A git repository."""
    return repository_at(tmp_path / "work" / "my-api")
