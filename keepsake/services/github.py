"""GitHub's REST API, read only: asked with patience and within its limits, its token sent nowhere else."""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import quote, urlencode, urljoin, urlsplit

from pydantic import BaseModel, TypeAdapter

from keepsake import __version__
from keepsake.core import clock
from keepsake.core.clock import HOUR, MINUTE, SECOND
from keepsake.core.errors import BadInput, NotFound, Unavailable
from keepsake.core.lazy import lazy
from keepsake.services import endpoint
from keepsake.services.github_items import Tree
from keepsake.settings import Settings

if TYPE_CHECKING:
    import httpx
else:
    httpx = lazy("httpx")

T = TypeVar("T")
Item = TypeVar("Item", bound=BaseModel)
#: Told until when GitHub wants to be left alone, and 0 when that is over.
Waiting = Callable[[int], Awaitable[None]]
VERSION = "2022-11-28"
JSON, RAW = "application/vnd.github+json", "application/vnd.github.raw+json"
#: A page of a hundred texts of 65,536 characters each, and what is told beside them; a tree is smaller.
LARGEST = 32 * 1024 * 1024
#: How much of a file is read where nothing else is wanted.
LARGEST_FILE = 1024 * 1024
PER_PAGE = 100
MOST_TRIES = 4
MOST_REDIRECTS = 3
#: Limits in a row after which a request is left for later, however short they are.
MOST_LIMITS = 5
#: Nobody is kept waiting for longer, whatever a server says.
LONGEST_LIMIT = 6 * HOUR
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
_NEXT = re.compile(r'<([^<>]*)>\s*;[^,<]*\brel="?next"?')
_SEGMENT = re.compile(r"(?:^|/)\.{1,2}(?:/|$)")


class Failed(Unavailable):
    """GitHub gave no answer that can be used; asked later, it may."""


class Refused(Unavailable):
    """GitHub understood and will not answer; somebody has to change something."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.answered = status


class Missing(NotFound):
    """GitHub knows no such thing, or does not show it."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        #: 410 is told of what was deleted, and of a list that was switched off.
        self.answered = status


class Limited(Unavailable):
    """GitHub wants to be left alone for longer than a request can wait."""

    def __init__(self, until: int, has_token: bool) -> None:
        more = "" if has_token else " A token in KEEPSAKE_GITHUB_TOKEN raises its limit from 60 to 5,000 an hour."
        super().__init__(f"GitHub takes no more requests before {clock.iso(until)}.{more}")
        self.until = until


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page of a list."""

    items: list[Item]
    etag: str
    #: Where the next page is; empty on the last one.
    next: str


@dataclass(frozen=True, slots=True)
class Content:
    """A file's bytes, from its beginning."""

    body: bytes
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, whatever it is."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool


async def _unreported(until: int) -> None:
    """Nobody listens."""


@dataclass(slots=True)
class Hub:
    """GitHub, or a GitHub Enterprise, behind its address."""

    base_url: str
    token: str = field(repr=False)
    #: Seconds that one request may take.
    timeout: float = 60.0
    #: The first pause before trying again; it doubles.
    pause_s: float = 1.0
    #: The longest that a limit is waited for here; beyond it Limited is raised.
    longest_wait_s: float = 90.0
    _rests_until: int = field(default=0, compare=False)

    @asynccontextmanager
    async def connected(self, waiting: Waiting = _unreported) -> "AsyncIterator[Connection]":
        """Keep a connection for many requests."""
        # Loading the client takes a while, which the event loop cannot spare.
        await asyncio.to_thread(getattr, httpx, "AsyncClient")
        verify = await asyncio.to_thread(endpoint.certificates)
        async with httpx.AsyncClient(follow_redirects=False, timeout=self.timeout, verify=verify) as client:
            yield Connection(self, client, waiting)

    def headers(self, accept: str, etag: str) -> dict[str, str]:
        """What every request says; the token goes only to addresses that `within` let pass."""
        told = {"Accept": accept, "User-Agent": f"keepsake/{__version__}", "X-GitHub-Api-Version": VERSION}
        if self.token:
            told["Authorization"] = f"Bearer {self.token}"
        if etag:
            told["If-None-Match"] = etag
        return told

    def within(self, link: str, at: str = "") -> str:
        """A link as a path below our address; one that leads elsewhere is not followed."""
        there, base = urlsplit(urljoin(self.base_url + at, link)), urlsplit(self.base_url)
        is_same = (there.scheme, there.netloc.lower()) == (base.scheme, base.netloc.lower())
        if not is_same or not there.path.startswith(f"{base.path}/") or _SEGMENT.search(there.path):
            raise Failed(f"{base.netloc} pointed to another address, which is not followed. Check KEEPSAKE_GITHUB_URL.")
        return there.path[len(base.path) :] + (f"?{there.query}" if there.query else "")

    async def rested(self, waiting: Waiting, until: int = 0) -> None:
        """Wait as long as GitHub wants, or say that it is too long."""
        self._rests_until = until = max(until, self._rests_until)
        left = until - clock.now()
        if left <= 0:
            return
        if left > self.longest_wait_s * SECOND:
            raise Limited(until, bool(self.token))
        await waiting(until)
        await asyncio.sleep(left / SECOND)
        await waiting(0)

    def noted(self, reply: Reply) -> None:
        """Remember that nothing is left, before the next request is refused for it."""
        reset = reply.headers.get("x-ratelimit-reset", "")
        if reply.headers.get("x-ratelimit-remaining") == "0" and re.fullmatch(r"\d{1,11}", reset):
            self._rests_until = _bounded((int(reset) + 1) * SECOND)


