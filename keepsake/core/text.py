"""Text as everyone here understands it: clean, counted, cut into lexemes."""

import math
import re
from typing import Annotated

from pydantic import AfterValidator, Field

from keepsake.core.words import STOP_WORDS, asked, cost, digest, lexemes, words

__all__ = ["STOP_WORDS", "asked", "cost", "digest", "lexemes", "words"]
_SURROGATE = re.compile("[\ud800-\udfff]")


def cleaned(text: str) -> str:
    """Refuse what no store can hold: NUL characters and lone surrogates."""
    if "\x00" in text:
        raise ValueError("must not contain NUL characters")
    if not text.isascii() and _SURROGATE.search(text):
        raise ValueError("must be valid Unicode; it has a lone surrogate")
    return text


def filled(text: str) -> str:
    """Refuse text with nothing in it."""
    if not text.strip():
        raise ValueError("must not be empty or blank")
    return text


Clean = Annotated[str, AfterValidator(cleaned)]
# Patterns are for clients to read; what does not fit is refused by us, in words that say what to do.
Filled = Annotated[str, AfterValidator(cleaned), AfterValidator(filled), Field(json_schema_extra={"pattern": r"\S"})]


def cleaned_json(value: object, depth: int = 16) -> object:
    """Refuse JSON that no store can hold: as for text, and numbers that are none, and bottomless nesting."""
    if depth == 0:
        raise ValueError("is nested too deeply")
    if isinstance(value, str):
        cleaned(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must not contain numbers that are not finite")
    elif isinstance(value, int) and abs(value) > 2**63:
        raise ValueError("must not contain whole numbers beyond 64 bits")
    elif isinstance(value, dict):
        for key, part in value.items():
            cleaned(key)
            cleaned_json(part, depth - 1)
    elif isinstance(value, list):
        for part in value:
            cleaned_json(part, depth - 1)
    return value


CleanJson = Annotated[object, AfterValidator(cleaned_json)]
