"""Code: searching, looking over and reading repositories, on GitHub or as they were synced to banks."""

from typing import Annotated

from pydantic import AfterValidator, Field

from keepsake.context import Ctx
from keepsake.core.errors import NotFound
from keepsake.core.models import Given
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean, Filled
from keepsake.ops import code_github, code_synced
from keepsake.ops.code_shapes import Found, Overview, Reading, Search, Wanted

#: Files and folders that one call reads.
MOST_PATHS = 10
NO_TOKEN = "Sync it first, or ask the operator for KEEPSAKE_GITHUB_TOKEN, with which GitHub is asked."


def _one_line(told: str) -> str:
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in told):
        raise ValueError("must be one line without control characters")
    return told


def _path(told: str) -> str:
    plain = _one_line(told).removeprefix("./").rstrip("/")
    if plain.startswith("/") or any(part in ("", ".", "..") for part in plain.split("/") if plain):
        raise ValueError("must be a path from the top of the repository, without `..`: src/main.py")
    return "" if plain == "." else plain


Line = Annotated[Filled, AfterValidator(_one_line)]
Path = Annotated[Clean, Field(max_length=1_000), AfterValidator(_path)]
RepoName = Annotated[Line, Field(max_length=201)]


class SearchCode(Given):
    """What to look for, and where."""

    query: Line = Field(
        max_length=256, description="A piece of code or a name, as it is written; on GitHub with its qualifiers."
    )
    repo: RepoName | None = Field(
        None, description="`owner/name`, or a bank that was synced from a repository; everywhere when left out."
    )
    path: Path | None = Field(None, description="Only below this folder, or in this file.")
    limit: int = Field(20, ge=1, le=50, description="Maximum number of results.")


@operation("code.search", effect=Effect.READ, scope="research:read")
async def search(ctx: Ctx, given: SearchCode) -> Found:
    """Find code by a text or a name in it: on GitHub, or in the repositories that were synced to banks."""
    wanted = Search(given.query, given.path or "", given.limit)
    where = await _where(ctx, given.repo)
    if isinstance(where, str) or (where is None and ctx.app.settings.github_token):
        return await code_github.search(ctx, where, wanted)
    return await code_synced.search(ctx, [where] if where else await code_synced.reached(ctx), wanted)


class OneRepo(Given):
    """Which repository."""

    repo: RepoName | None = Field(
        None, description="`owner/name`, or a bank that was synced from a repository; the request's own when left out."
    )


@operation("code.overview", effect=Effect.READ, scope="research:read")
async def overview(ctx: Ctx, given: OneRepo) -> Overview:
    """Tell what a repository is: description, languages, README, files and latest commits."""
    where = await _where(ctx, given.repo) or await _own(ctx)
    return await (code_github.overview(ctx, where) if isinstance(where, str) else code_synced.overview(ctx, where))


class ReadCode(OneRepo):
    """What to read."""

    paths: list[Path] = Field(
        default_factory=lambda: [""],
        min_length=1,
        max_length=MOST_PATHS,
        description="Files to read and folders to list, from the top of the repository; an empty one is the top.",
    )
    ref: RepoName | None = Field(None, description="A branch, tag or commit; the synced or default one when left out.")
    start_line: int = Field(1, ge=1, le=10_000_000, description="First line of each file.")
    end_line: int | None = Field(None, ge=1, le=10_000_000, description="Last line of each file.")


@operation("code.read", effect=Effect.READ, scope="research:read")
async def read(ctx: Ctx, given: ReadCode) -> Reading:
    """Read files of a repository, or list its folders, at a branch, tag or commit."""
    where = await _where(ctx, given.repo) or await _own(ctx)
    wanted = Wanted(given.paths, given.ref or "", given.start_line, given.end_line)
    return await (
        code_github.read(ctx, where, wanted) if isinstance(where, str) else code_synced.read(ctx, where, wanted)
    )


async def _where(ctx: Ctx, repo: str | None) -> "code_synced.Project | str | None":
    """A synced repository, the name of one on GitHub, or None where nothing was named."""
    if repo is None:
        return None
    if "/" in repo and ctx.app.settings.github_token:
        return repo
    found = await code_synced.named(ctx, repo)
    if found is None:
        instead = "Name one on GitHub as `owner/name`." if ctx.app.settings.github_token else NO_TOKEN
        raise NotFound(f"No repository {repo!r} was synced to a bank that you may read. {instead}")
    return found


async def _own(ctx: Ctx) -> "code_synced.Project":
    """The repository of the request's own bank."""
    if (found := await code_synced.own(ctx)) is None:
        raise NotFound("This bank was not synced from a repository. Name one: `owner/name`, or a bank that was.")
    return found
