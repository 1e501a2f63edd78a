"""Events that the store could not take at once wait in a file, line by line, until someone takes them in."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from keepsake.store import events
from keepsake.store.events import Event

if sys.platform != "win32":
    import fcntl

NAME = "hook-spool.jsonl"
#: A spool that nobody empties must not fill the disk.
LARGEST = 64_000_000


def add(folder: Path, told: Sequence[Event]) -> bool:
    """Append events, each as one line, all of them or none; False when there is too much already."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lines = "".join(f"{events.written(event)}\n" for event in told).encode("utf-8", "replace")
    with _opened(folder / NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
        size = os.fstat(file).st_size
        if size + len(lines) > LARGEST:
            return False
        written = os.write(file, lines)
        if written < len(lines):
            # The disk is full: half a line would spoil the next one.
            os.ftruncate(file, size)
            return False
    return True


def waits(folder: Path) -> bool:
    """Whether there may be something to take in."""
    return next(folder.glob(f"{NAME}*"), None) is not None


def held(folder: Path) -> list[Path]:
    """Spools that wait: what was written since, and what someone took and did not finish."""
    if (folder / NAME).exists():
        taken = folder / f"{NAME}.{os.getpid()}-{os.stat(folder / NAME).st_ino}"
        # Whoever holds the lock has opened the file before it was moved, and still writes into it.
        with _opened(folder / NAME, os.O_RDWR) as file:
            if os.fstat(file).st_size:
                os.replace(folder / NAME, taken)
    return sorted(folder.glob(f"{NAME}.*"))


def read(path: Path) -> tuple[list[Event], int]:
    """The events of a spool, and how many of its lines are none."""
    told, broken = [], 0
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            told.append(events.parsed(line))
        except ValueError:
            broken += 1
    return told, broken


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    while True:
        file = os.open(path, flags, 0o600)
        try:
            _lock(file)
            if _is_still(file, path):
                yield file
                return
        finally:
            os.close(file)


def _is_still(file: int, path: Path) -> bool:
    """Whether the path still names the file that was opened; it may have been taken while we waited."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _lock(file: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX)