def _bounded(until: int) -> int:
    return min(until, clock.now() + LONGEST_LIMIT)


@lru_cache(maxsize=8)
def _made(base_url: str, token: str) -> Hub:
    return Hub(base_url, token)


def configured(settings: Settings) -> Hub:
    """The GitHub that the settings name; it is asked only about repositories that `may_ask` lets pass."""
    return _made(settings.github_url, settings.github_token)


def website(base_url: str) -> str:
    """The host under which people know the GitHub behind an API's address."""
    host = urlsplit(base_url).netloc.lower()
    # Enterprise servers have their API below their own name; in the cloud it has a name of its own.
    return host if urlsplit(base_url).path.startswith("/api/") else host.removeprefix("api.")


def may_ask(settings: Settings, full_name: str, remote: str) -> bool:
    """Whether a repository may be asked about: with a token, or when its address itself was given by someone."""
    if not _NAME.fullmatch(full_name):
        return False
    return bool(settings.github_token) or urlsplit(remote).netloc.lower() == website(settings.github_url)


def repository(full_name: str) -> str:
    """The path of a repository."""
    if not _NAME.fullmatch(full_name) or _SEGMENT.search(full_name):
        raise BadInput(f"{full_name!r} is no repository of GitHub; one is called OWNER/NAME.")
    return f"/repos/{full_name}"


def listing(full_name: str, what: str, **query: str) -> str:
    """The path of the first page of a list."""
    return f"{repository(full_name)}/{what}?{urlencode({**query, 'per_page': str(PER_PAGE)})}"


@dataclass(slots=True)
class Connection:
    """A conversation with GitHub."""

    hub: Hub
    client: "httpx.AsyncClient"
    waiting: Waiting

    async def page(self, kind: type[Item], path: str, etag: str = "") -> Page[Item] | None:
        """A page of a list; None when it is still what the etag stands for, which costs nothing."""
        return await self._asked(path, JSON, etag, lambda reply, at: self._paged(kind, reply, at))

    def _paged(self, kind: type[Item], reply: Reply, at: str) -> Page[Item]:
        items = _read(kind).validate_json(_whole(reply))
        link = _NEXT.search(reply.headers.get("link", ""))
        return Page(items, reply.headers.get("etag", ""), self.hub.within(link[1], at) if link else "")

    async def all(self, kind: type[Item], path: str, most: int) -> list[Item]:
        """Every item of a list that is short, or its first ones."""
        found: list[Item] = []
        while path and len(found) < most:
            page = await self.page(kind, path)
            assert page is not None, "without an etag nothing is unchanged"
            found, path = [*found, *page.items], page.next
        return found[:most]

    async def one(self, kind: type[Item], path: str, accept: str = JSON) -> Item:
        """One thing."""
        made = await self._asked(path, accept, "", lambda reply, _: kind.model_validate_json(_whole(reply)))
        assert made is not None, "without an etag nothing is unchanged"
        return made

    async def contents(self, full_name: str, path: str, ref: str, limit: int = LARGEST_FILE) -> Content:
        """A file at a revision, no more of it than the limit."""
        if not path or _SEGMENT.search(path):
            raise BadInput(f"{path!r} is no path in a repository.")
        return await self.raw(f"{repository(full_name)}/contents/{quote(path)}?{urlencode({'ref': ref})}", path, limit)

    async def raw(self, asked: str, path: str, limit: int = LARGEST_FILE) -> Content:
        """The bytes behind a path of the API, no more than the limit; `path` is what a complaint calls it."""
        made = await self._asked(asked, RAW, "", lambda reply, _: _content(reply, path), limit)
        assert made is not None, "without an etag nothing is unchanged"
        return made

    async def tree(self, full_name: str, ref: str) -> Tree:
        """Every file at a revision; `truncated` where there are more than GitHub tells."""
        return await self.one(Tree, f"{repository(full_name)}/git/trees/{quote(ref, safe='')}?recursive=1")

    async def _asked(
        self, path: str, accept: str, etag: str, read: Callable[[Reply, str], T], limit: int = LARGEST
    ) -> T | None:
        """Ask until there is an answer that can be read, for a while; None when nothing has changed."""
        limits, fault = 0, ""
        tries = 0
        while tries < MOST_TRIES:
            await self.hub.rested(self.waiting)
            try:
                reply, at = await self._followed(path, self.hub.headers(accept, etag), limit)
                if reply.status == 304 and etag:
                    return None
                if reply.status == 200:
                    return read(reply, at)
                fault = f"answered with status {reply.status}"
            except (httpx.RequestError, TimeoutError) as error:
                # Without the cause: a proxy's text may quote what was sent.
                reply, fault = None, f"cannot be reached, or closed in the middle ({type(error).__name__})"
            except ValueError:
                reply, fault = None, "answered with something that is not what it should be"
            if reply is not None and (until := _limit(reply, limits)):
                limits += 1
                await self.hub.rested(self.waiting, until if limits < MOST_LIMITS else until + 2 * MINUTE)
                continue
            if reply is not None and reply.status < 500:
                raise _refusal(reply, bool(self.hub.token))
            tries += 1
            if tries < MOST_TRIES:
                await asyncio.sleep(self.hub.pause_s * 2 ** (tries - 1) * (0.75 + random.random() / 2))
        raise Failed(f"{urlsplit(self.hub.base_url).netloc} {fault}, {MOST_TRIES} times.")

    async def _followed(self, path: str, headers: dict[str, str], limit: int) -> tuple[Reply, str]:
        """One answer, and the path that it came from; a repository that was renamed is followed to its new name."""
        for _ in range(MOST_REDIRECTS + 1):
            async with asyncio.timeout(self.hub.timeout):
                reply = await self._once(path, headers, limit)
            self.hub.noted(reply)
            if reply.status not in (301, 302, 307, 308):
                return reply, path
            path = self.hub.within(reply.headers.get("location", ""), path)
        raise Failed(f"{urlsplit(self.hub.base_url).netloc} sends us from one address to the next, and back.")

    async def _once(self, path: str, headers: dict[str, str], limit: int) -> Reply:
        parts: list[bytes] = []
        size = 0
        async with self.client.stream("GET", self.hub.base_url + path, headers=headers) as response:
            async for part in response.aiter_bytes():
                parts.append(part[: limit - size])
                size += len(part)
                if size > limit:
                    break
            return Reply(response.status_code, response.headers, b"".join(parts), size > limit)


