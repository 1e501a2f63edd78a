"""What a git repository tells, as pieces to store: commits, tags, documents, notes and the tree of its files."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from keepsake.core import clock, secrets, sections
from keepsake.ops.pieces import Piece
from keepsake.services.git import Change, Commit, Entry, Tag
from keepsake.store.repos import FOLDERS

#: Documents of a repository, and what they may weigh together.
MOST_DOCUMENTS, ROOM = 3_000, 48 * 1024 * 1024
#: Folders that the tree of files tells.
MOST_FOLDERS = 150
NO_MESSAGE = "(no message)"
#: Folders of what others wrote and made.
_FOREIGN = frozenset({"node_modules", "vendor", "third_party", "site-packages", ".venv", "venv", ".git", "__pycache__"})
_WITH = re.compile(r"^co-authored-by:\s*([^<\n]{1,100}?)\s*<", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where pieces come from."""

    #: Where a commit or a file can be looked at; empty without a website.
    url: str
    #: The commit whose files are read, and when it was made.
    head: str = ""
    at: int | None = None


def _date(at: int | None) -> str:
    return "" if at is None else clock.iso(at)


def commit(one: Commit, origin: Origin, email_hash: str) -> Piece:
    """A commit: what its author says, and which files it changed."""
    message = one.message or NO_MESSAGE
    paths = tuple(change.path for change in one.changes)
    parts: dict[str, object] = {"files_modified": list(paths), "changes": [_summed_up(each) for each in one.changes]}
    return Piece(
        kind="commit",
        key=one.sha,
        revision="",
        subtype="commit",
        title=message.partition("\n")[0],
        text=message,
        at=one.at,
        metadata={
            "type": "commit",
            "date": _date(one.at),
            "sha": one.sha,
            "author": one.author,
            "email_hash": email_hash,
            "files": one.files,
            "added": one.added,
            "removed": one.removed,
            "merge": one.is_merge,
        },
        parts=parts if paths else {},
        authors=tuple(dict.fromkeys(name for name in (one.author, *_WITH.findall(one.message)) if name)),
        files=paths,
        wrote=True,
        uri=f"{origin.url}/commit/{one.sha}" if origin.url else "",
    )


def _summed_up(change: Change) -> str:
    if change.added is None or change.removed is None:
        return change.path
    return f"{change.path} +{change.added} -{change.removed}"


def tag(one: Tag, origin: Origin) -> Piece:
    """A tag with what was written with it."""
    return Piece(
        kind="tag",
        key=one.name,
        revision=one.sha,
        subtype="tag",
        title=one.name,
        text=f"Tag {one.name}\n\n{one.message}".strip(),
        at=one.at,
        metadata={"type": "tag", "date": _date(one.at), "tag": one.name, "sha": one.sha, "author": one.tagger},
        authors=(one.tagger,) if one.tagger else (),
        uri=f"{origin.url}/tree/{one.name}" if origin.url else "",
    )


@dataclass(frozen=True, slots=True)
class Document:
    """A file that is read, and what kind of source it is."""

    entry: Entry
    kind: str
    subtype: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """The documents of a tree, and how many were left out: too large, or too many."""

    documents: Sequence[Document]
    large: int = 0
    over: int = 0


def documents(entries: Iterable[Entry], limit: int) -> Chosen:
    """The files that tell something in words: read-mes first, then notes, then what lies least deep."""
    found = [one for entry in entries if entry.kind == "file" and (one := _document(entry))]
    fitting = [one for one in found if one.entry.size <= limit]
    order = {"readme": 0, "note": 1, "file": 2}
    fitting.sort(key=lambda one: (order[one.subtype], one.entry.path.count("/"), one.entry.path))
    kept: list[Document] = []
    room = ROOM
    for one in fitting[:MOST_DOCUMENTS]:
        room -= one.entry.size
        if room < 0:
            break
        kept.append(one)
    return Chosen(kept, len(found) - len(fitting), len(fitting) - len(kept))


def _document(entry: Entry) -> Document | None:
    *folders, name = entry.path.lower().split("/")
    if not _FOREIGN.isdisjoint(folders):
        return None
    is_text = name.endswith(sections.SUFFIXES)
    if folders and folders[0] in FOLDERS:
        kind = ("file", "note")
    elif name.startswith("readme") and (is_text or "." not in name):
        kind = ("readme", "readme")
    elif is_text:
        kind = ("file", "file")
    else:
        return None
    # Its path is its key, which must lead to the file: one that holds a secret is not read at all.
    return None if secrets.redacted(entry.path).cuts else Document(entry, *kind)


def is_note(path: str) -> bool:
    """Whether a file lies in a folder in which a project keeps notes for its agents."""
    return path.lower().startswith(tuple(f"{folder}/" for folder in FOLDERS))


def document(one: Document, held: bytes, origin: Origin, at: int | None) -> list[Piece]:
    """The sections of a document; none of one that is no text. `at` is when it was last changed."""
    if b"\0" in held:
        return []
    path, blob = one.entry.path, one.entry.blob
    moment = at if at is not None else origin.at
    return [
        Piece(
            kind=one.kind,
            key=path,
            revision=blob,
            subtype=one.subtype,
            title=part.title or path,
            text=part.text,
            metadata={
                "type": one.subtype,
                "date": _date(moment),
                "path": path,
                "start_line": part.start,
                "end_line": part.end,
                "blob": blob,
                "revision": origin.head,
            },
            parts={"files_read": [path]},
            files=(path,),
            seen_at=moment,
            uri=f"{origin.url}/blob/{origin.head}/{path}" if origin.url else "",
        )
        # Cut out of the whole: half of a key would not be known for one.
        for part in sections.split(path, secrets.in_lines(held.decode("utf-8", "replace")))
    ]


def tree(entries: Sequence[Entry], origin: Origin) -> Piece:
    """The folders of a repository, with how many files each holds and what they weigh."""
    held: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for entry in entries:
        parts = entry.path.split("/")[:-1]
        for folder in ("/".join(parts[:n]) for n in range(1, len(parts) + 1)):
            held[folder] += 1
            size[folder] += entry.size
    total = sum(entry.size for entry in entries)
    lines = [f"{len(entries)} files in {len(held)} folders, {_weight(total)}"]
    # The largest ones of all, in the order of their names, so that a small change changes little.
    told = sorted(sorted(held, key=lambda name: (name.count("/"), -held[name], name))[:MOST_FOLDERS])
    lines += [f"{name}/ {held[name]} files, {_weight(size[name])}" for name in told]
    lines += [entry.path for entry in entries if "/" not in entry.path][:MOST_FOLDERS]
    metadata: Mapping[str, object] = {"type": "tree", "date": _date(origin.at), "revision": origin.head}
    return Piece(
        kind="file",
        key="tree",
        revision=origin.head,
        subtype="tree",
        title="File tree",
        text="\n".join(lines),
        metadata=metadata,
        uri=f"{origin.url}/tree/{origin.head}" if origin.url else "",
    )


def _weight(size: int) -> str:
    return f"{size} bytes" if size < 10_000 else f"{size // 1000:,} KB"
