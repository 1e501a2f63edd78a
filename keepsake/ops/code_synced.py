"""Code as banks were synced from it: searched by git where the repository is on this machine, told by the store."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from keepsake.context import Ctx
from keepsake.core import clock, secrets
from keepsake.core.errors import BadInput, KeepsakeError, NotFound
from keepsake.core.lazy import lazy
from keepsake.core.when import EARLIEST, LATEST, Window
from keepsake.ops import banks as bank_ops
from keepsake.ops import code_shapes, live, lookups
from keepsake.ops.code_shapes import (
    Change,
    Entry,
    EntryKind,
    FileSize,
    Found,
    Item,
    Match,
    Overview,
    Reading,
    Search,
    Wanted,
)
from keepsake.ops.live import Project
from keepsake.store import banks, history, repos
from keepsake.store.engine import Tx

if TYPE_CHECKING:
    from keepsake.services import git_code
    from keepsake.services.git import Git
    from keepsake.services.git_code import Line
else:
    git_code = lazy("keepsake.services.git_code")

__all__ = ["Project", "named", "overview", "own", "reached", "read", "search"]
#: Repositories that one search looks through, seconds that it may take, and lines that are looked at to choose from.
MOST_REPOS, PATIENCE_S, LOOKED = 10, 25.0, 300
#: Characters of a line that is shown.
SHOWN = 300
READING = frozenset({"memory:read"})
_KINDS: dict[str, EntryKind] = {"link": "link", "module": "module"}
_MAKES = re.compile(r"\b(?:def|class|function|func|fn|struct|enum|interface|trait|type|const|let|var|module)\s+$")
_LANGUAGES = {
    "c": "C", "h": "C", "cc": "C++", "cpp": "C++", "hpp": "C++", "cs": "C#", "css": "CSS", "go": "Go", "html": "HTML",
    "java": "Java", "js": "JavaScript", "jsx": "JavaScript", "mjs": "JavaScript", "kt": "Kotlin", "lua": "Lua",
    "php": "PHP", "py": "Python", "pyi": "Python", "rb": "Ruby", "rs": "Rust", "scala": "Scala", "scss": "SCSS",
    "sh": "Shell", "bash": "Shell", "sql": "SQL", "svelte": "Svelte", "swift": "Swift", "ts": "TypeScript",
    "tsx": "TypeScript", "vue": "Vue", "zig": "Zig", "ex": "Elixir", "exs": "Elixir", "hs": "Haskell", "r": "R",
}  # fmt: skip


async def reached(ctx: Ctx) -> list[Project]:
    """The synced repositories that this principal may read, the request's own first."""

    async def body(tx: Tx) -> list[Project]:
        known = await repos.listed(tx, ctx.org)
        found = [Project(bank, known[bank.id]) for bank in await banks.listed(tx, ctx.org) if bank.id in known]
        return [one for one in found if one.head and _may_read(ctx, one.bank)]

    mine, _ = bank_ops.wanted(ctx, None)
    return sorted(await ctx.read(body), key=lambda one: (one.bank.name != mine, one.bank.name))


def _may_read(ctx: Ctx, bank: banks.Bank) -> bool:
    """Whether a bank is within reach, and what it holds may be read; the scope of research alone opens none."""
    reading = ctx.principal.acting(READING)
    is_open = reading.scopes >= READING and reading.sees(bank.name) and ctx.principal.sees(bank.name)
    return is_open and not bank_ops.is_hidden(ctx, bank.name)


async def own(ctx: Ctx) -> Project | None:
    """The repository of the request's own bank."""
    return await named(ctx, bank_ops.wanted(ctx, None)[0])


async def named(ctx: Ctx, told: str) -> Project | None:
    """The repository of a bank, or the one that GitHub calls so."""

    async def body(tx: Tx) -> Project | None:
        if "/" not in told:
            bank = await banks.named(tx, ctx.org, told)
            repo = await repos.get(tx, ctx.org, bank.id) if bank else None
            return Project(bank, repo) if bank and repo else None
        for repo in await repos.named(tx, ctx.org, told):
            bank = await banks.of_id(tx, ctx.org, repo.bank)
            if bank and repo.head and _may_read(ctx, bank):
                return Project(bank, repo)
        return None

    found = await ctx.read(body)
    return found if found and found.head and _may_read(ctx, found.bank) else None


