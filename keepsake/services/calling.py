"""Calls that an operator enrolled or configured: one request, to the address that was checked, followed nowhere."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keepsake.core import target as targets
from keepsake.core.errors import Unavailable
from keepsake.core.lazy import lazy
from keepsake.services import addresses, endpoint, pinned, probes

if TYPE_CHECKING:
    import httpx
else:
    httpx = lazy("httpx")

Heard = Callable[[bytes], Awaitable[None]]


class Refused(Unavailable):
    """The request was not sent; the message says why."""


class Broken(Unavailable):
    """The request may have been sent, and no whole answer came."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    timeout_s: float = 30
    output_limit: int = 65_536
    #: Whether the operator named the host, so that it may be private and without TLS.
    anywhere: bool = False


async def call(wanted: Call, heard: Heard) -> int:
    """Send it once, tell what is answered within its limit, and give the status."""
    try:
        target = targets.parsed("http", wanted.url)
    except ValueError as error:
        raise Refused(f"The address {error}.") from error
    if target.scheme != "https" and not wanted.anywhere:
        raise Refused(f"{target.host} is not asked without TLS. The operator can allow it with KEEPSAKE_EXEC_HOSTS.")
    try:
        found = await addresses.resolved(target.host, anywhere=wanted.anywhere)
    except addresses.NoAddress as error:
        hint = "" if wanted.anywhere else " The operator can allow a private host with KEEPSAKE_EXEC_HOSTS."
        raise Refused(f"{target.host} {error}.{hint}") from error
    certificates = await asyncio.to_thread(endpoint.certificates)
    transport = httpx.AsyncHTTPTransport(verify=certificates, trust_env=False)
    try:
        async with transport:
            response = await transport.handle_async_request(_request(wanted, pinned.request(target, found[0])))
            try:
                await _read(response, wanted.output_limit, heard)
            finally:
                await response.aclose()
    except httpx.ConnectError as error:
        raise Refused(f"{target.host} {probes.told(error)}.") from error
    except (OSError, EOFError, httpx.HTTPError) as error:
        raise Broken(f"{target.host} {probes.told(error)}.") from error
    return response.status_code


def _request(wanted: Call, base: "httpx.Request") -> "httpx.Request":
    headers = dict(base.headers) | {name.lower(): value for name, value in wanted.headers.items()}
    if wanted.body is not None:
        headers.setdefault("content-type", "application/json")
    limits = dict.fromkeys(("connect", "read", "write", "pool"), wanted.timeout_s)
    extensions = {**base.extensions, "timeout": limits}
    return httpx.Request(wanted.method, base.url, headers=headers, content=wanted.body, extensions=extensions)


async def _read(response: "httpx.Response", limit: int, heard: Heard) -> None:
    room = limit
    async for part in response.aiter_raw():
        if room > 0:
            await heard(part[:room])
        room -= len(part)
        if room < -limit:
            return
