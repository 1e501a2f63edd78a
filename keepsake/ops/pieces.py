"""The pieces that a repository tells, and all that can be worked out of them before they are stored."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from keepsake.core import names, secrets, text
from keepsake.ops import naming
from keepsake.store import files, search
from keepsake.store.engine import Doc
from keepsake.store.entities import Named
from keepsake.store.memories import Memory

#: Pieces of one transaction, and the characters from which on no more are added; an item always goes whole.
BATCH, ROOM = 200, 400_000
#: Characters of a title and of a text, names of one piece, and characters in which names are looked for.
LONGEST_TITLE, LONGEST_TEXT, MOST_NAMES, READ = 300, 20_000, 30, 4_000
_WORLD = frozenset({"readme", "file", "note", "tree"})


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that a repository tells; pieces of one kind and key are the sections of one item, given together."""

    #: Kind, key and revision of its source: the same revision is never stored twice.
    kind: str
    key: str
    revision: str
    #: commit, tag, readme, file, note, tree, pull, issue or release; its fact type follows from it.
    subtype: str
    title: str
    text: str
    #: When it happened; None for what has no moment of its own, such as a document.
    at: int | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    parts: Mapping[str, object] = field(default_factory=dict)
    #: Who wrote it.
    authors: tuple[str, ...] = ()
    #: Paths that it is about, whether it wrote them, and the moment that it knows them from where that is not `at`.
    files: tuple[str, ...] = ()
    wrote: bool = False
    seen_at: int | None = None
    #: Where it can be looked at.
    uri: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """All that one revision of a thing says."""

    kind: str
    key: str
    revision: str
    uri: str
    pieces: tuple[Piece, ...]


def items(pieces: Iterable[Piece]) -> list[Item]:
    """Pieces by the thing they are of."""
    found: dict[tuple[str, str], list[Piece]] = {}
    for piece in pieces:
        found.setdefault((piece.kind, piece.key), []).append(piece)
    return [Item(kind, key, told[0].revision, told[0].uri, tuple(told)) for (kind, key), told in found.items()]


def batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Items in transactions of moderate size."""
    batch: list[Item] = []
    count = weight = 0
    for item in items:
        if batch and (count + len(item.pieces) > BATCH or weight > ROOM):
            yield batch
            batch, count, weight = [], 0, 0
        batch.append(item)
        count += len(item.pieces)
        weight += sum(len(piece.text) for piece in item.pieces)
    if batch:
        yield batch


def cleaned(item: Item) -> Item:
    """An item without secrets; its key leads to its source and stays."""
    return replace(item, uri=_clean(item.uri), pieces=tuple(_cleaned(piece) for piece in item.pieces))


def _cleaned(piece: Piece) -> Piece:
    title = " ".join(piece.title.replace("\x00", " ").split())
    told = piece.text.replace("\x00", " ").strip()
    if len(told) > LONGEST_TEXT:
        told = f"{told[: LONGEST_TEXT - 2]} …"
    made = replace(piece, title=_clean(title)[:LONGEST_TITLE], text=_clean(told) or "(no text)")
    strings = [*_strings(piece.metadata), *_strings(piece.parts), *piece.authors, *piece.files]
    # Asked once of them all: most have nothing to hide, and there may be hundreds of paths.
    if not secrets.redacted("\n".join(strings)).cuts:
        return made
    metadata, parts = (secrets.redacted_json(dict(each)).value for each in (piece.metadata, piece.parts))
    assert isinstance(metadata, dict)
    assert isinstance(parts, dict)
    authors, paths = (tuple(_clean(one) for one in each) for each in (piece.authors, piece.files))
    return replace(made, metadata=metadata, parts=parts, authors=authors, files=paths)


def _clean(told: str) -> str:
    return secrets.redacted(told).text


def _strings(value: object) -> Iterator[str]:
    """Every string in a JSON value; a name and its value stay on one line, as they would be written."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            if isinstance(part, str):
                yield f"{key}: {part}"
            else:
                yield from _strings(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)


@dataclass(frozen=True, slots=True)
class Made:
    """A piece with its place in the index, its hashes and the names in it."""

    piece: Piece
    doc: Doc
    text_hash: str
    #: What its vector is made from, and the hash of that.
    told: str
    told_hash: str
    named: Sequence[Named]


def made(org: int, bank: int, piece: Piece) -> Made:
    """Work out what can be worked out without the store."""
    paths = "\n".join(piece.files)
    doc = search.document(org, bank, 0, search.Fields(piece.text, piece.title, files=paths))
    told = f"{piece.title}\n{piece.text}".strip()
    return Made(piece, doc, text.digest(piece.text), told, text.digest(told), _named(piece))


def _named(piece: Piece) -> list[Named]:
    """Who wrote it, then who and what its words name; that a line begins like speech tells nothing here."""
    found = {
        folded: Named(name, folded, "person", "speaker")
        for name in piece.authors
        if (folded := names.folded(name)) and len(name) <= naming.LONGEST_NAME
    }
    for one in naming.named(piece.text[:READ]):
        if len(found) >= MOST_NAMES:
            break
        found.setdefault(one.folded, replace(one, role="named"))
    return list(found.values())


def memory(made: Made, org: int, bank: int, id: int, now: int) -> Memory:
    """A piece as it is stored, its source and sequence left to whoever stores it."""
    piece = made.piece
    return Memory(
        org=org,
        bank=bank,
        id=id,
        kind="chunk",
        fact_type="world" if piece.subtype in _WORLD else "experience",
        text=piece.text,
        learned_at=now,
        author="sync",
        text_hash=made.text_hash,
        tokens=text.cost(piece.text),
        seq=0,
        subtype=piece.subtype,
        title=piece.title,
        category=piece.subtype,
        parts=dict(piece.parts),
        metadata=piece.metadata,
        happened_from=piece.at,
        event_at=piece.at,
        trust="outside",
    )


def touched(piece: Piece, memory: int, now: int) -> list[files.Touched]:
    """The files that a piece is about."""
    at = piece.seen_at or piece.at or now
    blob = str(piece.metadata.get("blob") or "")
    return [files.Touched(memory, path, piece.wrote, at, blob) for path in dict.fromkeys(piece.files)]
