"""Logs on stderr, as JSON or for people to read; never content, keys or tokens."""

import logging
import sys
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from keepsake.core import log, secrets
from keepsake.core.lazy import lazy
from keepsake.settings import Settings

if TYPE_CHECKING:
    import structlog
else:
    structlog = lazy("structlog")

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def send(settings: Settings) -> None:
    """Send our lines, and the warnings of libraries, to stderr."""
    least, is_json = LEVELS[settings.log_level], _is_json(settings)
    writers: list[Callable[[str, str, dict[str, object]], None]] = []

    def sink(level: str, event: str, fields: dict[str, object]) -> None:
        if LEVELS[level] < least:
            return
        if not writers:
            writers.append(_writer(is_json))
        # A reader of the log that has gone away must not fail a request.
        with suppress(OSError, ValueError):
            writers[0](level, event, fields)

    log.to(sink)
    logging.basicConfig(handlers=[Libraries(sink)], level=logging.WARNING, force=True)


def _is_json(settings: Settings) -> bool:
    return settings.log_format == "json" or (settings.log_format == "auto" and not sys.stderr.isatty())


def _writer(is_json: bool) -> log.Sink:
    """Only the first line that is really written pays for the library."""
    pretty = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    renderer = structlog.processors.JSONRenderer() if is_json else pretty
    logger = structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            without_keys,
            renderer,
        ],
    )

    def write(level: str, event: str, fields: dict[str, object]) -> None:
        getattr(logger, level)(event, **fields)

    return write


def without_keys(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The last net: a secret that got into a field does not get into the log."""
    return {name: secrets.redacted_json(value).value for name, value in line.items()}


class Libraries(logging.Handler):
    """Passes on that a library complained, and where; what it says may quote a request."""

    def __init__(self, sink: log.Sink) -> None:
        super().__init__(logging.WARNING)
        self._sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, object] = {"logger": record.name, "where": f"{record.filename}:{record.lineno}"}
        if record.name.startswith("uvicorn") and isinstance(record.msg, str):
            fields["message"] = record.msg.strip()
        if record.exc_info and record.exc_info[1] is not None:
            fields |= {"error": type(record.exc_info[1]).__name__, "trace": log.trace(record.exc_info[1])}
        self._sink("error" if record.levelno >= logging.ERROR else "warning", "library", fields)