def _name(project: Project) -> str:
    return (project.repo.full_name if project.repo else "") or project.bank.name


async def search(ctx: Ctx, projects: Sequence[Project], wanted: Search) -> Found:
    """The lines of synced repositories that hold a text; those that make the thing of that name first."""
    if not projects:
        raise NotFound("No repository was synced to a bank that you may read. Sync one, or set KEEPSAKE_GITHUB_TOKEN.")
    found: list[tuple[Project, Line]] = []
    notes = [f"Only {MOST_REPOS} of {len(projects)} repositories were searched."] if len(projects) > MOST_REPOS else []
    try:
        async with asyncio.timeout(PATIENCE_S):
            for project in projects[:MOST_REPOS]:
                if (here := live.git_of(ctx, project)) is None:
                    notes.append(f"The files of {project.bank.name} are not on this machine.")
                    continue
                found += [(project, line) for line in await _grepped(here, project, wanted)]
    except TimeoutError:
        notes.append("There was no time to search everything.")
    found.sort(key=lambda one: -_worth(one[1].text, wanted.text))
    shown = await asyncio.to_thread(
        lambda: [_match(ctx, each, line, wanted.text) for each, line in found[: wanted.limit]]
    )
    is_cut = len(found) > wanted.limit or len(found) >= LOOKED or bool(notes)
    return Found(answered_by="synced", matches=shown, total=len(found), is_cut=is_cut, note=" ".join(notes) or None)


async def _grepped(here: "Git", project: Project, wanted: Search) -> "list[Line]":
    try:
        return await git_code.grep(here, project.head, wanted.text, wanted.under, LOOKED)
    except KeepsakeError as error:
        raise NotFound(f"{project.bank.name} cannot be searched at {project.head[:7]}: {error}") from error


def _worth(line: str, text: str) -> int:
    """A line that makes the thing before one that names it, its very letters before others."""
    at = line.find(text)
    if at < 0:
        return 0
    ends = at + len(text)
    is_word = not (line[at - 1 : at].isalnum() if at else False) and not line[ends : ends + 1].isalnum()
    return 1 + is_word + 2 * bool(is_word and _MAKES.search(line[:at]))


