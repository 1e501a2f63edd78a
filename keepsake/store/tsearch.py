"""Our words as PostgreSQL's text search reads them."""

from collections.abc import Iterator, Sequence

from keepsake.store.engine import Doc

#: A tsvector holds positions up to this one, words up to 2,046 bytes and 1 MB in all.
LAST_POSITION = 16_383
LONGEST_WORD = 500
ROOM = 900_000


def tsvector(doc: Doc) -> str:
    """A document's words as PostgreSQL reads them, with positions and the weight of their field."""
    places: dict[str, list[str]] = {}
    room = ROOM
    for position, (word, weight) in enumerate(_weighted(doc), 1):
        room -= 4 if word in places else 8 + len(word.encode())
        if room < 0:
            break
        places.setdefault(word, []).append(f"{min(position, LAST_POSITION)}{weight}")
    return " ".join(f"{quoted(word)}:{','.join(at)}" for word, at in places.items())


def _weighted(doc: Doc) -> Iterator[tuple[str, str]]:
    rest = [*doc.body, *doc.facts, *doc.context]
    for words, weight in ((doc.title, "A"), (doc.concepts, "B"), (doc.files, "C"), (rest, "")):
        for word in words:
            yield word[:LONGEST_WORD], weight


def tsquery(groups: Sequence[Sequence[str]]) -> str:
    """Any of the groups, all words of a group."""
    return " | ".join(f"({' & '.join(quoted(word[:LONGEST_WORD]) for word in group)})" for group in groups if group)


def quoted(word: str) -> str:
    """A word of ours as a lexeme of a tsvector or tsquery."""
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
