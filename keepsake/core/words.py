"""Text cut into lexemes and counted; no pydantic here, because hooks must start fast."""

import hashlib
import re
import unicodedata

from keepsake.core.stem import stem

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
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


def line(text: str, longest: int) -> str:
    """A text on one line, cut at a word where it is too long."""
    text = " ".join(text.split())
    return text if len(text) <= longest else (text[: longest - 2].rsplit(" ", 1)[0] or text[: longest - 2]) + " …"
