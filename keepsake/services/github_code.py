"""Code on GitHub: what its search finds, what it tells of a repository, and what a folder holds."""

from urllib.parse import quote, urlencode

from pydantic import BaseModel, Field, RootModel

from keepsake.services import github
from keepsake.services.github import Connection
from keepsake.services.github_items import Link, Moment, Text

MATCHES = "application/vnd.github.text-match+json"


class Fragment(BaseModel):
    """A few lines that hold what was looked for."""

    fragment: Text = ""


class Where(BaseModel):
    """The repository of a file."""

    full_name: str


class File(BaseModel):
    """A file that holds what was looked for."""

    path: str
    html_url: Link = ""
    repository: Where
    text_matches: list[Fragment] = []


class Files(BaseModel):
    """What a search found."""

    total_count: int = Field(ge=0)
    incomplete_results: bool = False
    items: list[File]


class License(BaseModel):
    """A license by its short name."""

    spdx_id: Text = ""


class About(BaseModel):
    """What GitHub tells of a repository."""

    full_name: str
    description: Text = ""
    html_url: Link = ""
    default_branch: Text = ""
    private: bool = False
    archived: bool = False
    stargazers_count: int = 0
    forks_count: int = 0
    open_issues_count: int = 0
    topics: list[str] = []
    license: License | None = None
    pushed_at: Moment = ""


class Signature(BaseModel):
    """Who made a commit, and when."""

    name: Text = ""
    date: Moment = ""


class Told(BaseModel):
    """What a commit says."""

    message: Text = ""
    author: Signature | None = None


class Commit(BaseModel):
    """A commit."""

    sha: str
    html_url: Link = ""
    commit: Told


class Entry(BaseModel):
    """A file, folder (`dir`), link or submodule of a folder."""

    name: str
    type: str
    size: int = 0


async def search(hub: Connection, query: str, limit: int) -> Files:
    """Files whose content or path fits a query, best first."""
    return await hub.one(Files, f"/search/code?{urlencode({'q': query, 'per_page': str(limit)})}", MATCHES)


async def about(hub: Connection, full_name: str) -> About:
    """What GitHub tells of a repository."""
    return await hub.one(About, github.repository(full_name))


async def languages(hub: Connection, full_name: str) -> dict[str, int]:
    """Bytes of each language."""
    return (await hub.one(RootModel[dict[str, int]], f"{github.repository(full_name)}/languages")).root


async def commits(hub: Connection, full_name: str, limit: int) -> list[Commit]:
    """The latest commits of the default branch."""
    return (await hub.one(RootModel[list[Commit]], f"{github.repository(full_name)}/commits?per_page={limit}")).root


async def readme(hub: Connection, full_name: str, limit: int) -> github.Content:
    """The README, whatever it is called."""
    return await hub.raw(f"{github.repository(full_name)}/readme", "README", limit)


async def folder(hub: Connection, full_name: str, path: str, ref: str) -> list[Entry]:
    """What a folder holds; the top one for an empty path."""
    place = f"{github.repository(full_name)}/contents/{quote(path)}".rstrip("/")
    asked = f"{place}?{urlencode({'ref': ref})}" if ref else place
    return (await hub.one(RootModel[list[Entry]], asked)).root
