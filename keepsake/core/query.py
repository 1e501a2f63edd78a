"""Search operators: AND, OR, NOT, "phrase", prefix* and column:word, read into one tree that both stores understand."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from keepsake.core.stem import stem
from keepsake.core.words import STOP_WORDS, lexemes, words

#: The searched fields by the names that a question may give them.
COLUMNS = {
    "title": "title",
    "concepts": "concepts",
    "facts": "facts",
    "files": "files",
    "files_read": "files",
    "files_modified": "files",
    "narrative": "body",
    "text": "body",
}
FIELDS = ("title", "body", "concepts", "facts", "files")
#: A question with more of either is no list of operators.
MOST_TERMS, DEEPEST = 64, 16
_TOKEN = re.compile(r'\s*(?:(?P<quoted>"(?:[^"]|"")*")(?P<star>\*?)|(?P<paren>[()])|(?P<run>[^\s()"]+)|(?P<odd>\S))')
_COLUMN = re.compile(rf"({'|'.join(COLUMNS)}):(.*)", re.IGNORECASE)
_START = re.compile(r"(.*?)([^\W_]+)\*")
#: Letters that the stemmer takes off a word, and those that it may leave in their place.
_CUT, _LEFT = 6, ("", "e", "i", "l", "y")


@dataclass(frozen=True, slots=True)
class Phrase:
    """Stems that follow each other in one of the fields; mostly a single one."""

    stems: tuple[str, ...]
    fields: tuple[str, ...] = FIELDS


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of a word, as it was written and not as it is indexed."""

    start: str
    fields: tuple[str, ...] = FIELDS

    @property
    def stems(self) -> list[str]:
        """Shorter stems that a word with this beginning may have."""
        shortest = max(3, len(self.start) - _CUT)
        made = {self.start[:length] + left for length in range(shortest, len(self.start)) for left in _LEFT}
        return sorted(one for one in made | {stem(self.start)} if not one.startswith(self.start))


@dataclass(frozen=True, slots=True)
class Every:
    """All parts must hold."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Either:
    """One part must hold."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Without:
    """The first must hold and the second must not."""

    kept: "Node"
    dropped: "Node"


Node = Phrase | Prefix | Every | Either | Without


@dataclass(frozen=True, slots=True)
class Query:
    """A question that uses operators."""

    tree: Node
    #: Whether it may be a sentence with a quotation in it: where nothing fits, it is better asked as one.
    is_loose: bool


class _Malformed(Exception):
    """Not a question of operators."""


def parsed(asked: str) -> Query | None:
    """Read a question that uses operators; None when it uses none, or not as they are meant."""
    try:
        reader = _Reader(_tokens(asked))
        tree = reader.whole()
    except _Malformed:
        return None
    if tree is None or not reader.uses_operators:
        return None
    return Query(tree, reader.is_adjoining and not reader.has_not)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def _tokens(asked: str) -> list[_Token]:
    found: list[_Token] = []
    for match in _TOKEN.finditer(asked.rstrip()):
        if match["odd"] or len(found) > 4 * MOST_TERMS:
            raise _Malformed
        if match["quoted"]:
            found.append(_Token("quoted", match["quoted"][1:-1].replace('""', " ") + match["star"]))
        elif match["paren"]:
            found.append(_Token(match["paren"], ""))
        elif match["run"] in ("AND", "OR", "NOT"):
            found.append(_Token(match["run"], ""))
        else:
            column = _COLUMN.fullmatch(match["run"])
            found += [_Token("column", column[1].lower())] if column else []
            rest = column[2] if column else match["run"]
            found += [_Token("run", rest)] if rest else []
    return found


