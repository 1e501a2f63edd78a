"""Reads a git repository: its refs, commits, files and history, through one hardened subprocess each."""

import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from keepsake.core.clock import SECOND, iso
from keepsake.core.errors import BadInput, NotFound
from keepsake.services import repository
from keepsake.services import subprocess_git as process
from keepsake.services.subprocess_git import Command, Failed

__all__ = ["Change", "Commit", "Entry", "Failed", "Git", "Refs", "Tag"]
#: Paths that one commit names; all are counted.
MOST_PATHS = 200
#: Seconds that a question about the history may take: an agent waits for the answer.
QUESTION_S = 20.0
#: Times that are none: git takes any number.
_FIRST, _LAST = 1, 253_402_300_799
_SHA = re.compile(r"[0-9a-f]{4,64}")
_STAT = re.compile(rb"\n?(\d+|-)\t(\d+|-)\t(.*)", re.DOTALL)
_RAW = re.compile(rb"\n?:\d+ \d+ [0-9a-f]+ [0-9a-f]+ [A-Z]\d*", re.DOTALL)
_FORMAT = "--format=tformat:%x01%H%x00%P%x00%aN%x00%aE%x00%at%x00%ct%x00%B%x00"
_HEADER = 7
_TAG = "%(refname:strip=2)%00%(objecttype)%00%(objectname)%00%(*objecttype)%00%(*objectname)%00%(creatordate:unix)%00"
_TAGS = f"{_TAG}%(taggername)%00%(contents:subject)%00%(contents:body)%00"
_LOG = (
    *("log", "--no-show-signature", "--no-color", "--no-notes", "--no-ext-diff", "--no-textconv", "--diff-merges=off"),
    *("--encoding=UTF-8", f"-O{os.devnull}", "-z", _FORMAT),
)
Kind = Literal["file", "link", "module"]
_KINDS: Mapping[str, Kind] = {"120000": "link", "160000": "module"}