def _match(ctx: Ctx, project: Project, line: "Line", text: str) -> Match:
    at = max(0, line.text.lower().find(text.lower()) - SHOWN // 3) if len(line.text) > SHOWN else 0
    web = lookups.website(ctx, project)
    return Match(
        repo=_name(project),
        path=line.path,
        line=line.number,
        text=secrets.redacted(line.text[at : at + SHOWN].strip()).text,
        url=f"{web}/blob/{project.head}/{line.path}#L{line.number}" if web else None,
        revision=project.head,
    )


async def overview(ctx: Ctx, project: Project) -> Overview:
    """What the store and the files tell of a synced repository."""
    files = await ctx.read(lambda tx: repos.files(tx, ctx.org, project.bank.id))
    sizes: Counter[str] = Counter()
    for one in files.values():
        if language := _LANGUAGES.get(one.path.rpartition(".")[2].lower() if "." in one.path else ""):
            sizes[language] += one.size
    readme, notes = await _readme(ctx, project, list(files))
    repo = project.repo
    assert repo is not None, "only synced repositories are looked over"
    return Overview(
        answered_by="synced",
        repo=_name(project),
        bank=project.bank.name,
        description=project.bank.mission or project.bank.title,
        url=lookups.website(ctx, project) or None,
        branch=repo.branch,
        revision=project.head,
        updated_at=clock.iso(repo.last_synced_at) if repo.last_synced_at is not None else None,
        languages=dict(sizes.most_common()),
        readme=readme[: code_shapes.README],
        readme_is_cut=len(readme) > code_shapes.README,
        files=[FileSize(path=one.path, size=one.size) for one in list(files.values())[: code_shapes.FILES]],
        total_files=len(files),
        commits=await _commits(ctx, project),
        note=notes or None,
    )


async def _readme(ctx: Ctx, project: Project, paths: Sequence[str]) -> tuple[str, str]:
    """The README at the top, and why it is not told."""
    named = [path for path in paths if "/" not in path and path.lower().startswith("readme")]
    if not named:
        return "", ""
    best = min(named, key=lambda path: (not path.lower().endswith(".md"), path))
    try:
        return (await live.read(ctx, project, best, 1, live.WHOLE)).text, ""
    except live.Unreadable as error:
        return "", str(error)


async def _commits(ctx: Ctx, project: Project) -> list[Change]:
    async def body(tx: Tx) -> list[Change]:
        scope, ever = project.scope(ctx.now), Window(EARLIEST, LATEST)
        ids = await history.within(tx, scope, ever, ["commit"], code_shapes.COMMITS)
        told = {int(one.memory): one for one in await lookups.described(tx, ctx, project, ids)}
        return [
            Change(sha=told[id].key, subject=told[id].title, author=told[id].author, date=told[id].date)
            for id in ids
            if id in told
        ]

    return await ctx.read(body)


async def read(ctx: Ctx, project: Project, wanted: Wanted) -> Reading:
    """Files and folders at the synced revision, or at another that the repository on this machine has."""
    if wanted.ref in ("", project.head):
        items = [await _present(ctx, project, path, wanted) for path in wanted.paths]
        return Reading(answered_by="synced", repo=_name(project), ref=project.head, items=items)
    if (here := live.git_of(ctx, project)) is None:
        raise BadInput("Only the synced revision can be read from here. Leave `ref` out.")
    sha = await git_code.resolved(here, wanted.ref)
    items = await _at(here, sha, wanted)
    return Reading(answered_by="synced", repo=_name(project), ref=sha, items=items)


async def _present(ctx: Ctx, project: Project, path: str, wanted: Wanted) -> Item:
    file = await ctx.read(lambda tx: repos.file(tx, ctx.org, project.bank.id, path)) if path else None
    if file is not None:
        read = await live.read(ctx, project, path, 1, live.WHOLE)
        return code_shapes.shown_file(path, read.lines, wanted)
    files = await ctx.read(lambda tx: history.under(tx, project.scope(ctx.now), f"{path}/" if path else ""))
    if not files:
        raise NotFound(f"There is no file or folder {path!r} in {_name(project)} at {project.head[:7]}.")
    return code_shapes.shown_folder(path, _entries(path, [(one.path, one.kind, one.size) for one in files]))


async def _at(here: "Git", sha: str, wanted: Wanted) -> list[Item]:
    files = {one.path: one for one in await here.tree(sha)}
    items = []
    for path in wanted.paths:
        if (one := files.get(path)) is not None and one.kind == "file":
            if one.size > live.LARGEST:
                raise BadInput(f"{path} is too large to be read: {one.size} bytes.")
            content = await here.blob(one.blob, live.LARGEST)
            told = await asyncio.to_thread(live.lines_of, path, content)
            items.append(code_shapes.shown_file(path, told, wanted))
            continue
        below = f"{path}/" if path else ""
        held = [(each.path, each.kind, each.size) for each in files.values() if each.path.startswith(below)]
        if not held:
            raise NotFound(f"There is no file or folder {path!r} at {sha[:7]}.")
        items.append(code_shapes.shown_folder(path, _entries(path, held)))
    return items


def _entries(path: str, files: Sequence[tuple[str, str, int]]) -> list[Entry]:
    """What stands right below a folder, of all that is anywhere below it."""
    start = len(path) + 1 if path else 0
    folders: Counter[str] = Counter()
    plain: list[Entry] = []
    for full, kind, size in files:
        name, slash, _ = full[start:].partition("/")
        if slash:
            folders[name] += 1
        else:
            plain.append(Entry(name=name, kind=_KINDS.get(kind, "file"), size=size))
    return [*(Entry(name=name, kind="folder", size=count) for name, count in folders.items()), *plain]
