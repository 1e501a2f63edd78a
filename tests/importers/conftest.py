"""Other tools' files, and a store to take them over into."""

from pathlib import Path

import pytest

from keepsake import settings
from keepsake.context import App
from keepsake.store.store import Store
from tests.importers.taking import Taking


@pytest.fixture
def app(store: Store, tmp_path: Path) -> App:
    """An application over the store, with nothing in the background."""
    return App(settings.load({}, data_dir=tmp_path), store)


@pytest.fixture
def taking(app: App) -> Taking:
    """Imports into the store, and looks at what is there."""
    return Taking(app)