@dataclass(frozen=True, slots=True)
class Change:
    """A file that a commit changed, with the lines it gained and lost; None where nobody counted."""

    path: str
    added: int | None = None
    removed: int | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, without what it changed in the files."""

    sha: str
    parents: tuple[str, ...]
    author: str
    email: str
    #: Microseconds; None for a time that is none.
    at: int | None
    message: str
    changes: tuple[Change, ...] = ()
    files: int = 0
    added: int = 0
    removed: int = 0

    @property
    def is_merge(self) -> bool:
        """Whether it joins others."""
        return len(self.parents) > 1


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag, the commit that it names, and what was written with it."""

    name: str
    sha: str
    at: int | None
    tagger: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Refs:
    """Where a repository stands; all of it empty where nothing was committed."""

    #: The branch and the commit that is checked out, or would be.
    branch: str
    head: str
    #: Commits by the full names of refs.
    commits: Mapping[str, str]
    tags: Sequence[Tag]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in a tree."""

    path: str
    blob: str
    size: int
    kind: Kind = "file"


class Git:
    """A repository on this machine: a folder with a working tree, a git folder or a mirror."""

    def __init__(self, path: str | Path) -> None:
        place = repository.located(str(path))
        if place is None:
            raise BadInput(f"{path} is not a git repository. Give the top folder of one, or its git folder.")
        self.directory, self.common = place.gitdir, place.common
        #: Where it came from as `host/owner/name`; never with a secret in it.
        self.remote = place.remote

    def _command(self, *arguments: str, given: bytes = b"", patience_s: float = process.PATIENCE_S) -> Command:
        return Command(arguments, self.directory, given, patience_s)

    @property
    def shallow(self) -> frozenset[str]:
        """Commits whose parents were left out when it was cloned."""
        try:
            told = Path(self.common, "shallow").read_text(encoding="ascii", errors="replace")
        except OSError:
            return frozenset()
        return frozenset(told.split())

    async def refs(self) -> Refs:
        """Every branch and tag, and what is checked out."""
        told = await process.whole(
            self._command(
                "for-each-ref", "--format=%(refname)%00%(objecttype)%00%(objectname)", "refs/heads", "refs/remotes"
            )
        )
        rows = [line.split("\0") for line in _text(told).splitlines()]
        commits = {name: sha for name, kind, sha in rows if kind == "commit"}
        tags = await self._tags()
        commits |= {f"refs/tags/{tag.name}": tag.sha for tag in tags}
        branch = await self._said("symbolic-ref", "-q", "HEAD")
        head = await self._said("rev-parse", "-q", "--verify", "HEAD^{commit}")
        if not head:
            branch, head = _likely(commits)
        if head:
            commits["HEAD"] = head
        return Refs(branch.removeprefix("refs/heads/").removeprefix("refs/remotes/"), head, commits, tags)

    async def _said(self, *arguments: str) -> str:
        """One line, or nothing where git has no answer."""
        try:
            return _text(await process.whole(self._command(*arguments))).strip()
        except Failed:
            return ""

    async def _tags(self) -> list[Tag]:
        told = await process.whole(self._command("for-each-ref", f"--format={_TAGS}", "refs/tags"))
        parts = _text(told).split("\0")
        found = []
        for start in range(0, len(parts) - 9, 9):
            name, kind, sha, peeled, target, at, tagger, subject, body = parts[start : start + 9]
            if "commit" not in (kind, peeled):
                continue
            message = f"{subject}\n\n{body}".strip() if kind == "tag" else ""
            found.append(Tag(name.lstrip("\n"), target or sha, _moment(at), tagger, message))
        return found

    async def count(self, wanted: Iterable[str], known: Iterable[str]) -> int:
        """How many commits the wanted ones reach and the known ones do not."""
        told = await process.whole(self._command("rev-list", "--count", "--stdin", given=_asked(wanted, known)))
        return int(told)

    async def reached(self, wanted: Iterable[str], known: Iterable[str]) -> list[str]:
        """The names of those commits."""
        told = await process.whole(self._command("rev-list", "--stdin", given=_asked(wanted, known)))
        return _text(told).split()

    async def commits(
        self, wanted: Iterable[str], known: Iterable[str], *, counted: bool = True
    ) -> AsyncGenerator[Commit]:
        """The same commits, the oldest first; `counted` compares files, which needs all of them to be there."""
        stat = ("--numstat", "-M") if counted else ("--raw", "--no-renames", "--no-abbrev")
        command = self._command(*_LOG, "--reverse", *stat, "--stdin", given=_asked(wanted, known))
        async with aclosing(_parsed(process.fields(command))) as found:
            async for commit in found:
                yield commit

    async def history(
        self, path: str = "", pickaxe: str = "", since: int | None = None, limit: int = 20, revision: str = "HEAD"
    ) -> list[Commit]:
        """The newest commits that touched a path, or brought or took a text; as many as there was time for."""
        asked = ["--numstat", "-M", f"--max-count={limit}"]
        asked += [f"-S{pickaxe}"] if pickaxe else []
        asked += [f"--since={iso(since)}"] if since is not None else []
        asked += ["--end-of-options", revision, "--", *([path] if path else [])]
        found: list[Commit] = []
        stream = _parsed(process.fields(self._command(*_LOG, *asked, patience_s=QUESTION_S)))
        try:
            async with aclosing(stream) as commits:
                async for commit in commits:
                    found.append(commit)
        except Failed:
            if not found:
                raise
        return found

    async def tree(self, revision: str = "HEAD") -> list[Entry]:
        """Every file of a revision."""
        try:
            return await self._entries("-l", f"{revision}^{{tree}}")
        except Failed:
            # Where blobs were left out when it was cloned, nobody knows their sizes.
            return await self._entries("-t", f"{revision}^{{tree}}")

    async def _entries(self, how: str, tree: str) -> list[Entry]:
        found = []
        command = self._command("ls-tree", "-r", "-z", how, "--full-tree", "--end-of-options", tree)
        async with aclosing(process.fields(command)) as rows:
            async for row in rows:
                told, _, path = row.partition(b"\t")
                mode, what, blob, *size = told.decode("ascii", "replace").split()
                weight = int(size[0]) if size and size[0].isdigit() else 0
                if what != "tree":
                    found.append(Entry(_path(path), blob, weight, _KINDS.get(mode, "file")))
        return found

    async def date(self, revision: str) -> int | None:
        """When a commit was made, in microseconds."""
        return _moment(
            await self._said("log", "-1", "--no-show-signature", "--format=%ct", "--end-of-options", revision)
        )

    async def exists(self, *names: str) -> set[str]:
        """Which of these commits, blobs or other objects are there."""
        asked = [name for name in names if _SHA.fullmatch(name)]
        if not asked:
            return set()
        told = await process.whole(
            self._command("cat-file", "--batch-check=%(objectname)", given="".join(f"{n}\n" for n in asked).encode())
        )
        answers = _text(told).splitlines()
        return {
            name for name, said in zip(asked, answers, strict=False) if not said.endswith((" missing", " ambiguous"))
        }

    async def blobs(self, names: Sequence[str], limit: int) -> AsyncIterator[tuple[str, bytes]]:
        """What files hold, by the names of their blobs; one that is missing or larger than the limit is left out."""
        for start in range(0, len(names), 100):
            part = [name for name in names[start : start + 100] if _SHA.fullmatch(name)]
            told = await process.whole(
                self._command("cat-file", "--batch", given="".join(f"{n}\n" for n in part).encode())
            )
            for name, held in _held(part, told):
                if len(held) <= limit:
                    yield name, held

    async def blob(self, name: str, limit: int) -> bytes:
        """What a file holds, by its blob or as `revision:path`; refused when it is larger than the limit."""
        if "\n" in name or name.startswith("-"):
            raise BadInput("That is not the name of a file in a repository.")
        given = f"{name}\n".encode("utf-8", "surrogateescape")
        checked = _text(await process.whole(self._command("cat-file", "--batch-check", given=given))).split()
        if len(checked) != 3 or checked[1] != "blob":
            raise NotFound(f"There is no file {name.partition(':')[2] or name} at that revision.")
        if int(checked[2]) > limit:
            raise BadInput(f"The file is larger than {limit // 1024} KiB.")
        told = await process.whole(self._command("cat-file", "--batch", given=given))
        return next((held for _, held in _held([name], told)), b"")

    async def lines(self, revision: str, path: str, start: int, end: int, limit: int) -> list[str]:
        """Lines of a file, counted from 1, the last one included."""
        told = _text(await self.blob(f"{revision}:{path}", limit))
        return told.splitlines()[max(0, start - 1) : end]


def _held(names: Sequence[str], told: bytes) -> Iterator[tuple[str, bytes]]:
    """Read what `cat-file --batch` says: a line that tells the size, that many bytes, a line end."""
    at = 0
    for name in names:
        end = told.index(b"\n", at)
        words = told[at:end].split()
        at = end + 1
        if len(words) == 3 and words[2].isdigit():
            size = int(words[2])
            if words[1] == b"blob":
                yield name, told[at : at + size]
            at += size + 1


def _asked(wanted: Iterable[str], known: Iterable[str]) -> bytes:
    lines = [*dict.fromkeys(wanted), *(f"^{sha}" for sha in dict.fromkeys(known))]
    return "".join(f"{line}\n" for line in lines if _SHA.fullmatch(line.removeprefix("^"))).encode()


def _likely(commits: Mapping[str, str]) -> tuple[str, str]:
    """The branch that is meant where HEAD names one that does not exist."""
    heads = [name for name in commits if name.startswith(("refs/heads/", "refs/remotes/"))]
    best = ("refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master", "refs/remotes/origin/main", *heads)
    name = next((name for name in best if name in commits), "")
    return name, commits.get(name, "")


def _text(told: bytes) -> str:
    return told.decode("utf-8", "replace")


def _path(told: bytes) -> str:
    """A path that every store takes; it may be any bytes but NUL."""
    return told.decode("utf-8", "backslashreplace")


def _moment(told: str) -> int | None:
    seconds = int(told) if told.isdigit() and len(told) < 13 else 0
    return seconds * SECOND if _FIRST <= seconds <= _LAST else None


async def _parsed(fields: AsyncGenerator[bytes]) -> AsyncGenerator[Commit]:
    """Read the log: a header of NUL-ended fields, then the files, until the next header begins."""
    header: list[bytes] = []
    changes: list[Change] = []
    counts = [0, 0, 0]
    names = 0
    async with aclosing(fields) as told:
        async for one in told:
            if header and len(header) < _HEADER:
                header.append(one)
            elif names:
                # A renamed file: its former name, then the present one.
                names -= 1
                if not names:
                    changes[-1:] = [Change(_path(one), changes[-1].added, changes[-1].removed)]
            elif one.startswith(b"\x01"):
                if header:
                    yield _commit(header, changes, counts)
                header, changes, counts = [one[1:]], [], [0, 0, 0]
            elif change := _changed(one):
                names = 0 if change.path else (2 if _STAT.fullmatch(one) else 1)
                changes.append(change)
                counts = [counts[0] + 1, counts[1] + (change.added or 0), counts[2] + (change.removed or 0)]
    if len(header) == _HEADER:
        yield _commit(header, changes, counts)


def _changed(told: bytes) -> Change | None:
    """One file of a commit; its path is empty where it follows in fields of its own."""
    if match := _STAT.fullmatch(told):
        added, removed = (None if each == b"-" else int(each) for each in (match[1], match[2]))
        return Change(_path(match[3]), added, removed)
    return Change("") if _RAW.fullmatch(told) else None


def _commit(header: Sequence[bytes], changes: Sequence[Change], counts: Sequence[int]) -> Commit:
    sha, parents, author, email, at, committed, message = (_text(part) for part in header)
    moment = _moment(at)
    return Commit(
        sha=sha,
        parents=tuple(parents.split()),
        author=" ".join(author.split()),
        email=email.strip(),
        at=moment if moment is not None else _moment(committed),
        message=message.strip(),
        changes=tuple(changes[:MOST_PATHS]),
        files=counts[0],
        added=counts[1],
        removed=counts[2],
    )
