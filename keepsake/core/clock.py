"""Times as integer microseconds UTC, and their ISO 8601 text."""

import time
from datetime import UTC, datetime, timedelta

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Microseconds beyond every date.
_EVER = 1 << 62


def now() -> int:
    """The present moment."""
    return time.time_ns() // 1000


def parse(text: str) -> int:
    """Read ISO 8601; a time without a zone is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except OverflowError as error:
        raise ValueError(f"{text} is out of range") from error


def iso(moment: int) -> str:
    """Write a time as ISO 8601 in UTC."""
    return (_EPOCH + timedelta(microseconds=moment)).isoformat().replace("+00:00", "Z")


def iso_ms(moment: int) -> str:
    """Write a time as ISO 8601 in UTC, to the millisecond, as JavaScript does."""
    told = iso(moment // 1000 * 1000).removesuffix("Z")
    return f"{told}.000Z" if "." not in told else f"{told[:-3]}Z"


def stretch(since: str | None, until: str | None) -> tuple[int, int] | None:
    """From one moment on and before another, either of them left open; nothing where both are."""
    if since is None and until is None:
        return None
    return parse(since) if since else -_EVER, parse(until) if until else _EVER
