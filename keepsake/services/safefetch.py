"""Reading at an address that a stranger chose: public hosts only, and from there only to others that are."""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from keepsake.core import target as targets
from keepsake.core.errors import BadInput, Unavailable
from keepsake.core.lazy import lazy
from keepsake.core.target import Target
from keepsake.services import addresses, endpoint, pinned, probes

if TYPE_CHECKING:
    import httpx
else:
    httpx = lazy("httpx")

#: Bytes of a small document, and seconds that everything together may take.
LARGEST, SECONDS = 64 * 1024, 5.0
MOST_REDIRECTS, MOST_ADDRESSES = 5, 3
PORTS = {"http": 80, "https": 443}
#: Where a browser goes on to another address with GET.
REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: What is asked for and how it may be packed: pages of every kind, or a small document as it is.
PAGES = ("text/html,application/xhtml+xml,application/pdf,application/json,text/*;q=0.9,*/*;q=0.1", "gzip, deflate")
DOCUMENT = ("application/json", "identity")
#: The last part of a host's name that some resolvers take for a number, and the whole for an address.
_NUMERIC = re.compile(r"0x[0-9a-f]*|\d+")

Resolve = Callable[[str], Awaitable[list[str]]]
Fetch = Callable[[str], Awaitable[bytes]]
#: Asked before every request; it raises where the request must not be made.
Check = Callable[[Target], Awaitable[None]]


async def anywhere(host: str) -> list[str]:
    """The addresses of a host, whatever they are."""
    return await addresses.resolved(host, anywhere=True)


