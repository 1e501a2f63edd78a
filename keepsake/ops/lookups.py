"""Lookups that a question about a project asks for: by path, time, version, number and name, beside retrieval."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from keepsake.context import Ctx
from keepsake.core import evidence
from keepsake.core.evidence import DEEDS, Evidence
from keepsake.core.inquiry import Inquiry, tells_end
from keepsake.core.lazy import lazy
from keepsake.core.when import EARLIEST, LATEST, Window
from keepsake.ops import views
from keepsake.ops.live import Project
from keepsake.store import history, memories
from keepsake.store.engine import Tx
from keepsake.store.filters import Filter
from keepsake.store.memories import Memory

if TYPE_CHECKING:
    from keepsake.services import github
else:
    github = lazy("keepsake.services.github")

#: Files that words may mean, and deeds that are read to tell who did them.
FILES, READ = 500, 1_000
#: Files that a word may mean and still name one thing.
FEW = 12
#: Commits, pull requests and issues that one question may name.
NAMED = 12
#: Commits in which plain words may stand together and still mean one thing.
RARE = 40
ALWAYS = Window(EARLIEST, LATEST)
_MENTIONED = re.compile(r"(?<![\w/&])#(\d{1,7})\b|\b(?:pull|issues)/(\d{1,7})\b")
_FROM_TO = re.compile(r"\b(?:between|from)\b", re.IGNORECASE)
_SINCE = re.compile(r"\b(?:since|after)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Looked:
    """What the lookups of one project found."""

    paths: tuple[str, ...] = ()
    window: Window | None = None
    #: What the question names outright.
    named: tuple[Evidence, ...] = ()
    #: What was done to the files, or in the time, that it names; the latest first.
    done: tuple[Evidence, ...] = ()
    #: With what the asked thing may have come or gone, the likeliest first.
    turns: tuple[Evidence, ...] = ()
    #: What was last done to files that are named as paths, where nothing was in that time.
    last: Evidence | None = None


async def up(tx: Tx, ctx: Ctx, project: Project, inquiry: Inquiry) -> Looked:
    """Look up what a question names."""
    scope = project.scope(ctx.now)
    paths = await _paths(tx, scope, inquiry)
    window = inquiry.windows[0] if inquiry.windows else await _released(tx, scope, inquiry)
    named = await _named(tx, scope, inquiry)
    done = await _done(tx, scope, inquiry, paths, window)
    turns = await _turns(tx, scope, inquiry, paths) if inquiry.kind in ("introduced", "removed") else []
    last = await _last(tx, scope, inquiry, paths) if not done else []
    told = {one.memory: one for one in await described(tx, ctx, project, [*named, *done, *turns, *last])}

    def of(ids: Iterable[int]) -> tuple[Evidence, ...]:
        return tuple(told[str(id)] for id in ids if str(id) in told)

    # Files that words alone may mean, and that nothing was done to, are not what was meant.
    is_meant = bool(inquiry.paths or done or turns)
    return Looked(tuple(paths if is_meant else ()), window, of(named), of(done), of(turns), next(iter(of(last)), None))


async def described(tx: Tx, ctx: Ctx, project: Project, ids: Sequence[int]) -> list[Evidence]:
    """Memories as evidence, with what commits changed and where everything can be looked at."""
    rows = await memories.fetched(tx, ctx.org, project.bank.id, list(dict.fromkeys(ids)))
    kept = [rows[id] for id in dict.fromkeys(ids) if id in rows]
    shown = await views.described(tx, project.bank, kept)
    web = website(ctx, project)
    return [addressed(web, _detailed(evidence.of_memory(one), row)) for one, row in zip(shown, kept, strict=True)]


def _detailed(one: Evidence, row: Memory) -> Evidence:
    files, changes = (tuple(memories.lines(row.parts, name)) for name in ("files_modified", "changes"))
    return replace(one, files=files, changes=changes or files, is_merge=row.metadata.get("merge") is True)


def website(ctx: Ctx, project: Project) -> str:
    """The address of the project on GitHub; empty where it is not there."""
    if project.repo is None or not project.repo.full_name:
        return ""
    return f"https://{github.website(ctx.app.settings.github_url)}/{project.repo.full_name}"


def addressed(web: str, one: Evidence) -> Evidence:
    """Evidence with its address, where what GitHub told of it has none."""
    if not web or one.url:
        return one
    lines = f"#L{one.start}-L{one.end}" if one.start else ""
    pages = {"commit": f"commit/{one.key}", "tag": f"tree/{one.key}", "pull": f"pull/{one.key.rpartition('/')[2]}"}
    pages |= {"issue": f"issues/{one.key.rpartition('/')[2]}"}
    page = f"blob/{one.revision}/{one.path}{lines}" if one.path and one.revision else pages.get(one.kind, "")
    return replace(one, url=f"{web}/{page.replace(' ', '%20')}") if page else one


async def _paths(tx: Tx, scope: Filter, inquiry: Inquiry) -> list[str]:
    """The files that a question means; a path that is gone is still one that commits have touched."""
    if inquiry.paths:
        return await history.paths(tx, scope, inquiry.paths, FILES) or list(inquiry.paths)
    if inquiry.kind in ("other", "why"):
        return []
    said = [name.rpartition(".")[2] for name in inquiry.identifiers] or [
        form for word in inquiry.words for form in (word, word.removesuffix("s"))
    ]
    joined = [f"{one}{sign}{two}" for one, two in pairwise(said) for sign in "_-"]
    # Two words that name one file together say more than each alone.
    return await history.paths(tx, scope, joined, FILES) or await history.paths(tx, scope, said, FILES)


async def _named(tx: Tx, scope: Filter, inquiry: Inquiry) -> list[int]:
    keys = [key for begin in inquiry.commits for key in await history.commits(tx, scope, begin, 3)]
    versions = [f"{start}{version}" for version in inquiry.versions for start in ("", "release/")]
    versions += [f"{start}v{version}" for version in inquiry.versions for start in ("", "release/")]
    found = await history.under_keys(tx, scope, ["commit"], keys) if keys else []
    if inquiry.tickets:
        found += await history.under_keys(tx, scope, ["pull", "issue"], inquiry.tickets)
    if versions:
        found += await history.under_keys(tx, scope, ["tag", "release"], versions)
    return found[:NAMED]


async def _released(tx: Tx, scope: Filter, inquiry: Inquiry) -> Window | None:
    """The time that versions mean: since one, between two, or that of one, from the one before it."""
    if not inquiry.versions or inquiry.kind != "changed":
        return None
    made = await history.versions(tx, scope)
    at = [made[key] for one in inquiry.versions for key in (one, f"v{one}") if key in made]
    if not at:
        return None
    if len(at) > 1:
        return Window(min(at) + 1, max(at) + 1)
    if _SINCE.search(inquiry.question):
        return Window(at[0] + 1, LATEST)
    return Window(max((one for one in made.values() if one < at[0]), default=EARLIEST) + 1, at[0] + 1)


async def _done(tx: Tx, scope: Filter, inquiry: Inquiry, paths: Sequence[str], window: Window | None) -> list[int]:
    if inquiry.kind not in ("who", "changed"):
        return []
    time = window or ALWAYS
    if paths:
        return [touch.memory for touch in await history.touching(tx, scope, paths, time, READ)]
    is_all = not inquiry.terms and (window is not None or inquiry.kind == "changed")
    return await history.within(tx, scope, time, sorted(DEEDS), READ) if is_all else []


async def _last(tx: Tx, scope: Filter, inquiry: Inquiry, paths: Sequence[str]) -> list[int]:
    if inquiry.kind != "changed" or not inquiry.paths:
        return []
    return [touch.memory for touch in await history.touching(tx, scope, paths, ALWAYS, 1)]


async def _turns(tx: Tx, scope: Filter, inquiry: Inquiry, paths: Sequence[str]) -> list[int]:
    """With what a thing came or went, as far as files and messages tell."""
    ends = inquiry.kind == "removed"
    # A word may be the name of a whole folder; what happened to that says nothing of it.
    is_meant = bool(inquiry.paths) or (not ends and len(paths) <= FEW)
    order = history.touching if ends else history.first_touching
    touch = await order(tx, scope, paths, ALWAYS, 1) if is_meant else []
    at = {one.memory: one.at for one in touch}
    names = inquiry.identifiers or ((" ".join(inquiry.words),) if inquiry.words else ())
    for name in names[:2]:
        rows = await memories.fetched(tx, scope.org, scope.bank, await history.speaking(tx, scope, name))
        told = {id: row.said_at for id, row in rows.items() if _speaks(row, name, inquiry)}
        # Plain words that very many commits share name nothing that could have come or gone.
        at |= told if inquiry.identifiers or len(told) <= RARE else {}
    return sorted(at, key=lambda id: (at[id], id), reverse=ends)[:1]


def _speaks(row: Memory, name: str, inquiry: Inquiry) -> bool:
    """Whether a deed speaks of a name as it is written; of words, in whatever form."""
    if row.subtype != "commit" or row.superseded_at is not None or row.state != "live":
        return False
    if inquiry.kind == "removed" and not tells_end(row.text):
        return False
    return name not in inquiry.identifiers or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", row.text) is not None


async def mentioned(tx: Tx, ctx: Ctx, project: Project, one: Evidence) -> list[Evidence]:
    """The pull requests and issues that a commit names."""
    numbers = list(dict.fromkeys(a or b for a, b in _MENTIONED.findall(one.text)))[:4]
    keys = [f"{kind}/{number}" for number in numbers for kind in ("pr", "issue")]
    if not keys:
        return []
    ids = await history.under_keys(tx, project.scope(ctx.now), ["pull", "issue"], keys)
    return await described(tx, ctx, project, ids[:NAMED])


async def commits(tx: Tx, ctx: Ctx, project: Project, names: Sequence[str]) -> list[Evidence]:
    """Commits by their full names, in this order; what was not read from the repository is left out."""
    ids = await history.under_keys(tx, project.scope(ctx.now), ["commit"], names)
    told = {one.key: one for one in await described(tx, ctx, project, ids)}
    return [told[name] for name in names if name in told]
