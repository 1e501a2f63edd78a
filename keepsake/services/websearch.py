"""Searching the web: through the one backend that the operator configured, in its own words, and nowhere else."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError

from keepsake.core.errors import Unavailable
from keepsake.core.lazy import lazy
from keepsake.core.loopback import is_loopback
from keepsake.services import endpoint, pinned, probes
from keepsake.settings import Settings

if TYPE_CHECKING:
    import httpx
else:
    httpx = lazy("httpx")

#: Bytes of an answer, and seconds that it may take.
LARGEST, SECONDS = 2 * 1024 * 1024, 15.0
LONGEST_TITLE, LONGEST_TEXT = 300, 1_000
_TAG = re.compile(r"<[^<>]{0,200}>")


@dataclass(frozen=True, slots=True)
class Found:
    """One result, in the order of the backend."""

    url: str
    title: str
    text: str


class _One(BaseModel):
    """A result in any of the three formats: SearXNG and Tavily tell a content, Brave a description."""

    url: str
    title: str | None = ""
    content: str | None = ""
    description: str | None = ""


class _Results(BaseModel):
    results: list[_One] = Field(default_factory=list)


class _Brave(BaseModel):
    #: Left out where nothing was found.
    web: _Results | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """A search engine behind its address."""

    name: str
    url: str
    api_key: str = field(default="", repr=False)

    async def search(self, query: str, limit: int) -> list[Found]:
        """Ask, and give what was found, best first."""
        try:
            async with asyncio.timeout(SECONDS):
                status, body = await self._asked(REQUESTS[self.name](self, query, limit))
        except TimeoutError as error:
            raise Unavailable(f"The search backend {self.name} did not answer within {SECONDS:g} s.") from error
        except (OSError, httpx.HTTPError) as error:
            # Without the cause: its text may quote what was sent.
            raise Unavailable(f"The search backend {self.name} {probes.told(error)}.") from None
        if status != 200:
            raise Unavailable(f"The search backend {self.name} answered with status {status}.{self._hint(status)}")
        return [_told(one) for one in self._results(body) if one.url.startswith(("http://", "https://"))][:limit]

    async def _asked(self, request: "httpx.Request") -> tuple[int, bytes]:
        certificates = await asyncio.to_thread(endpoint.certificates)
        near = is_loopback(urlsplit(self.url).hostname or "")
        # A redirect is not followed: it would carry the key and the question to another host.
        async with httpx.AsyncClient(follow_redirects=False, trust_env=not near, verify=certificates) as client:
            response = await client.send(request, stream=True)
            try:
                body = b""
                async for part in response.aiter_bytes(65_536):
                    body += part
                    if len(body) > LARGEST:
                        raise Unavailable(f"The search backend {self.name} answered with too much.")
                return response.status_code, body
            finally:
                await response.aclose()

    def _results(self, body: bytes) -> list[_One]:
        try:
            if self.name == "brave":
                return (_Brave.model_validate_json(body).web or _Results()).results
            return _Results.model_validate_json(body).results
        except ValidationError:
            raise Unavailable(f"The search backend {self.name} answered with something that is no answer.") from None

    def _hint(self, status: int) -> str:
        if self.name == "searxng" and status == 403:
            return " Allow JSON there: `search: formats: [html, json]` in its settings.yml."
        if status in (401, 403, 422):
            return " Check KEEPSAKE_SEARCH_API_KEY."
        return " Try again later." if status == 429 or status >= 500 else " Check KEEPSAKE_SEARCH_URL."


def _searxng(backend: Backend, query: str, limit: int) -> "httpx.Request":
    asked = {"q": query, "format": "json"}
    return httpx.Request("GET", f"{backend.url}/search", params=asked, headers=_headers(backend, bool(backend.api_key)))


def _brave(backend: Backend, query: str, limit: int) -> "httpx.Request":
    asked = {"q": query, "count": str(min(limit, 20)), "text_decorations": "false"}
    headers = _headers(backend, False) | {"X-Subscription-Token": backend.api_key}
    return httpx.Request("GET", f"{backend.url}/res/v1/web/search", params=asked, headers=headers)


def _tavily(backend: Backend, query: str, limit: int) -> "httpx.Request":
    asked = {"query": query, "max_results": min(limit, 20), "search_depth": "basic"}
    return httpx.Request("POST", f"{backend.url}/search", json=asked, headers=_headers(backend, True))


def _headers(backend: Backend, with_key: bool) -> dict[str, str]:
    headers = {"Accept": "application/json", "User-Agent": pinned.AGENT, "Accept-Encoding": "identity"}
    return headers | ({"Authorization": f"Bearer {backend.api_key}"} if with_key else {})


REQUESTS: "dict[str, Callable[[Backend, str, int], httpx.Request]]" = {
    "searxng": _searxng,
    "brave": _brave,
    "tavily": _tavily,
}
#: Where each is, if it is not the operator's own.
KNOWN = {"brave": "https://api.search.brave.com", "tavily": "https://api.tavily.com"}


def _told(one: _One) -> Found:
    text = _plain(one.content or one.description or "")
    return Found(one.url[:2_000], _plain(one.title or "")[:LONGEST_TITLE], text[:LONGEST_TEXT])


def _plain(text: str) -> str:
    return " ".join(unescape(_TAG.sub("", text)).split())


def configured(settings: Settings) -> Backend | None:
    """The backend that the settings name; None when they name none, and then nobody is ever asked."""
    name = settings.search_backend
    return Backend(name, settings.search_url or KNOWN[name], settings.search_api_key) if name else None