async def public(host: str) -> list[str]:
    """The addresses of a host, each of them public."""
    return await addresses.resolved(host, anywhere=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host answered in the end."""

    url: str
    status: int
    content_type: str
    body: bytes
    #: Whether the body is all that there was to read.
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Reader:
    """How pages are read: who may be private or listen elsewhere, and how a name becomes addresses."""

    #: Hosts, or hosts with a port, that the operator allows.
    allowed: frozenset[str] = frozenset()
    resolve: Resolve = anywhere
    transport: "httpx.AsyncBaseTransport | None" = None

    async def read(self, url: str, largest: int, check: Check | None = None) -> Answer:
        """What is at an address, followed where it moved to; every step is checked like the first."""
        for _ in range(MOST_REDIRECTS + 1):
            target = asked(url)
            self._check_port(target)
            if check is not None:
                await check(target)
            answer, moved = await self._answered(target, largest)
            if not moved:
                return answer
            url = _joined(answer.url, moved)
        raise Unavailable(f"{target.host} redirects more than {MOST_REDIRECTS} times.")

    def allows(self, target: Target) -> bool:
        """Whether the operator named this host, and its port where that is an unusual one."""
        host = f"[{target.host}]" if ":" in target.host else target.host
        is_usual = target.port in PORTS.values()
        return f"{host}:{target.port}" in self.allowed or (is_usual and bool({host, target.host} & self.allowed))

    def _check_port(self, target: Target) -> None:
        if target.port not in PORTS.values() and not self.allows(target):
            raise BadInput(
                f"Port {target.port} is refused: only 80 and 443 are read. The operator can allow"
                f" {target.authority} with KEEPSAKE_FETCH_ALLOW."
            )

    async def _answered(self, target: Target, largest: int) -> tuple[Answer, str]:
        """An answer, and where it sends us, if it does."""
        found = await self._addresses(target)
        try:
            async with answering(target, found, self.transport) as response:
                url = f"{target.scheme}://{target.authority}{target.path}"
                moved = response.headers.get("location", "") if response.status_code in REDIRECTS else ""
                body, is_whole = (b"", True) if moved else await unfolded(response, largest)
                kind = response.headers.get("content-type", "")
                return Answer(url, response.status_code, kind, body, is_whole), moved
        except (OSError, EOFError, httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unavailable(f"{target.host} {probes.told(error)}.") from error

    async def _addresses(self, target: Target) -> list[str]:
        try:
            found = await self.resolve(target.host)
        except addresses.NoAddress as error:
            raise Unavailable(f"{target.host} {error}.") from error
        # Not one of them may be private: whoever answers for the name chooses which one comes first.
        if not found or not (self.allows(target) or addresses.are_public(found)):
            raise Unavailable(
                f"{target.host} is refused: its address is private. The operator can allow {target.authority} with"
                " KEEPSAKE_FETCH_ALLOW."
            )
        return found


def _joined(base: str, moved: str) -> str:
    try:
        return urljoin(base, moved)
    except ValueError:
        raise Unavailable("The page moved to something that is no address.") from None


def asked(url: str) -> Target:
    """What a web address leads to; BadInput says what it must be."""
    try:
        target = targets.parsed("http", url.strip(" ").partition("#")[0].replace(" ", "%20"))
    except ValueError as error:
        raise BadInput(f"The address {error}.") from None
    last = target.host.rpartition(".")[2]
    if not addresses.literal(target.host) and _NUMERIC.fullmatch(last):
        raise BadInput("The address must name a host, such as shop.example or 203.0.113.7.")
    return target


@asynccontextmanager
async def answering(
    target: Target, found: list[str], transport: "httpx.AsyncBaseTransport | None", wanted: tuple[str, str] = PAGES
) -> AsyncIterator["httpx.Response"]:
    """An answer as it begins, from the first of the addresses that can be reached."""
    certificates = await asyncio.to_thread(endpoint.certificates)
    for n, address in enumerate(found[:MOST_ADDRESSES], 1):
        dialled = transport or httpx.AsyncHTTPTransport(verify=certificates, trust_env=False)
        try:
            response = await dialled.handle_async_request(pinned.request(target, address, *wanted))
        except httpx.ConnectError:
            await dialled.aclose()
            if n == min(len(found), MOST_ADDRESSES):
                raise
            continue
        try:
            yield response
        finally:
            await response.aclose()
            await dialled.aclose()
        return


async def unfolded(response: "httpx.Response", largest: int) -> tuple[bytes, bool]:
    """A body without its compression, never more of it than asked for, and whether that is all."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower() or "identity"
    if encoding not in ("identity", "gzip", "x-gzip", "deflate"):
        raise Unavailable("The page is compressed in a way that was not asked for.")
    body, sent = bytearray(), 0
    unfold = _Unfolding(plain=encoding == "identity")
    async for part in response.aiter_raw():
        sent += len(part)
        body += unfold(part, largest + 1 - len(body))
        if max(len(body), sent) > largest:
            return bytes(body[:largest]), False
    return bytes(body), True


class _Unfolding:
    """Takes compression off piece by piece, so that a small piece cannot become a large one."""

    def __init__(self, plain: bool) -> None:
        self._decoder = None if plain else zlib.decompressobj(47)

    def __call__(self, part: bytes, room: int) -> bytes:
        if self._decoder is None:
            return part[:room]
        try:
            return self._decoder.decompress(self._decoder.unconsumed_tail + part, room)
        except zlib.error:
            return self._without_head(part, room)

    def _without_head(self, part: bytes, room: int) -> bytes:
        """Some servers call it deflate and leave out the head; after that, what is broken stays so."""
        self._decoder = zlib.decompressobj(-15)
        try:
            return self._decoder.decompress(part, room)
        except zlib.error as error:
            raise Unavailable("The page is compressed wrongly.") from error


async def fetched(url: str, resolve: Resolve = public, transport: "httpx.AsyncBaseTransport | None" = None) -> bytes:
    """A small document at an https address; redirects are not followed, and compression is not undone."""
    try:
        async with asyncio.timeout(SECONDS):
            target = asked(url)
            if target.scheme != "https" or target.port != PORTS["https"] or "#" in url:
                raise ValueError("another kind of address")
            found = await resolve(target.host)
            async with answering(target, found, transport, DOCUMENT) as answer:
                return await whole(answer, LARGEST)
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError, BadInput) as error:
        raise Unavailable(f"The document cannot be read ({type(error).__name__}).") from error


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
