"""Trees of operators as FTS5 and as PostgreSQL's text search read them.

Both fetch all that fits and a little more: what is shown is decided by `core.query.holds`, the same for both.
"""

from keepsake.core.query import Either, Every, Node, Phrase, Prefix, Without
from keepsake.store.tsearch import quoted

#: The weight under which `tsearch` keeps a field; neighbours' words share the last with body and facts.
_WEIGHTS = {"title": "A", "concepts": "B", "files": "C", "body": "D", "facts": "D"}


def fts5(node: Node, letters: str) -> str:
    """A tree as FTS5's MATCH reads it; the words of neighbours do not count."""
    match node:
        case Phrase(stems, fields):
            return f"{_columns(fields)} : {_string(' '.join(letters + one for one in stems))}"
        case Prefix(start, fields):
            shorter = [_string(letters + one) for one in node.stems]
            return f"{_columns(fields)} : ({' OR '.join([_string(letters + start) + ' *', *shorter])})"
        case Every(parts):
            return f"({' AND '.join(fts5(part, letters) for part in parts)})"
        case Either(parts):
            return f"({' OR '.join(fts5(part, letters) for part in parts)})"
        case Without(kept, Phrase() as dropped):
            return f"({fts5(kept, letters)} NOT {fts5(dropped, letters)})"
        case Without(kept, _):
            return fts5(kept, letters)


def _columns(fields: tuple[str, ...]) -> str:
    return f"{{{' '.join(fields)}}}"


def _string(text: str) -> str:
    return f'"{text}"'


def tsquery(node: Node, letters: str) -> str:
    """A tree as a tsquery; phrases may cross fields there, and long texts lose their positions."""
    match node:
        case Phrase(stems, fields):
            weights = _weights(fields)
            return f"({' & '.join(f'{quoted(letters + one)}:{weights}' for one in stems)})"
        case Prefix(start, fields):
            weights = _weights(fields)
            shorter = [f"{quoted(letters + one)}:{weights}" for one in node.stems]
            return f"({' | '.join([f'{quoted(letters + start)}:*{weights}', *shorter])})"
        case Every(parts):
            return f"({' & '.join(tsquery(part, letters) for part in parts)})"
        case Either(parts):
            return f"({' | '.join(tsquery(part, letters) for part in parts)})"
        case Without(kept, _):
            # Neighbours' words have no weight of their own, so that a negation could leave out what fits.
            return tsquery(kept, letters)


def _weights(fields: tuple[str, ...]) -> str:
    return "".join(sorted({_WEIGHTS[field] for field in fields}))