class _Reader:
    """Reads tokens by FTS5's precedence: words side by side, then NOT, then AND, then OR."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at, self._terms, self._depth = tokens, 0, 0, 0
        self.uses_operators = self.is_adjoining = self.has_not = False

    def whole(self) -> Node | None:
        """Everything, to the last token."""
        tree = self._either()
        if self._at < len(self._tokens):
            raise _Malformed
        return tree

    @property
    def _next(self) -> str:
        return self._tokens[self._at].kind if self._at < len(self._tokens) else ""

    def _takes(self, kind: str) -> bool:
        if self._next != kind:
            return False
        self._at += 1
        self.uses_operators = self.uses_operators or kind in ("AND", "OR", "NOT", "column")
        return True

    def _either(self) -> Node | None:
        parts = [self._every()]
        while self._takes("OR"):
            parts.append(self._every())
        return _joined(Either, parts)

    def _every(self) -> Node | None:
        parts = [self._without()]
        while self._takes("AND"):
            # `a AND NOT b` is what people write who mean `a NOT b`.
            parts = [self._dropping(_joined(Every, parts))] if self._takes("NOT") else [*parts, self._without()]
        return _joined(Every, parts)

    def _without(self) -> Node | None:
        kept = self._adjoining()
        while self._takes("NOT"):
            kept = self._dropping(kept)
        return kept

    def _dropping(self, kept: Node | None) -> Node:
        self.has_not = True
        dropped = self._adjoining()
        if kept is None:
            raise _Malformed
        return kept if dropped is None else Without(kept, dropped)

    def _adjoining(self) -> Node | None:
        parts = [self._one()]
        while self._next in ("run", "quoted", "column", "("):
            parts.append(self._one())
        self.is_adjoining = self.is_adjoining or len(parts) > 1
        return _joined(Every, parts)

    def _one(self) -> Node | None:
        fields: tuple[str, ...] = FIELDS
        if self._next == "column":
            fields = (COLUMNS[self._tokens[self._at].text],)
            self._takes("column")
        if self._takes("("):
            self._depth += 1
            if self._depth > DEEPEST:
                raise _Malformed
            inner = self._either()
            self._depth -= 1
            if not self._takes(")"):
                raise _Malformed
            return inner if inner is None or fields == FIELDS else _within(inner, fields)
        self._terms += 1
        if self._next not in ("run", "quoted") or self._terms > MOST_TERMS:
            raise _Malformed
        token = self._tokens[self._at]
        self._at += 1
        self.uses_operators = self.uses_operators or token.kind == "quoted" or token.text.endswith("*")
        return _term(token.text, fields)


def _joined(kind: type[Every] | type[Either], parts: list[Node | None]) -> Node | None:
    """The parts that say something; stop words say nothing."""
    told = tuple(part for part in parts if part is not None)
    if len(told) < 2:
        return told[0] if told else None
    return kind(told)


def _within(node: Node, fields: tuple[str, ...]) -> Node:
    """The same, of these fields only; an inner column stays what it is."""
    match node:
        case Phrase(stems, of):
            return Phrase(stems, fields if of == FIELDS else of)
        case Prefix(start, of):
            return Prefix(start, fields if of == FIELDS else of)
        case Without(kept, dropped):
            return Without(_within(kept, fields), _within(dropped, fields))
        case Every(parts) | Either(parts):
            return type(node)(tuple(_within(part, fields) for part in parts))


def _term(text: str, fields: tuple[str, ...]) -> Node | None:
    is_prefix, told = text.endswith("*"), text.rstrip("*")
    if "*" in told:
        raise _Malformed
    if not is_prefix or not (match := _START.fullmatch(text, 0, len(told) + 1)):
        if is_prefix:
            raise _Malformed
        return _phrase(text, fields)
    starts = words(match[2])
    if len(starts) > 1 and not match[2].isascii():
        # Chinese and Japanese are indexed by pairs, which say more than a beginning.
        return _phrase(told, fields)
    return _joined(Every, [_phrase(match[1], fields), Prefix(starts[0], fields) if starts else None])


def _phrase(text: str, fields: tuple[str, ...]) -> Phrase | None:
    stems = tuple(lexemes(text))
    if text.isascii() and text.isalnum():
        # An identifier alone: its parts are indexed behind it, but `userName` also means `username`.
        stems = stems[:1]
    return Phrase(stems, fields) if stems else None


@dataclass(frozen=True, slots=True)
class Document:
    """What a memory holds, by field."""

    #: Its stems, each between blanks.
    stems: Mapping[str, str]
    #: What was written.
    texts: Mapping[str, str]


def holds(node: Node, document: Document) -> bool:
    """Whether a memory fits; the stores only fetch what may."""
    match node:
        case Phrase(stems, fields):
            needle = f" {' '.join(stems)} "
            return any(needle in document.stems[field] for field in fields)
        case Prefix(start, fields):
            return any(
                word.startswith(start) and word not in STOP_WORDS
                for field in fields
                for word in words(document.texts[field])
            )
        case Every(parts):
            return all(holds(part, document) for part in parts)
        case Either(parts):
            return any(holds(part, document) for part in parts)
        case Without(kept, dropped):
            return holds(kept, document) and not holds(dropped, document)


def telling(node: Node) -> list[str]:
    """The distinct stems that make a memory fit, for ranking."""
    match node:
        case Phrase(stems, _):
            found = list(stems)
        case Prefix(start, _):
            found = [stem(start)]
        case Without(kept, _):
            found = telling(kept)
        case Every(parts) | Either(parts):
            found = [one for part in parts for one in telling(part)]
    return list(dict.fromkeys(found))
