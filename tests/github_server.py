"""GitHub for tests: speaks its REST API over real HTTP, in its shapes and headers, well or as badly as it is told."""

import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from tests import github_code
from tests.llm_server import Fails, Raw, Redirects, served

Json = dict[str, Any]
DOCS = "https://docs.github.com/rest"
REPOSITORY_ID = 1296269
BEGIN = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Closes:
    """Closes the connection in the middle of the answer."""


@dataclass(frozen=True)
class Links:
    """Answers well, but says that the next page is there."""

    to: str


Line = Fails | Raw | Redirects | Closes | Links


@dataclass(frozen=True)
class Asked:
    """One request, and the status it got."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    status: int


@dataclass
class Forge:
    """One repository with all that people wrote there, and what the server will do next."""

    url: str = ""
    full_name: str = "octo/keeper"
    #: What must be sent; empty for a public repository.
    token: str = ""
    #: What is left of the hour; None is without a limit.
    remaining: int | None = None
    reset: int = 0
    #: GitHub gives at most 100.
    most_per_page: int = 100
    has_issues: bool = True
    issues: dict[int, Json] = field(default_factory=dict)
    pulls: dict[int, Json] = field(default_factory=dict)
    comments: dict[int, list[Json]] = field(default_factory=dict)
    reviews: dict[int, list[Json]] = field(default_factory=dict)
    review_comments: dict[int, list[Json]] = field(default_factory=dict)
    releases: list[Json] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    about: Json = field(default_factory=dict)
    commits: list[Json] = field(default_factory=list)
    #: Issues that were deleted (410), or moved to another repository (its path).
    gone: dict[int, str] = field(default_factory=dict)
    #: Issues that their list leaves out for once.
    hidden: set[int] = field(default_factory=set)
    #: What happens when a path that contains the words is asked for, once.
    meanwhile: dict[str, Callable[[], object]] = field(default_factory=dict)
    faults: list[tuple[str, Line]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    _ticks: int = 0
    _ids: int = 1_000

    def will(self, *lines: Line, on: str = "") -> None:
        """Do these next, one for each request whose path contains the words; after the last one it answers well."""
        self.faults.extend((on, line) for line in lines)

    def paths(self, status: int = 0) -> list[str]:
        """What was asked, without its repository; those with a status only, where one is given."""
        roots = (f"/repos/{self.full_name}", f"/repositories/{REPOSITORY_ID}")
        told = [(one.path, one.status) for one in self.asked]
        for root in roots:
            told = [(path.removeprefix(root), got) for path, got in told]
        return [path for path, got in told if status in (0, got)]

    def tick(self) -> str:
        """The next minute."""
        self._ticks += 1
        return (BEGIN + timedelta(minutes=self._ticks)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def id(self) -> int:
        """A new id."""
        self._ids += 1
        return self._ids

    def issue(self, number: int, title: str, body: str | None, by: str = "ada", **more: object) -> Json:
        """Open an issue."""
        at = self.tick()
        made = self._item(number, title, body, by, at) | {"comments": 0, "active_lock_reason": None}
        self.issues[number] = made | more
        return self.issues[number]

    def pull(self, number: int, title: str, body: str | None, by: str = "ada", **more: object) -> Json:
        """Open a pull request; the list of issues tells of it too."""
        at = self.tick()
        made = self._item(number, title, body, by, at)
        page = {"html_url": made["html_url"].replace("/issues/", "/pull/")}
        more = {"merged_at": None, "draft": False, **more}
        self.pulls[number] = made | page | {"head": {"ref": "topic"}, "base": {"ref": "main"}} | more
        merged = {"url": f"{self.url}/pulls/{number}", "merged_at": more["merged_at"]}
        self.issues[number] = made | page | {"comments": 0, "pull_request": merged}
        return self.pulls[number]

    def comment(self, number: int, body: str | None, by: str | None = "bob") -> Json:
        """Comment on an issue or pull request."""
        made = self._authored(body, by) | {"created_at": self.touch(number)}
        self.comments.setdefault(number, []).append(made)
        self.issues[number]["comments"] += 1
        return made

    def review(self, number: int, body: str, by: str = "grace", state: str = "APPROVED") -> Json:
        """Review a pull request."""
        made = self._authored(body, by) | {"state": state, "submitted_at": self.touch(number)}
        self.reviews.setdefault(number, []).append(made)
        return made

    def review_comment(self, number: int, review: Json, path: str, line: int | None, body: str) -> Json:
        """Comment on a line of a pull request."""
        made = self._authored(body, review["user"]["login"]) | {
            "pull_request_review_id": review["id"],
            "path": path,
            "line": line,
            "original_line": line or 3,
            "diff_hunk": "@@ -1 +1 @@",
            "created_at": self.touch(number),
        }
        self.review_comments.setdefault(number, []).append(made)
        return made

    def release(self, tag: str, name: str | None, body: str | None, by: str = "ada", **more: object) -> Json:
        """Release something; the newest is listed first."""
        at = self.tick()
        made = {
            "id": self.id(),
            "tag_name": tag,
            "name": name,
            "body": body,
            "draft": False,
            "prerelease": False,
            "author": user(by),
            "html_url": f"https://github.com/{self.full_name}/releases/tag/{tag}",
            "created_at": at,
            "published_at": at,
            "assets": [],
        } | more
        self.releases.insert(0, made)
        return made

    def touch(self, number: int) -> str:
        """Something happened to it now."""
        at = self.tick()
        for held in (self.issues, self.pulls):
            if number in held:
                held[number]["updated_at"] = at
        return at

    def delete(self, number: int, moved_to: str = "") -> None:
        """Delete an issue, or transfer it."""
        del self.issues[number]
        self.pulls.pop(number, None)
        self.gone[number] = moved_to

    def _authored(self, body: str | None, by: str | None) -> Json:
        return {"id": self.id(), "user": user(by), "body": body, "author_association": "MEMBER"}

    def _item(self, number: int, title: str, body: str | None, by: str, at: str) -> Json:
        return self._authored(body, by) | {
            "number": number,
            "url": f"{self.url}/repos/{self.full_name}/issues/{number}",
            "repository_url": f"{self.url}/repos/{self.full_name}",
            "html_url": f"https://github.com/{self.full_name}/issues/{number}",
            "title": title,
            "state": "open",
            "locked": False,
            "labels": [],
            "assignees": [],
            "milestone": None,
            "created_at": at,
            "updated_at": at,
            "closed_at": None,
        }


def user(login: str | None) -> Json | None:
    """A simple user; None for one who has left."""
    if login is None:
        return None
    kind = "Bot" if login.endswith("[bot]") else "User"
    return {"login": login, "id": len(login), "type": kind, "site_admin": False, "url": f"{DOCS}/users/{login}"}


def refused(status: int, message: str) -> JSONResponse:
    return JSONResponse({"message": message, "documentation_url": DOCS, "status": str(status)}, status)


def answered(forge: Forge, request: Request) -> Response:
    """What GitHub says to a request that it understood."""
    what: str = request.path_params["what"]
    parts = what.split("/")
    if request.url.path == "/search/code":
        found = github_code.searched(forge, dict(request.query_params), request.headers["accept"])
        return JSONResponse(found) if found else refused(422, "Validation Failed")
    shown = [one for number, one in forge.issues.items() if number not in forge.hidden]
    listed = {"issues": shown, "pulls": [*forge.pulls.values()], "releases": forge.releases}
    if what in listed:
        return paged(forge, request, wanted(request, listed[what]))
    if parts[0] in ("", "contents", "git", "languages", "readme", "commits"):
        return described(forge, what)
    if parts[0] in ("issues", "pulls") and (number := int(parts[1])) in forge.gone:
        to = forge.gone[number]
        return RedirectResponse(f"{forge.url}{to}", 301) if to else refused(410, "This issue was deleted")
    if parts[0] in ("issues", "pulls"):
        return about(forge, request, parts)
    return refused(404, "Not Found")


def about(forge: Forge, request: Request, parts: list[str]) -> Response:
    number = int(parts[1])
    if len(parts) == 2 and number in forge.issues:
        return JSONResponse(forge.issues[number])
    below: dict[tuple[str, str], dict[int, list[Json]]] = {
        ("issues", "comments"): forge.comments,
        ("pulls", "reviews"): forge.reviews,
        ("pulls", "comments"): forge.review_comments,
    }
    if len(parts) == 3 and number in forge.issues and (parts[0], parts[2]) in below:
        return paged(forge, request, below[parts[0], parts[2]].get(number, []))
    return refused(404, "Not Found")


def wanted(request: Request, items: list[Json]) -> list[Json]:
    query = request.query_params
    state = query.get("state", "all" if "releases" in request.url.path else "open")
    items = [one for one in items if state == "all" or one.get("state") == state]
    items = [one for one in items if "since" not in query or one["updated_at"] >= query["since"]]
    if "sort" not in query:
        return items
    is_descending = query.get("direction", "desc") == "desc"
    key = {"updated": "updated_at", "created": "created_at"}[query["sort"]]
    return sorted(items, key=lambda one: (one[key], one["number"]), reverse=is_descending)


def paged(forge: Forge, request: Request, items: list[Json]) -> Response:
    query = dict(request.query_params)
    size = min(int(query.get("per_page", "30")), forge.most_per_page)
    number = int(query.get("page", "1"))
    shown = items[(number - 1) * size : number * size]
    headers = {}
    if number * size < len(items):
        # As GitHub does it: by the repository's number, whatever name it was asked by.
        what = request.path_params["what"]
        again = f"{forge.url}/repositories/{REPOSITORY_ID}/{what}?{urlencode(query | {'page': str(number + 1)})}"
        last = again.replace(f"page={number + 1}", f"page={-(-len(items) // size)}")
        headers["Link"] = f'<{again}>; rel="next", <{last}>; rel="last"'
    return JSONResponse(shown, headers=headers)


def tree(forge: Forge, ref: str) -> Response:
    told = [
        {"path": path, "mode": "100644", "type": "blob", "sha": hashlib.sha1(body).hexdigest(), "size": len(body)}
        for path, body in sorted(forge.files.items())
    ]
    return JSONResponse({"sha": ref, "url": f"{forge.url}/git/trees/{ref}", "tree": told, "truncated": False})


def contents(forge: Forge, path: str) -> Response:
    if path in forge.files:
        return Response(forge.files[path], media_type="application/vnd.github.raw+json; charset=utf-8")
    start = f"{path}/" if path else ""
    below: dict[str, Json] = {}
    for name, body in forge.files.items():
        if name.startswith(start):
            first, slash, _ = name[len(start) :].partition("/")
            kind, size = ("dir", 0) if slash else ("file", len(body))
            below[first] = {"type": kind, "name": first, "path": f"{start}{first}", "size": size}
    return JSONResponse([*below.values()]) if below else refused(404, "Not Found")


def described(forge: Forge, what: str) -> Response:
    """What a repository says of itself."""
    if what.startswith("git/trees/"):
        return tree(forge, what.removeprefix("git/trees/"))
    if what.startswith("contents"):
        return contents(forge, what.removeprefix("contents").removeprefix("/"))
    if what == "readme":
        return contents(forge, next((path for path in forge.files if path.lower().startswith("readme")), "readme"))
    if what == "commits" and not forge.commits:
        return refused(409, "Git Repository is empty.")
    return JSONResponse(forge.commits if what == "commits" else github_code.told(forge, what))


async def half() -> AsyncIterator[bytes]:
    yield b'[{"number": 1, "title": "half'
    raise ConnectionError("closed on purpose")


def faulty(forge: Forge, request: Request, line: Line) -> Response:
    if isinstance(line, Fails):
        failed = refused(line.status, line.message)
        failed.headers.update(line.headers)
        return failed
    if isinstance(line, Raw):
        return Response(line.body, media_type="application/json; charset=utf-8")
    if isinstance(line, Redirects):
        return RedirectResponse(line.to, 302)
    if isinstance(line, Closes):
        return StreamingResponse(half(), media_type="application/json")
    made = answered(forge, request)
    made.headers["Link"] = f'<{line.to}>; rel="next"'
    return made


def served_by(forge: Forge, request: Request) -> Response:
    sent = request.headers.get("authorization", "")
    if sent and forge.token and sent != f"Bearer {forge.token}":
        return refused(401, "Bad credentials")
    if forge.token and not sent:
        return refused(404, "Not Found")
    if forge.remaining == 0 and time.time() < forge.reset:
        return refused(403, "API rate limit exceeded for user ID 1.")
    for words in [words for words in forge.meanwhile if words in request.url.path]:
        forge.meanwhile.pop(words)()
    for place, (words, line) in enumerate(forge.faults):
        if words in request.url.path:
            del forge.faults[place]
            return faulty(forge, request, line)
    if request.path_params["what"] == "issues" and not forge.has_issues:
        return refused(410, "Issues are disabled for this repo")
    return answered(forge, request)


def with_headers(forge: Forge, request: Request, made: Response) -> Response:
    """What GitHub says beside every answer; an answer that the client has already costs nothing."""
    if made.status_code == 200 and not isinstance(made, StreamingResponse):
        etag = f'W/"{hashlib.sha256(bytes(made.body)).hexdigest()}"'
        if request.headers.get("if-none-match") == etag:
            made = Response(status_code=304)
        elif forge.remaining:
            forge.remaining -= 1
        made.headers["ETag"] = etag
    left = 4_999 if forge.remaining is None else forge.remaining
    told = {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": str(left), "X-RateLimit-Reset": str(forge.reset)}
    for name, value in {**told, "X-RateLimit-Resource": "core", "X-GitHub-Api-Version-Selected": "2022-11-28"}.items():
        made.headers.setdefault(name, value)
    return made


def application(forge: Forge) -> Starlette:
    async def asked(request: Request) -> Response:
        made = with_headers(forge, request, served_by(forge, request))
        forge.asked.append(Asked(request.url.path, dict(request.query_params), dict(request.headers), made.status_code))
        return made

    roots = (f"/repos/{forge.full_name}", f"/repositories/{REPOSITORY_ID}")
    # An issue that was moved is another repository's now.
    moved = forge._item(20, "Moved", "", "ada", forge.tick()) | {"repository_url": "https://elsewhere/repos/octo/other"}
    elsewhere = Route("/repositories/7/issues/20", lambda _: JSONResponse(moved))

    async def itself(request: Request) -> Response:
        request.path_params["what"] = ""
        return await asked(request)

    own = [Route(roots[0], itself), Route("/search/code", itself)]
    return Starlette(routes=[*own, *(Route(f"{root}/{{what:path}}", asked) for root in roots), elsewhere])


@contextmanager
def serving() -> Iterator[Forge]:
    """Serve a repository from a thread of its own."""
    forge = Forge()
    with served(application(forge)) as url:
        forge.url = url
        yield forge


def dumped(value: object) -> bytes:
    """JSON as it is signed and sent."""
    return json.dumps(value).encode()
