"""Readable names of memories, by which people and addresses know them."""

import re
import unicodedata

#: Words and characters at most.
WORDS, LONGEST = 8, 60
_WORD = re.compile(r"[^\W_]+")
_MARK = re.compile(r"[\u0300-\u036f]")


def made(told: str) -> str:
    """The first words of a text, joined; those of Latin letters without their accents."""
    plain = _MARK.sub("", unicodedata.normalize("NFKD", told[:400])).casefold()
    slug = ""
    for word in _WORD.findall(plain)[:WORDS]:
        longer = f"{slug}-{word}" if slug else word
        if len(longer) > LONGEST:
            break
        slug = longer
    return slug or "memory"


def shown(slug: str, told: str, id: int) -> str:
    """The name of a memory; one that was given none is known by its words and its id."""
    return slug or f"{made(told)}-{id}"


def id_in(name: str) -> str:
    """The id at the end of a name that was made up to be shown."""
    return name.rpartition("-")[2]
