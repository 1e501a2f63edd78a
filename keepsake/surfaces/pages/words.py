"""How pages say times, numbers and sizes; the script tells times again in the reader's own zone."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from markupsafe import Markup, escape

from keepsake.core import clock
from keepsake.core.clock import DAY, HOUR, MINUTE, SECOND

_WEEK = 7 * DAY


def moment(given: int | str) -> int:
    """A time in microseconds, however it was given."""
    return given if isinstance(given, int) else clock.parse(given)


def when(given: int | str | None, nothing: str = "never") -> Markup:
    """A time as people say it, with the full moment in its title."""
    if given is None:
        return escape(nothing)
    at, now = moment(given), clock.now()
    told = datetime.fromtimestamp(at / SECOND, UTC)
    form, text = _said(at - now, told)
    full = f"{told.day} {told:%b %Y, %H:%M} UTC"
    return Markup(f'<time datetime="{clock.iso(at // SECOND * SECOND)}" title="{full}" data-as="{form}">{text}</time>')


def hour(given: int | str) -> Markup:
    """The hour of a time whose day stands beside it."""
    at = moment(given)
    told = datetime.fromtimestamp(at / SECOND, UTC)
    full = f"{told.day} {told:%b %Y, %H:%M} UTC"
    stamp = clock.iso(at // SECOND * SECOND)
    return Markup(f'<time datetime="{stamp}" title="{full}" data-as="clock">{told:%H:%M}</time>')


def _said(ahead: int, told: datetime) -> tuple[str, str]:
    """How the script is to say it again, and how it is said in UTC."""
    distance = abs(ahead)
    if distance < DAY:
        # What is to come is rounded, so that a day from now is not 23 hours.
        return "ago", f"in {span(distance + MINUTE)}" if ahead > 0 else _ago(distance)
    if distance < _WEEK:
        return "day", f"{told:%a %H:%M}"
    return "date", f"{told.day} {told:%b %Y}"


def _ago(distance: int) -> str:
    return "just now" if distance < MINUTE else f"{span(distance)} ago"


def span(distance: int) -> str:
    """A length of time in its largest unit."""
    for size, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        if distance >= size:
            return count(distance // size, name)
    return "a moment"


def number(value: float) -> str:
    """18,204; 1.94 million."""
    if abs(value) >= 1_000_000:
        return f"{value / 1_000_000:,.2f} million"
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 100 else f"{value:,.2f}"


def count(value: int, noun: str, many: str = "") -> str:
    """1 memory, 14 memories."""
    return f"{number(value)} {noun if value == 1 else many or f'{noun}s'}"


def size(value: int) -> str:
    """412 bytes; 4.1 kB; 3.2 MB."""
    for step, unit in ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")):
        if value >= step:
            return f"{value / step:.1f} {unit}"
    return count(value, "byte")


def spent(milliseconds: float) -> str:
    """41 ms; 1.2 s; 3 minutes."""
    if milliseconds < 1_000:
        return f"{milliseconds:,.0f} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.1f} s"
    return span(int(milliseconds * 1_000))


def listed(words: list[str], nothing: str = "nothing") -> str:
    """One, two and three."""
    if len(words) < 2:
        return words[0] if words else nothing
    return f"{', '.join(words[:-1])} and {words[-1]}"


def who(principal: str) -> str:
    """Someone by the name that people know."""
    kind, _, name = principal.partition(":")
    return name or {"local": "the owner here", "sync": "the sync", "": "nobody known"}.get(kind, kind)


FILTERS: Mapping[str, Callable[..., str]] = {
    "when": when,
    "hour": hour,
    "number": number,
    "count": count,
    "size": size,
    "spent": spent,
    "listed": listed,
    "who": who,
}