@cache
def _read(kind: type[Item]) -> TypeAdapter[list[Item]]:
    return TypeAdapter(list[kind])  # type: ignore[valid-type]  # a list of whatever is asked for


def _whole(reply: Reply) -> bytes:
    if reply.is_cut:
        raise Refused(f"GitHub's answer has more than {LARGEST:,} bytes.", reply.status)
    return reply.body


def _content(reply: Reply, path: str) -> Content:
    if reply.headers.get("content-type", "").startswith("application/json"):
        raise Missing(f"{path} is no file; it may be a folder.", reply.status)
    return Content(reply.body, reply.is_cut)


def _limit(reply: Reply, before: int) -> int | None:
    """Until when a limit lasts that this answer tells of; None when it is of another kind."""
    if reply.status not in (403, 429):
        return None
    after, reset = reply.headers.get("retry-after", ""), reply.headers.get("x-ratelimit-reset", "")
    if re.fullmatch(r"\d{1,8}", after):
        return _bounded(clock.now() + max(1, int(after)) * SECOND)
    if reply.headers.get("x-ratelimit-remaining") == "0" and re.fullmatch(r"\d{1,11}", reset):
        return _bounded(max((int(reset) + 1) * SECOND, clock.now() + SECOND))
    # The secondary limit may come without a header; a minute, and then longer, is what GitHub asks for.
    is_limit = reply.status == 429 or b"secondary rate limit" in reply.body.lower()
    return _bounded(clock.now() + MINUTE * 2**before) if is_limit else None


def _refusal(reply: Reply, has_token: bool) -> Refused | Missing:
    """What to do about an answer that will not change by itself."""
    status = reply.status
    if status == 401:
        return Refused("GitHub does not take the token. Make a new one, and set KEEPSAKE_GITHUB_TOKEN.", status)
    if status == 403:
        return Refused(_forbidden(reply, has_token), status)
    if status in (404, 410, 451):
        look = "which it may see" if has_token else "or set KEEPSAKE_GITHUB_TOKEN if it is private"
        return Missing(f"GitHub shows no such thing ({status}). Check the repository's name, {look}.", status)
    return Refused(f"GitHub refused with status {status}.", status)


def _forbidden(reply: Reply, has_token: bool) -> str:
    if not has_token:
        return "GitHub forbids this without a token (403). Set KEEPSAKE_GITHUB_TOKEN."
    if "x-github-sso" in reply.headers:
        return "GitHub wants the token to be authorised for the organisation's single sign-on (403)."
    told = reply.headers.get("x-accepted-github-permissions") or reply.headers.get("x-accepted-oauth-scopes", "")
    needed = f" It needs {told}." if re.fullmatch(r"[a-z_:=;, ]{1,200}", told) else ""
    return f"GitHub forbids this to the token (403).{needed} Give it the right to read the repository."
