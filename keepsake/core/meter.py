"""Measurements of calls; whoever serves metrics takes them from here."""

from collections.abc import Callable

Listener = Callable[[str, str, float], None]


def _ignored(operation: str, outcome: str, seconds: float) -> None:
    """Nobody measures."""


_listener: Listener = _ignored


def to(listener: Listener) -> None:
    """Hand every measurement to a listener."""
    global _listener
    _listener = listener


def observed(operation: str, outcome: str, seconds: float) -> None:
    """An operation ended, this way, after this long."""
    _listener(operation, outcome, seconds)
