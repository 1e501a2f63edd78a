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


@lru_cache(maxsize=128)
def gathered(statements: tuple[str, ...]) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Several questions as one statement of PostgreSQL, each answered as JSON; with the place of every parameter."""
    apart = [_NAME.sub(rf":p{n}_\1", sql) for n, sql in enumerate(statements)]
    whole = ", ".join(f"(SELECT json_agg(answer) FROM ({sql}) AS answer)" for sql in apart)
    text, names = postgres(f"SELECT {whole}")
    return text, tuple((int(name[1 : name.index("_")]), name[name.index("_") + 1 :]) for name in names)
