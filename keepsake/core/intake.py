"""What a caller gave becomes what a model wants: every mistake told in a sentence, no secret kept."""

import re
from collections.abc import Mapping

from pydantic import BaseModel, ValidationError

from keepsake.core import secrets
from keepsake.core.errors import BadInput
from keepsake.core.models import Given

Arguments = Mapping[str, object]
#: How pydantic tells of the length of a text that was cleaned before it was measured, and how of any other.
_CUT, _CHARACTERS = re.compile(r"^Value (should have at \w+ \d+) item(s?) after validation.*"), r"String \1 character\2"


def validated(model: type[Given], arguments: Arguments, name: str) -> Given:
    """Arguments as the model wants them, or one sentence per mistake."""
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        raise BadInput(f"{name}: {_told(error, model)}") from error
    except RecursionError as error:
        raise BadInput(f"{name}: the arguments are nested too deeply.") from error


# Here and not in the operations: every call passes, reading or writing, so no operation can forget it.
def cleaned(given: Given, name: str) -> tuple[Given, tuple[str, ...]]:
    """What was given without its secrets, and the names of those; a field that must hold one is a `SecretStr`."""
    found: list[str] = []
    fields = {field: _clean(getattr(given, field), found) for field in given.model_fields_set}
    return (validated(type(given), fields, name), tuple(dict.fromkeys(found))) if found else (given, ())


def _clean(value: object, found: list[str]) -> object:
    """Names of our own fields say nothing; keys of a mapping that a caller chose do."""
    if isinstance(value, BaseModel):
        return {field: _clean(getattr(value, field), found) for field in value.model_fields_set}
    if isinstance(value, list):
        return [_clean(part, found) for part in value]
    if not isinstance(value, str | dict):
        return value
    made = secrets.redacted_json(value)
    found += made.found
    return made.value


def echoed(text: str, most: int) -> str:
    """The beginning of what a caller said, safe to repeat."""
    return secrets.redacted(text[: 10 * most]).text[:most]


def _told(error: ValidationError, model: type[Given]) -> str:
    sentences = []
    for problem in error.errors(include_url=False, include_input=False)[:5]:
        place = echoed(".".join(str(part) for part in problem["loc"]), 200) or "the arguments"
        if problem["type"] == "extra_forbidden":
            known = ", ".join(model.model_fields) or "none"
            sentences.append(f"`{place}` is not an argument; the arguments are: {known}.")
        elif problem["type"] == "missing":
            sentences.append(f"`{place}` is required.")
        else:
            sentences.append(f"`{place}`: {_CUT.sub(_CHARACTERS, problem['msg']).removeprefix('Value error, ')}.")
    return secrets.redacted(" ".join(sentences).encode("utf-8", "replace").decode()).text
