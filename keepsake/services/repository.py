"""Reads which project a folder belongs to, from a handful of small files and without starting git."""

import os
import re
import sys
from dataclasses import dataclass

from keepsake.core import project
from keepsake.core.project import Project

if sys.platform == "darwin":
    import fcntl

#: In a folder of a project, or `project` in a folder of that name: the name of the bank to use.
OVERRIDE = ".keepsake"
#: More than any of these files needs, and little enough for a hook that must be quick.
_LARGEST = 256 * 1024
_SECTION = re.compile(r"""\s*\[\s*remote\s+"((?:[^"\\]|\\.)*)"\s*\]""", re.IGNORECASE)
_URL = re.compile(r"\s*url\s*=\s*(.*)", re.IGNORECASE)


def project_of(cwd: str) -> Project:
    """The project that a folder belongs to: its override file, its git remote, its repository, else itself."""
    folder = _real(cwd)
    name, top = "", ""
    for above in _upwards(folder):
        if not name and (name := _override(above)):
            top = above
        if gitdir := _gitdir(above):
            return _in_repository(above, gitdir, name)
    if name:
        return Project(name, name, project.plain(top))
    return Project(f"dir:{project.plain(folder)}", project.named(os.path.basename(folder)), project.plain(folder))


def here(folder: str = "") -> Project | None:
    """The project of a folder, else of this process's own; None in a home, at the root, or where none can be read."""
    try:
        folder = folder or os.getcwd()
    except OSError:
        return None
    real = _real(folder)
    if real in {_real(os.path.expanduser("~")), os.path.dirname(real)} or not os.access(real, os.R_OK | os.X_OK):
        return None
    return project_of(folder)


@dataclass(frozen=True, slots=True)
class Located:
    """Where a repository is: its git folder, the one that its working trees share, and its remote without secrets."""

    gitdir: str
    common: str
    remote: str


def located(path: str) -> Located | None:
    """The repository whose top, or whose git folder, is at a path; None where there is none."""
    gitdir = _gitdir(_real(path))
    if not gitdir:
        return None
    common = _common(gitdir)
    return Located(gitdir, common, _remote(common))


def _in_repository(above: str, gitdir: str, name: str) -> Project:
    common = _common(gitdir)
    root = os.path.dirname(above) if above == gitdir and os.path.basename(above) == ".git" else above
    branch = _branch(gitdir)
    # An override that is not committed stands in the first working tree only, and holds for the others too.
    if name or (name := _override(root) or (_override(os.path.dirname(common)) if common != gitdir else "")):
        return Project(name, name, project.plain(root), branch)
    if url := _remote(common):
        return Project(f"git:{url}", project.named(url.rpartition("/")[2]), project.plain(root), branch)
    return Project(f"dir:{project.plain(common)}", _repository_name(root, gitdir, common), project.plain(root), branch)


def _repository_name(root: str, gitdir: str, common: str) -> str:
    """What a repository without a remote is called: by the folder of its first working tree."""
    place, last = os.path.split(common)
    if last == ".git" or last.startswith("."):
        return project.named(os.path.basename(place))
    if gitdir == common and root != common:
        return project.named(os.path.basename(root))
    return project.named(last.removesuffix(".git"))


def _upwards(folder: str) -> list[str]:
    found = [folder]
    while (parent := os.path.dirname(found[-1])) != found[-1]:
        found.append(parent)
    return found


def _real(path: str) -> str:
    """The one spelling of a path, whatever links and letter cases lead to it."""
    real = os.path.normcase(os.path.realpath(path.replace("\x00", "") or os.curdir))
    if sys.platform == "darwin":
        # The file system takes any case; only the kernel knows the one it was made with.
        try:
            opened = os.open(real, os.O_RDONLY)
        except OSError:
            return real
        try:
            return os.fsdecode(fcntl.fcntl(opened, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\x00"))
        except OSError:
            return real
        finally:
            os.close(opened)
    return real


def _gitdir(folder: str) -> str:
    """The git folder of a working tree, or the folder itself where it is a repository; empty for neither."""
    path = os.path.join(folder, ".git")
    if _is_repository(path):
        return path
    if told := _text(path):
        key, _, place = told.partition(":")
        pointed = _real(os.path.join(folder, place.strip("\r\n").strip(" ")))
        return pointed if key == "gitdir" and place.strip() and _is_repository(pointed) else ""
    return folder if _is_repository(folder) else ""


def _is_repository(path: str) -> bool:
    """Whether git would take this folder for one of its own; a linked tree's has no objects but names who has."""
    head = os.path.lexists(os.path.join(path, "HEAD"))
    return head and any(os.path.exists(os.path.join(path, part)) for part in ("objects", "commondir"))


def _common(gitdir: str) -> str:
    """The folder that all working trees of a repository share."""
    told = _text(os.path.join(gitdir, "commondir")).strip("\r\n")
    return _real(os.path.join(gitdir, told)) if told else gitdir


def _branch(gitdir: str) -> str:
    head = _text(os.path.join(gitdir, "HEAD")).strip()
    prefix = "ref: refs/heads/"
    # Repositories that keep their references in tables write `.invalid` for older readers.
    return project.plain(head.removeprefix(prefix)) if head.startswith(prefix) and head != f"{prefix}.invalid" else ""


def _remote(common: str) -> str:
    """The remote that tells whose repository this is: origin, else upstream, else the first that is elsewhere."""
    found: dict[str, str] = {}
    section = None
    for line in _text(os.path.join(common, "config")).replace("\\\n", "").splitlines():
        if opening := _SECTION.match(line):
            section = opening[1]
        elif line.lstrip().startswith("["):
            section = None
        if section is not None and section not in found and (told := _URL.match(line, opening.end() if opening else 0)):
            url = project.remote(_value(told[1]))
            if url:
                found[section] = project.plain(url)
    return found.get("origin") or found.get("upstream") or next(iter(found.values()), "")


def _value(text: str) -> str:
    """A value of a git config: quotes taken off, the comment after it dropped."""
    kept, quoted, letters = "", False, iter(text)
    for letter in letters:
        if letter == "\\":
            kept += next(letters, "")
        elif letter == '"':
            quoted = not quoted
        elif letter in "#;" and not quoted:
            break
        else:
            kept += letter
    return kept.strip()


def _override(folder: str) -> str:
    """The bank that a folder's own file asks for; empty without one."""
    path = os.path.join(folder, OVERRIDE)
    told = _text(path) or _text(os.path.join(path, "project"))
    lines = [line.strip() for line in told.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return project.named(lines[0]) if lines else ""


def _text(path: str) -> str:
    """The start of a file; empty when there is none that can be read."""
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
            return file.read(_LARGEST)
    except OSError:
        return ""
