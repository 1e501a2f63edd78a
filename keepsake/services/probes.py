"""Probes: one look at what a check names, within its time, told nothing and followed nowhere else."""

import asyncio
import contextlib
import os
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepsake.core import target as targets
from keepsake.core.clock import SECOND
from keepsake.core.errors import Unavailable
from keepsake.core.lazy import lazy
from keepsake.core.target import Target
from keepsake.services import addresses, endpoint, pinned
from keepsake.store.checks import Check

if TYPE_CHECKING:
    import httpx
else:
    httpx = lazy("httpx")

#: Bytes of a page that a text is looked for in.
LARGEST = 1 << 20
#: Addresses of one name that are tried.
MOST_ADDRESSES = 3
DAY_S = 86_400
#: What PostgreSQL says while it answers but takes nobody in: it starts, it ends, it is full.
_TURNED_AWAY = {"57P03": "is starting or ending", "57P01": "is ending", "53300": "has no connection left"}


class Failed(Unavailable):
    """What was looked at is not as it should be; the message says how."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one look found."""

    ok: bool
    #: Microseconds.
    latency: int
    #: Why it failed; empty when it did not.
    reason: str = ""


async def probe(check: Check) -> Outcome:
    """Look once."""
    started = time.perf_counter()
    seconds = check.timeout / SECOND
    reason = ""
    try:
        async with asyncio.timeout(seconds):
            await PROBES[check.kind](check, targets.parsed(check.kind, check.target))
    except TimeoutError:
        reason = f"did not answer within {seconds:g} s"
    except (Failed, addresses.NoAddress) as error:
        reason = str(error)
    except (OSError, EOFError, httpx.TransportError) as error:
        reason = told(error)
    return Outcome(not reason, round((time.perf_counter() - started) * SECOND), reason)


def told(error: BaseException) -> str:
    """What went wrong on the way, in words of ours: what others say may hold anything."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"has a certificate that is not trusted: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return f"does not speak TLS as it should ({cause.reason or 'unknown'})"
        if isinstance(cause, OSError) and cause.errno:
            return f"cannot be reached: {os.strerror(cause.errno)}"
    return "broke off" if isinstance(error, EOFError) else f"did not answer as it should ({type(error).__name__})"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what led to it, the first cause first."""
    found: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in found:
        found.append(at)
        if isinstance(at, BaseExceptionGroup):
            found += at.exceptions
        at = at.__cause__ or at.__context__
    return reversed(found)


async def _dialled(target: Target, check: Check, dial: "Callable[[str], Awaitable[None]]") -> None:
    """Go to the addresses of a target, as they were checked, until one can be reached."""
    found = (await addresses.resolved(target.host, anywhere=check.anywhere))[:MOST_ADDRESSES]
    for address in found[:-1]:
        with contextlib.suppress(OSError, httpx.ConnectError):
            await dial(address)
            return
    await dial(found[-1])


@asynccontextmanager
async def _connected(address: str, port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(address, port, limit=4096)
    try:
        yield reader, writer
    finally:
        # Nothing is owed to the other side, and a close that waits for it could wait for ever.
        writer.transport.abort()


async def _tcp(check: Check, target: Target) -> None:
    async def dial(address: str) -> None:
        async with _connected(address, target.port):
            pass

    await _dialled(target, check, dial)


async def _dns(check: Check, target: Target) -> None:
    found = await addresses.resolved(target.host, anywhere=check.anywhere)
    if check.expect.addresses and not set(check.expect.addresses) & set(found):
        raise Failed("has none of the expected addresses")


async def _redis(check: Check, target: Target) -> None:
    async def dial(address: str) -> None:
        async with _connected(address, target.port) as (reader, writer):
            writer.write(b"PING\r\n")
            answer = await _line(reader)
        # A server that wants a password first is there and works.
        if not answer.startswith((b"+PONG", b"-NOAUTH")):
            is_redis = answer[:1] in (b"+", b"-")
            raise Failed("answers PING with an error" if is_redis else "does not speak Redis")

    await _dialled(target, check, dial)


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError:
        return b""


async def _postgres(check: Check, target: Target) -> None:
    """Ask to be let in, as `pg_isready` does: who is asked for a password has found a server that works."""
    asked = b"user\0keepsake\0database\0" + (target.path or "postgres").encode() + b"\0\0"

    async def dial(address: str) -> None:
        async with _connected(address, target.port) as (reader, writer):
            writer.write(struct.pack("!ii", len(asked) + 8, 196_608) + asked)
            kind, size = struct.unpack("!ci", await reader.readexactly(5))
            body = await reader.readexactly(min(size - 4, 2_000)) if kind == b"E" and size > 4 else b""
        if kind not in (b"R", b"E"):
            raise Failed("does not speak PostgreSQL")
        code = next((field[1:].decode("ascii", "replace") for field in body.split(b"\0") if field[:1] == b"C"), "")
        if code in _TURNED_AWAY:
            raise Failed(f"{_TURNED_AWAY[code]} (PostgreSQL {code})")

    await _dialled(target, check, dial)


async def _http(check: Check, target: Target) -> None:
    async def dial(address: str) -> None:
        transport = httpx.AsyncHTTPTransport(verify=endpoint.certificates(), trust_env=False)
        async with transport:
            response = await transport.handle_async_request(pinned.request(target, address))
            try:
                await _as_expected(check, target, response)
            finally:
                await response.aclose()

    await _dialled(target, check, dial)


async def _as_expected(check: Check, target: Target, response: "httpx.Response") -> None:
    low, high = check.expect.status
    if not low <= response.status_code <= high:
        wanted = f"{low}" if low == high else f"{low} to {high}"
        raise Failed(f"answered {response.status_code}, not {wanted}")
    if target.scheme == "https" and check.expect.tls_days:
        _check_certificate(response, check.expect.tls_days)
    if check.expect.contains and not await _holds(response, check.expect.contains.encode()):
        raise Failed("answered without the expected text")


def _check_certificate(response: "httpx.Response", days: int) -> None:
    tls = response.extensions["network_stream"].get_extra_info("ssl_object")
    ends = ssl.cert_time_to_seconds(tls.getpeercert()["notAfter"])
    left = (ends - time.time()) / DAY_S
    if left < days:
        raise Failed(f"has a certificate that ends in {max(0, int(left))} days, fewer than {days}")


async def _holds(response: "httpx.Response", text: bytes) -> bool:
    """Whether a page has a text, within its beginning."""
    read = bytearray()
    async for chunk in response.aiter_raw():
        # A text may lie across two chunks.
        start = max(0, len(read) - len(text))
        read += chunk
        if read.find(text, start) >= 0:
            return True
        if len(read) >= LARGEST:
            return False
    return False


PROBES: dict[str, Callable[[Check, Target], Awaitable[None]]] = {
    "http": _http,
    "tcp": _tcp,
    "dns": _dns,
    "postgres": _postgres,
    "redis": _redis,
}
