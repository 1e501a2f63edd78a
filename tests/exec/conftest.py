"""An application over either store, with nothing in the background."""

from tests.ops.conftest import app

__all__ = ["app"]
