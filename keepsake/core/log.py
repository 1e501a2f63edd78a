"""Logging with fields; where the lines go is decided by the surface that starts the process.

Never content, tokens or keys. A stdio server starts without a logging library, so the sink is handed in.
"""

import traceback
from collections.abc import Callable

Sink = Callable[[str, str, dict[str, object]], None]


def _silent(level: str, event: str, fields: dict[str, object]) -> None:
    """Nobody asked for logs yet."""


_sink: Sink = _silent


def to(sink: Sink) -> None:
    """Send every line to a sink."""
    global _sink
    _sink = sink


def debug(event: str, **fields: object) -> None:
    """Something only a developer asks for."""
    _sink("debug", event, fields)


def info(event: str, **fields: object) -> None:
    """Something happened."""
    _sink("info", event, fields)


def warning(event: str, **fields: object) -> None:
    """Something an operator should look at."""
    _sink("warning", event, fields)


def error(event: str, **fields: object) -> None:
    """Something went wrong."""
    _sink("error", event, fields)


def trace(error: BaseException) -> str:
    """Where an error came from: files and lines, never values."""
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in reversed(frames))
