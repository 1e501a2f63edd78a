"""Reading JSON lines, however large the file and however broken some of them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from keepsake.core.errors import BadInput

#: Bytes of one line; a longer one is an image or a dump, and is skipped without being held.
LONGEST = 16 * 1024 * 1024

Entry = dict[str, object]


@dataclass(frozen=True, slots=True)
class Line:
    """One line: what it says, or None for one that cannot be read."""

    number: int
    entry: Entry | None
    #: Bytes of the file up to its end.
    end: int


def read(path: Path) -> Iterator[Line]:
    """The lines of a file that are not blank, one at a time."""
    try:
        with path.open("rb") as file:
            number, end = 0, 0
            while piece := file.readline(LONGEST):
                number, end = number + 1, end + len(piece)
                rest = piece
                while not rest.endswith(b"\n") and (rest := file.readline(LONGEST)):
                    piece, end = b"", end + len(rest)
                if not piece or piece.strip():
                    yield Line(number, _entry(piece) if piece else None, end)
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}).") from error


def _entry(piece: bytes) -> Entry | None:
    try:
        told = json.loads(piece)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def field(entry: Entry, name: str) -> Entry:
    """An object within an object; empty where there is none."""
    told = entry.get(name)
    return told if isinstance(told, dict) else {}
