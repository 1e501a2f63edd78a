"""Text as everyone here understands it: clean, counted, cut into lexemes."""

import hashlib
import math
import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator

from keepsake.core.stem import stem

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
#: Longer runs are hashes, keys or noise: they are found by their beginning.
_LONGEST = 64

STOP_WORDS = frozenset(
    """a about above after again against all also am an and any are as at be because been before being below between
    both but by can cannot could did do does doing down during each few for from further had has have having he her
    here hers herself him himself his how i if in into is it its itself just let me more most my myself no nor not now
    of off on once only or other ought our ours ourselves out over own same shall she should so some such than that the
    their theirs them themselves then there these they this those through to too under until up upon us very was we
    were what when where which while who whom why will with would you your yours yourself yourselves
    s t d ll m o re ve don didn doesn isn wasn won wouldn couldn shouldn hasn haven hadn aren weren ain""".split()
)


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
Filled = Annotated[str, AfterValidator(cleaned), AfterValidator(filled)]


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


def cost(text: str) -> int:
    """Tokens as the seeds count them: a quarter of the characters, rounded up."""
    return -(-len(text) // 4)


def digest(text: str) -> str:
    """A short hash that tells whether a text has changed."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def words(text: str) -> list[str]:
    """Cut text into folded words; identifiers also give their parts, Chinese and Japanese give pairs."""
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
        text = unicodedata.normalize("NFC", text)
    found: list[str] = []
    for run in _WORD.findall(text):
        whole = run[:_LONGEST].lower()
        if not whole.isascii() and _CJK.search(whole):
            found += [whole[n : n + 2] for n in range(max(1, len(whole) - 1))]
            continue
        found.append(whole)
        if whole != run and not run.isupper() and not run.istitle():
            found += [part.lower() for part in _CAMEL.split(run[:_LONGEST]) if part.lower() != whole]
    return found


def lexemes(text: str) -> list[str]:
    """The stems that are indexed, in order and without stop words."""
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


def asked(query: str) -> list[str]:
    """The distinct stems of a question; when it is all stop words, those."""
    found = lexemes(query) or [stem(word) for word in words(query)]
    return list(dict.fromkeys(found))
