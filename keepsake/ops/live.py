"""The files of a project at the revision that was synced last: its folders, and lines of its files."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keepsake.context import Ctx
from keepsake.core import secrets
from keepsake.core.errors import BadInput, KeepsakeError, NotFound
from keepsake.core.lazy import lazy
from keepsake.store import banks, history, repos
from keepsake.store.filters import Filter
from keepsake.store.repos import Repo

if TYPE_CHECKING:
    from keepsake.services import git, github, mirror
else:
    git = lazy("keepsake.services.git")
    mirror = lazy("keepsake.services.mirror")
    github = lazy("keepsake.services.github")

#: Bytes of a file that are read, entries of a folder that are told, lines that one reading gives.
LARGEST, ENTRIES, LINES = 512 * 1024, 200, 400
#: The end that stands for all lines.
WHOLE = -1
#: Seconds that a limit of GitHub's is waited for while someone waits for an answer, that one request may take, and
#: before it is tried again.
PATIENCE_S, ANSWER_S, PAUSE_S = 2.0, 10.0, 0.2


class Unreadable(NotFound):
    """A file that is not there, or that cannot be shown."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a folder within a folder."""

    name: str
    kind: str
    #: Bytes of a file, files of a folder.
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """What a folder holds."""

    under: str
    entries: tuple[Entry, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """Lines of a file, without secrets; they are counted from 1."""

    path: str
    blob: str
    revision: str
    start: int
    end: int
    total: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)


@dataclass(frozen=True, slots=True)
class Project:
    """A bank, the repository it learns from, and what was read of it for one request."""

    bank: banks.Bank
    repo: Repo | None
    _texts: dict[str, tuple[str, ...]] = field(default_factory=dict, compare=False)

    @property
    def head(self) -> str:
        """The commit whose files are read."""
        return self.repo.head if self.repo else ""

    def scope(self, at: int) -> Filter:
        """The memories of its bank that hold at a moment."""
        return Filter(self.bank.org, self.bank.id, at)


def git_of(ctx: Ctx, project: Project) -> "git.Git | None":
    """The repository itself, where it is on this machine."""
    repo = project.repo
    if repo is None or not repo.head:
        return None
    kept = mirror.place(ctx.app.settings.data_dir, repo.org, repo.bank)
    try:
        return git.Git(repo.remote if repo.is_local else kept)
    except BadInput:
        return None


async def tree(ctx: Ctx, project: Project, under: str = "") -> Listing:
    """What a folder of the project holds, folders first."""
    folder = f"{under.strip('/')}/" if under.strip("/") else ""
    files = await ctx.read(lambda tx: history.under(tx, project.scope(ctx.now), folder))
    if not files:
        raise Unreadable(f"There is no folder {under!r} in {project.bank.name}.")
    entries = _entries(folder, files)
    return Listing(folder, entries[:ENTRIES], max(0, len(entries) - ENTRIES))


def _entries(folder: str, files: Sequence[repos.File]) -> tuple[Entry, ...]:
    held: dict[str, int] = {}
    plain: list[Entry] = []
    for file in files:
        name, slash, _ = file.path[len(folder) :].partition("/")
        if slash:
            held[name] = held.get(name, 0) + 1
        else:
            plain.append(Entry(name, file.kind, file.size))
    return (*(Entry(name, "folder", size) for name, size in sorted(held.items())), *plain)


async def read(ctx: Ctx, project: Project, path: str, start: int = 1, end: int = 0) -> Read:
    """Lines of a file at the synced revision, no more than one may ask for at once, or the WHOLE."""
    file = await ctx.read(lambda tx: repos.file(tx, ctx.org, project.bank.id, path))
    if file is None or file.kind != "file":
        raise Unreadable(f"There is no file {path!r} in {project.bank.name} at {project.head[:7]}.")
    if file.size > LARGEST:
        raise Unreadable(f"{path} is too large to be read: {file.size} bytes.")
    if file.blob not in project._texts:
        project._texts[file.blob] = await asyncio.to_thread(lines_of, path, await _content(ctx, project, file))
    lines = project._texts[file.blob]
    first = min(max(1, start), max(1, len(lines)))
    last = len(lines) if end == WHOLE else min(len(lines), end if end >= first else len(lines), first + LINES - 1)
    return Read(path, file.blob, project.head, first, last, len(lines), lines[first - 1 : last])


async def _content(ctx: Ctx, project: Project, file: repos.File) -> bytes:
    """The bytes of a file: from the repository on this machine, else from GitHub."""
    settings, repo, here = ctx.app.settings, project.repo, git_of(ctx, project)
    if here is None and (repo is None or not github.may_ask(settings, repo.full_name, repo.remote)):
        raise Unreadable(f"The files of {project.bank.name} cannot be read from here.")
    try:
        if here:
            return await here.blob(file.blob, LARGEST)
        assert repo is not None
        asked = replace(github.configured(settings), longest_wait_s=PATIENCE_S, timeout=ANSWER_S, pause_s=PAUSE_S)
        async with asked.connected() as hub:
            return (await hub.contents(repo.full_name, file.path, repo.head, LARGEST)).body
    except KeepsakeError as error:
        raise Unreadable(f"{file.path} could not be read: {error}") from error


def lines_of(path: str, content: bytes) -> tuple[str, ...]:
    """The lines of a text, without its secrets."""
    if b"\0" in content:
        raise Unreadable(f"{path} is no text.")
    text = content.decode("utf-8", "replace").replace("\r\n", "\n")
    return tuple(secrets.in_lines(text).removesuffix("\n").split("\n"))
