"""Files of other programs: read with care, replaced at once, with a copy of what they were."""

import contextlib
import os
import secrets
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from keepsake.core.errors import BadInput, Misconfigured

#: Ends the name of the copy of a file as it was before Keepsake touched it.
BACKUP = ".keepsake-backup"
_LARGEST = 64 << 20


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was found; `text` is None when there is none."""

    path: Path
    text: str | None
    #: Where copies are kept instead of beside it.
    copies: Path | None = None

    @property
    def backup(self) -> Path:
        """Where the copy stands."""
        if self.copies is None:
            return self.path.with_name(self.path.name + BACKUP)
        return self.copies / f"{sha256(str(self.path).encode()).hexdigest()[:16]}-{self.path.name}{BACKUP}"


def read(path: Path, within: Path, copies: Path | None = None) -> File:
    """Read a file, following links as long as they stay within a folder."""
    real = Path(os.path.realpath(path))
    inside = Path(os.path.realpath(within))
    if not real.is_relative_to(inside) and real != path:
        raise BadInput(
            f"{path} leads to {real}, outside {within}. Keepsake does not write there; put it there by hand."
        )
    try:
        if real.exists() and real.stat().st_size > _LARGEST:
            raise BadInput(f"{path} is larger than any configuration. Keepsake leaves it alone.")
        text = real.read_bytes().decode("utf-8") if real.exists() else None
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text. Keepsake leaves it alone; put the lines there by hand.") from error
    except OSError as error:
        raise Misconfigured(f"Cannot read {path} ({error.strerror}).") from error
    return File(real, text, copies)


def saved(file: File) -> str | None:
    """What the file was before Keepsake touched it."""
    try:
        return file.backup.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def back_up(file: File) -> None:
    """Keep a copy of a file that Keepsake has not touched yet."""
    if file.text is not None:
        _replaced(file.backup, file.text, _mode(file.path))


def write(file: File, text: str, mode: int) -> None:
    """Replace a file in one step, unless it changed since it was read."""
    _unchanged(file)
    _replaced(file.path, text, _mode(file.path) or mode)


def remove(file: File) -> None:
    """Remove a file that is ours alone, unless it changed since it was read."""
    _unchanged(file)
    file.path.unlink(missing_ok=True)


def _unchanged(file: File) -> None:
    try:
        now = file.path.read_bytes().decode("utf-8") if file.path.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"Cannot read {file.path}. Try again.") from error
    if now != file.text:
        raise Misconfigured(f"{file.path} was changed by another program a moment ago. Try again.")


def _mode(path: Path) -> int | None:
    return path.stat().st_mode & 0o7777 if path.exists() else None


def _replaced(path: Path, text: str, mode: int | None) -> None:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(text.encode("utf-8"))
            opened.flush()
            os.fsync(opened.fileno())
        os.chmod(beside, 0o600 if mode is None else mode)
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise Misconfigured(f"Cannot write {path} ({error.strerror}).") from error
