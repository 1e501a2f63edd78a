"""Bad inputs, made from a tool's schema: what a careless or hostile client sends."""

import random
import string
from collections.abc import Iterator
from itertools import islice
from typing import Any

Json = dict[str, Any]

#: A value of every type but text, and text that nothing should take.
WRONG_FOR_TEXT: list[Any] = [0, -1, 1.5, True, [], ["a"], {}, {"a": 1}, 10**30]
WRONG_FOR_NUMBER: list[Any] = ["", "7", "many", True, 1.5, [], {}, -(10**30), 10**30, float("inf"), float("nan")]
WRONG_FOR_LIST: list[Any] = ["a", 1, True, {}, {"0": "a"}, [1], [None], [[]], [{}], ["\x00"], ["\ud800"], ["x" * 5_000]]
WRONG_FOR_OBJECT: list[Any] = [
    "a",
    1,
    True,
    [],
    {"\x00": 1},
    {"a": "\x00"},
    {"a": "\ud800"},
    {"a": float("nan")},
    {"a": float("-inf")},
    {"a": 10**30},
]
NO_TIMES = ["yesterday", "2026-13-01", "2026-02-30T00:00:00Z", "12", "0001-01-01T00:00:00+14:00"]
UNCLEAN = ["\x00", "a\x00b", "\ud800", "text \udfff text"]
PATHS = ["../etc", "..", "a/b", "a\\b", "../../..", "a/../b", "\n", " ", " a", "a ", "", "x" * 200, "\x1b[31m", "\x00"]


#: Arguments that name a bank, or several.
BANKS = ("bank_id", "project", "projectSlug")
SEVERAL = ("projectSlugs",)


def nested(depth: int) -> Json:
    """An object in an object in an object …"""
    made: Json = {}
    for _ in range(depth):
        made = {"a": made}
    return made


def choices(name: str, schema: Json) -> list[Any]:
    """Values that this argument must refuse."""
    options = schema.get("anyOf", [schema])
    kinds = {option.get("type") for option in options}
    bad: list[Any] = [] if "null" in kinds else [None]
    if "string" in kinds:
        bad += WRONG_FOR_TEXT + UNCLEAN
        longest = [option["maxLength"] for option in options if "maxLength" in option]
        bad += ["x" * (longest[0] + 1)] if longest else []
        bad += ["no such choice"] if any("enum" in option for option in options) else []
        bad += PATHS if name in BANKS else []
        bad += NO_TIMES if any(option.get("format") == "date-time" for option in options) else []
        bad += ["", " ", "\n\t "] if any("pattern" in option for option in options) else []
    if "integer" in kinds:
        bad += WRONG_FOR_NUMBER
        bad += [option["minimum"] - 1 for option in options if "minimum" in option]
        bad += [option["maximum"] + 1 for option in options if "maximum" in option]
    for option in options:
        if option.get("type") == "array":
            bad += _wrong_for(option)
            bad += [["fresh", path] for path in PATHS] if name in SEVERAL else []
    if "object" in kinds:
        bad += [*WRONG_FOR_OBJECT, nested(20), {str(n): n for n in range(201)}]
    return bad


def good(schema: Json) -> Json:
    """Arguments that are all right but for what is put in their place."""
    properties = schema.get("properties", {})
    named: Json = dict.fromkeys(BANKS, "fresh") | {name: ["fresh"] for name in SEVERAL}
    return {name: named.get(name) or _good(properties[name]) for name in schema.get("required", [])}


def _good(schema: Json) -> Any:
    return {"integer": 1, "array": [1]}.get(schema.get("type", ""), "1")


def _wrong_for(schema: Json) -> list[Any]:
    """Lists that are none, hold what they must not, or too much or little of it."""
    is_numbers = schema["items"].get("type") == "integer"
    bad = [one for one in WRONG_FOR_LIST if one != [1]] + [["1"], [1.5], [0], [2**60]] if is_numbers else WRONG_FOR_LIST
    few: list[Any] = [[]] if schema.get("minItems") else []
    one: Any = 1 if is_numbers else "fresh"
    return [*bad, *few, *([[one] * (schema["maxItems"] + 1)] if "maxItems" in schema else [])]


def unknown(rng: random.Random) -> tuple[str, Any]:
    """An argument that no tool has."""
    name = "x_" + "".join(rng.choices(string.ascii_letters + "_-. é\x00", k=rng.randint(1, 30)))
    return name, rng.choice([None, 1, "a", [], {}, nested(5), "\ud800"])


def inputs(tool: Json, count: int = 220) -> list[Json]:
    """At least so many bad arguments of a tool, the same on every run."""
    return list(islice(_inputs(tool), count))


def _inputs(tool: Json) -> Iterator[Json]:
    schema, rng = tool["inputSchema"], random.Random(tool["name"])
    properties: dict[str, Json] = schema.get("properties", {})
    for name in schema.get("required", []):
        yield {key: value for key, value in good(schema).items() if key != name}
    single = [{**good(schema), name: value} for name in properties for value in choices(name, properties[name])]
    yield from single
    while True:
        name, value = unknown(rng)
        base = rng.choice(single) if single and rng.random() < 0.5 else good(schema)
        yield {**base, name: value}
