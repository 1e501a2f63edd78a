"""Turns the one SQL text into what each database reads."""

import re
from functools import lru_cache

_LIST = re.compile(r"= ANY_(INT|TEXT)\(:(\w+)\)")
_NAME = re.compile(r"(?<![:\w]):([a-z_]\w*)")


@lru_cache(maxsize=1024)
def sqlite(sql: str) -> str:
    """Lists travel as JSON."""
    return _LIST.sub(r"IN (SELECT value FROM json_each(:\2))", sql)


@lru_cache(maxsize=1024)
def postgres(sql: str) -> tuple[str, tuple[str, ...]]:
    """Named parameters become numbered ones; lists are arrays."""
    names: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    cast = {"INT": "bigint[]", "TEXT": "text[]"}
    typed = _LIST.sub(lambda match: f"= ANY(CAST(:{match[2]} AS {cast[match[1]]}))", sql)
    return _NAME.sub(numbered, typed), tuple(names)
