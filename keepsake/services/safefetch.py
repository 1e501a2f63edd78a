"""Reading a small document at an address that a stranger chose: public hosts only, and nowhere else from there."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from keepsake.core.errors import Unavailable
from keepsake.core.lazy import lazy
from keepsake.services import addresses, endpoint

if TYPE_CHECKING:
    import httpx
else:
    httpx = lazy("httpx")

#: Bytes of a document, and seconds that everything together may take.
LARGEST, SECONDS = 64 * 1024, 5.0
Resolve = Callable[[str], Awaitable[list[str]]]
Fetch = Callable[[str], Awaitable[bytes]]


async def public(host: str) -> list[str]:
    """The addresses of a host, each of them public."""
    return await addresses.resolved(host, anywhere=False)


async def fetched(url: str, resolve: Resolve = public, transport: "httpx.AsyncBaseTransport | None" = None) -> bytes:
    """The document at an https address; redirects are not followed, and compression is not undone."""
    try:
        async with asyncio.timeout(SECONDS):
            return await _read(url, resolve, transport)
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise Unavailable(f"The document cannot be read ({type(error).__name__}).") from error


async def _read(url: str, resolve: Resolve, transport: "httpx.AsyncBaseTransport | None") -> bytes:
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or parts.port not in (None, 443) or "@" in parts.netloc:
        raise ValueError("another kind of address")
    found = (await resolve(parts.hostname))[0]
    # Connected to by the address that was checked, so that a second look at the name cannot lead elsewhere.
    pinned = httpx.URL(url).copy_with(host=found)
    headers = {"Host": parts.netloc, "Accept": "application/json", "Accept-Encoding": "identity"}
    certificates = await asyncio.to_thread(endpoint.certificates)
    client = httpx.AsyncClient(follow_redirects=False, trust_env=False, verify=certificates, transport=transport)
    named = {"sni_hostname": parts.hostname}
    async with client, client.stream("GET", pinned, headers=headers, extensions=named, timeout=SECONDS) as answer:
        return await whole(answer, LARGEST)


async def whole(answer: "httpx.Response", largest: int) -> bytes:
    """A document as it was sent, if it is there and small; it is not unfolded, which could make it large."""
    if answer.status_code != 200:
        raise ValueError(f"status {answer.status_code}")
    body = b""
    async for part in answer.aiter_raw():
        body += part
        if len(body) > largest:
            raise ValueError("too large")
    return body
