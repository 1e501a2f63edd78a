"""Words of the command line become the arguments of a tool, by its JSON schema."""

import json
from collections.abc import Mapping, Sequence

from keepsake.core.errors import BadInput

YES, NO = ("true", "yes", "1", "on"), ("false", "no", "0", "off")


def parsed(words: Sequence[str], properties: Mapping[str, object]) -> dict[str, object]:
    """Read `--name value`, `--name=value`, `--flag` and `--no-flag`; repeated arrays add up."""
    given: dict[str, object] = {}
    waiting = list(words)
    while waiting:
        option, has_value, value = waiting.pop(0).partition("=")
        if not option.startswith("--") or option == "--":
            raise BadInput(f"{option!r} stands alone; write arguments as --name value.")
        name, kind, negated = _named(option, properties)
        if kind == "boolean" and not has_value:
            value = waiting.pop(0) if waiting and waiting[0].lower() in YES + NO and not negated else str(not negated)
        elif not has_value:
            if not waiting:
                raise BadInput(f"{option} needs a value.")
            value = waiting.pop(0)
        _put(given, name, _value(option, kind, value))
    return given


def _named(option: str, properties: Mapping[str, object]) -> tuple[str, str, bool]:
    """The argument that an option means, its type, and whether the option denies it."""
    name = option[2:].replace("-", "_")
    denied = name.removeprefix("no_")
    if name not in properties and denied != name and kind_of(properties.get(denied)) == "boolean":
        return denied, "boolean", True
    if name not in properties:
        known = ", ".join(f"--{known}" for known in properties) or "none"
        raise BadInput(f"The tool has no argument {option}; its arguments are: {known}.")
    return name, kind_of(properties[name]), False


def kind_of(schema: object) -> str:
    """The JSON type that a schema asks for, null aside."""
    if not isinstance(schema, dict):
        return ""
    if isinstance(schema.get("type"), str):
        return str(schema["type"])
    kinds = [kind for kind in map(kind_of, schema.get("anyOf", [])) if kind != "null"]
    return kinds[0] if kinds else "string" if "enum" in schema or "const" in schema else ""


def _put(given: dict[str, object], name: str, value: object) -> None:
    held = given.get(name)
    if isinstance(held, list) and isinstance(value, list):
        held.extend(value)
    elif name in given:
        raise BadInput(f"--{name} is given twice.")
    else:
        given[name] = value


def _value(option: str, kind: str, text: str) -> object:
    try:
        if kind == "integer":
            return int(text)
        if kind == "number":
            return float(text)
        if kind == "array":
            return _list(text)
        if kind in ("object", ""):
            return json.loads(text)
    except ValueError as error:
        wanted = {"integer": "a whole number", "number": "a number", "array": "a value or a JSON array"}
        raise BadInput(f"{option}: {text[:100]!r} is not {wanted.get(kind, 'JSON')}.") from error
    if kind == "boolean" and text.lower() not in YES + NO:
        raise BadInput(f"{option}: {text[:100]!r} is neither true nor false.")
    return text.lower() in YES if kind == "boolean" else text


def _list(text: str) -> list[object]:
    """A JSON array, or one value of it."""
    if not text.lstrip().startswith("["):
        return [text]
    values = json.loads(text)
    return values if isinstance(values, list) else [values]


def document(text: str) -> dict[str, object]:
    """The arguments as one JSON object."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput("--json-args is not valid JSON.") from error
    if not isinstance(given, dict):
        raise BadInput('--json-args must be a JSON object, such as \'{"query": "tea"}\'.')
    return given
