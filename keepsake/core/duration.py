"""Stretches of time as people write them: 90m, 12h, 7d, 2w."""

import re

from keepsake.core.clock import DAY, HOUR, MINUTE

_UNITS = {"m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_WRITTEN = re.compile(r"(\d{1,6})([mhdw])")


def parsed(told: str) -> int | None:
    """A stretch of time in microseconds; None for what is none."""
    found = _WRITTEN.fullmatch(told.strip().lower())
    return int(found[1]) * _UNITS[found[2]] if found else None
