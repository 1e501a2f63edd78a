"""What a client told becomes small and harmless before anything else happens to it."""

from keepsake.core import marks, secrets

#: Characters of a text that are kept, from its start and from its end, where results stand.
HEAD, TAIL = 2_000, 2_000
#: What a person, an agent or a client's summary says is worth more.
SAID = 8_000
#: Characters beyond what is kept that are read, so that no secret is cut in two and half of it kept.
MARGIN = 6_000
DEEPEST, WIDEST = 6, 60


def text(told: object, head: int = HEAD, tail: int = 0) -> str:
    """A text without secrets and private parts, cut to its beginning and end."""
    whole = marks.visible(plain(told))
    if len(whole) <= head + tail + MARGIN:
        clean = secrets.redacted(whole).text
        return clean if len(clean) <= head + tail else _joined(clean[:head], clean[len(clean) - tail :])
    begin = secrets.redacted(whole[: head + MARGIN]).text[:head]
    end = secrets.redacted(whole[-(tail + MARGIN) :]).text[-tail:] if tail else ""
    return _joined(begin, end)


def _joined(begin: str, end: str) -> str:
    return f"{begin}\n…\n{end}" if end else f"{begin} …"


def plain(told: object) -> str:
    """Text that every store takes."""
    whole = told if isinstance(told, str) else "" if told is None else str(told)
    return whole.encode("utf-8", "replace").decode().replace("\x00", "")


def value(given: object, depth: int = DEEPEST) -> object:
    """A JSON value, cleaned and cut."""
    if isinstance(given, str):
        return text(given)
    if isinstance(given, dict):
        items = list(given.items())[:WIDEST] if depth else []
        return {text(key, 100): value(part, depth - 1) for key, part in items}
    if isinstance(given, list):
        return [value(part, depth - 1) for part in given[:WIDEST]] if depth else []
    return given if given is None or isinstance(given, bool | int | float) else ""


def fields(given: object) -> dict[str, object]:
    """The input of a tool."""
    # A string under a key that names a secret is one, whatever it looks like.
    clean = secrets.redacted_json(value(given)).value
    return {str(key): part for key, part in clean.items()} if isinstance(clean, dict) else {}
