"""Code on GitHub, asked with the token that the operator configured; its limits are told, not waited for."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from keepsake.context import Ctx
from keepsake.core import secrets
from keepsake.core.errors import BadInput, NotFound, Unavailable
from keepsake.core.lazy import lazy
from keepsake.ops import code_shapes, live
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

if TYPE_CHECKING:
    from keepsake.services import github, github_code
    from keepsake.services.github import Connection
else:
    github = lazy("keepsake.services.github")
    github_code = lazy("keepsake.services.github_code")

T = TypeVar("T")
#: Characters of the lines around a match.
SHOWN = 600
_KINDS: dict[str, EntryKind] = {"dir": "folder", "symlink": "link", "submodule": "module"}


@asynccontextmanager
async def _hub(ctx: Ctx) -> "AsyncIterator[Connection]":
    """A connection for someone who waits for the answer."""
    asked = replace(
        github.configured(ctx.app.settings),
        longest_wait_s=live.PATIENCE_S,
        timeout=live.ANSWER_S,
        pause_s=live.PAUSE_S,
    )
    async with asked.connected() as hub:
        yield hub


async def search(ctx: Ctx, repo: str | None, wanted: Search) -> Found:
    """Files of GitHub that hold a text, best first."""
    if repo:
        github.repository(repo)
    if any(letter in '"\\' for letter in wanted.under):
        raise BadInput("`path`: GitHub takes no quotes and backslashes in a path.")
    narrowed = [f"repo:{repo}"] if repo else []
    narrowed += [f'path:"{wanted.under}"'] if wanted.under else []
    async with _hub(ctx) as hub:
        try:
            found = await github_code.search(hub, " ".join([wanted.text, *narrowed]), wanted.limit)
        except github.Refused as error:
            if error.answered == 422:
                raise BadInput("GitHub cannot search for that. Use other words, or another repository.") from error
            raise
    matches = [
        Match(
            repo=one.repository.full_name,
            path=one.path,
            text=secrets.redacted("\n…\n".join(each.fragment for each in one.text_matches)[:SHOWN]).text,
            url=one.html_url or None,
        )
        for one in found.items[: wanted.limit]
    ]
    is_cut = found.incomplete_results or found.total_count > len(matches)
    note = "GitHub had no time to search everything." if found.incomplete_results else None
    return Found(answered_by="github", matches=matches, total=found.total_count, is_cut=is_cut, note=note)


async def overview(ctx: Ctx, repo: str) -> Overview:
    """What GitHub tells of a repository; parts that it does not tell are left out."""
    notes: list[str] = []
    async with _hub(ctx) as hub:
        about = await github_code.about(hub, repo)
        name = about.full_name
        languages = await _else(github_code.languages(hub, name), {}, "languages", notes)
        none = github.Content(b"", False)
        readme = await _else(github_code.readme(hub, name, 4 * code_shapes.README), none, "README", notes)
        commits = await _else(github_code.commits(hub, name, code_shapes.COMMITS), [], "commits", notes)
        tree = await _else(hub.tree(name, about.default_branch or "HEAD"), None, "files", notes)
    files = [one for one in tree.tree if one.type == "blob"] if tree else []
    if tree is not None and tree.truncated:
        notes.append("GitHub does not tell all files.")
    text = secrets.in_lines(readme.body.decode("utf-8", "replace"))
    return Overview(
        answered_by="github",
        repo=name,
        description=about.description,
        url=about.html_url or None,
        branch=about.default_branch,
        revision=commits[0].sha if commits else None,
        updated_at=about.pushed_at or None,
        stars=about.stargazers_count,
        forks=about.forks_count,
        open_issues=about.open_issues_count,
        topics=about.topics,
        license=about.license.spdx_id or None if about.license else None,
        is_private=about.private,
        is_archived=about.archived,
        languages=dict(sorted(languages.items(), key=lambda one: -one[1])),
        readme=text[: code_shapes.README],
        readme_is_cut=readme.is_cut or len(text) > code_shapes.README,
        files=[FileSize(path=one.path, size=one.size) for one in files[: code_shapes.FILES]],
        total_files=len(files),
        commits=[_change(one) for one in commits],
        note=" ".join(notes) or None,
    )


async def _else(asked: Awaitable[T], instead: T, what: str, notes: list[str]) -> T:
    """A part of the whole; what GitHub does not have or show is no reason to tell nothing."""
    try:
        return await asked
    except (NotFound, Unavailable) as error:
        is_absent = isinstance(error, NotFound) or (isinstance(error, github.Refused) and error.answered == 409)
        if not is_absent:
            notes.append(f"No {what}: {error}")
        return instead


def _change(one: "github_code.Commit") -> Change:
    author = one.commit.author
    return Change(
        sha=one.sha,
        subject=secrets.redacted(one.commit.message.partition("\n")[0][:300]).text,
        author=author.name if author else "",
        date=author.date if author else "",
    )


async def read(ctx: Ctx, repo: str, wanted: Wanted) -> Reading:
    """Files and folders at a branch, tag or commit."""
    async with _hub(ctx) as hub:
        ref = wanted.ref or (await github_code.about(hub, repo)).default_branch
        items = [await _item(hub, repo, path, replace(wanted, ref=ref)) for path in wanted.paths]
    return Reading(answered_by="github", repo=repo, ref=ref, items=items)


async def _item(hub: "Connection", repo: str, path: str, wanted: Wanted) -> Item:
    ref = wanted.ref
    if not path:
        return await _folder(hub, repo, path, ref)
    try:
        content = await hub.contents(repo, path, ref, live.LARGEST)
    except github.Missing as error:
        if error.answered == 200:
            return await _folder(hub, repo, path, ref)
        raise NotFound(f"GitHub shows no {path!r} in {repo} at {ref!r}. Check path, name and ref.") from error
    told = await asyncio.to_thread(live.lines_of, path, content.body)
    return code_shapes.shown_file(path, told, wanted, content.is_cut)


async def _folder(hub: "Connection", repo: str, path: str, ref: str) -> Item:
    try:
        held = await github_code.folder(hub, repo, path, ref)
    except github.Missing as error:
        raise NotFound(f"GitHub shows no {repo} with {ref!r}. Check its name and the ref.") from error
    entries = [Entry(name=one.name, kind=_KINDS.get(one.type, "file"), size=one.size) for one in held]
    return code_shapes.shown_folder(path, entries)
