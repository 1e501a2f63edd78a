"""Templates of enrolled commands and calls: words with `{name}` in them; a value is never more than a value."""

import json
import re
from collections.abc import Callable, Iterator, Mapping

#: A doubled brace is a brace; `{env.NAME}` is what the operator's environment holds.
_PART = re.compile(r"\{\{|\}\}|\{(?P<name>(?:env\.)?[A-Za-z_][A-Za-z0-9_]*)\}|(?P<stray>[{}])")
ENV = "env."
Values = Mapping[str, object]


def names(template: str) -> list[str]:
    """The names that a template has places for; ValueError where a brace belongs to none."""
    found = []
    for part in _PART.finditer(template):
        if part["stray"]:
            raise ValueError(f"has a lone {part['stray']!r}; write {part['stray'] * 2!r} for the character itself")
        if part["name"]:
            found.append(part["name"])
    return found


def filled(template: str, values: Values, written: Callable[[str], str] = str) -> str:
    """A template with its values in place."""

    def value(part: re.Match[str]) -> str:
        return written(said(values[part["name"]])) if part["name"] else part[0][0]

    return _PART.sub(value, template)


def said(value: object) -> str:
    """A value as one argument."""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def begins_with_value(template: str) -> str:
    """The name that a template begins with; empty where it begins with a text of its own."""
    part = _PART.match(template)
    return (part["name"] or "") if part else ""


def texts(value: object) -> Iterator[str]:
    """Every text of a JSON value, the keys of its objects included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield str(key)
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)


def filled_json(template: object, values: Values) -> object:
    """A JSON value with its values in place; a text that is nothing but a place becomes the value, with its type."""
    if isinstance(template, dict):
        return {filled(key, values): filled_json(part, values) for key, part in template.items()}
    if isinstance(template, list):
        return [filled_json(part, values) for part in template]
    if not isinstance(template, str):
        return template
    whole = _PART.fullmatch(template)
    return values[whole["name"]] if whole is not None and whole["name"] else filled(template, values)
