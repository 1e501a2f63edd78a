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


Counter = Callable[[str, str, int], None]


def _uncounted(what: str, outcome: str, amount: int) -> None:
    """Nobody counts."""


_counter: Counter = _uncounted


def count_to(counter: Counter) -> None:
    """Hand every count to a counter."""
    global _counter
    _counter = counter


def counted(what: str, outcome: str, amount: int = 1) -> None:
    """So many of something came to this."""
    _counter(what, outcome, amount)
