"""What a change would do, in lines that people read: `-` is what goes, `+` is what comes."""

import json
from collections.abc import Mapping

#: Characters of a value that are shown.
MOST = 2_000


def lines(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """What goes and what comes, by field; what stays is left out."""
    told: list[str] = []
    for name in dict.fromkeys([*before, *after]):
        was, will_be = before.get(name), after.get(name)
        if name in before and name in after and was == will_be:
            continue
        told += _marked("-", name, was) if name in before else []
        told += _marked("+", name, will_be) if name in after else []
    return told


def plain(line: str) -> str:
    """A line without anything that a terminal would obey or hide: whoever decides must see what is there."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in line)


def _marked(mark: str, name: str, value: object) -> list[str]:
    """One value; each further line of it carries the mark, so that no text can pass for another's line."""
    told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    cut = f"{told[:MOST]}… ({len(told) - MOST:,} characters more)" if len(told) > MOST else told
    first, *more = [plain(line) for line in cut.splitlines()] or [""]
    return [f"{mark} {name}: {first}", *(f"{mark}   {line}" for line in more)]
