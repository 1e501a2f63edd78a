"""Answers in a shape that the caller gives as a JSON Schema; nothing is ever fetched to read one."""

import json
from collections.abc import Iterator
from typing import Any

from keepsake.core.errors import BadInput
from keepsake.core.lazy import lazy

jsonschema = lazy("jsonschema")
referencing = lazy("referencing")
LONGEST = 20_000
#: Keywords whose keys are names, and those whose values are data.
_NAMES = {"properties", "$defs", "definitions", "dependentSchemas", "dependencies"}
_DATA = {"enum", "const", "default", "examples", "required", "dependentRequired"}
#: A hostile expression could hold up the whole server.
_PATTERNS = {"pattern", "patternProperties"}
Schema = dict[str, Any]


class Shape:
    """A schema that was found good, ready to check values."""

    def __init__(self, schema: Schema) -> None:
        """Refuse what is no JSON Schema, or one that cannot be checked safely."""
        if not schema:
            raise BadInput("response_schema is empty; say what the answer is to look like, or leave it out.")
        if len(json.dumps(schema)) > LONGEST:
            raise BadInput(f"response_schema is longer than {LONGEST} characters.")
        made = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        try:
            made.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise BadInput(f"response_schema is not a valid JSON Schema: {error.message[:200]}") from error
        for keyword, value in _keywords(schema):
            if keyword in _PATTERNS:
                raise BadInput(f"response_schema: `{keyword}` is not supported; use `enum` or a description instead.")
            if keyword.endswith("Ref") or keyword == "$ref":
                _check_reference(schema, value)
        self.schema = schema
        # A registry of our own: the usual one would fetch what a schema refers to.
        self._validator = made(schema, registry=referencing.Registry())
        self.fault({})

    def fault(self, value: object) -> str | None:
        """What is wrong with a value; None when it keeps to the schema."""
        try:
            error = jsonschema.exceptions.best_match(self._validator.iter_errors(value))
        except (RecursionError, referencing.exceptions.Unresolvable) as endless:
            raise BadInput(
                "response_schema refers to itself without end, or to something that is not in it."
            ) from endless
        if error is None:
            return None
        place = "/".join(str(part) for part in error.absolute_path)
        return f"at {place or 'the top'}: {error.message[:300]}."


def _keywords(part: object) -> Iterator[tuple[str, object]]:
    """Every keyword of a schema with its value, names of properties left out."""
    if isinstance(part, list):
        for item in part:
            yield from _keywords(item)
    if not isinstance(part, dict):
        return
    for keyword, value in part.items():
        yield keyword, value
        if keyword in _NAMES and isinstance(value, dict):
            yield from _keywords(list(value.values()))
        elif keyword not in _DATA:
            yield from _keywords(value)


def _check_reference(schema: Schema, target: object) -> None:
    place: object = schema
    if not isinstance(target, str) or not target.startswith("#"):
        raise BadInput("response_schema may refer only to its own parts (`#/$defs/…`).")
    for step in [step for step in target.removeprefix("#").split("/") if step]:
        place = place.get(step) if isinstance(place, dict) else None
    if place is None:
        raise BadInput(f"response_schema refers to {target[:100]}, which is not in it.")
