"""The keys that an issuer publishes: asked of the one address that the operator named, and not for long."""

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from keepsake.core.errors import Unavailable
from keepsake.core.lazy import lazy
from keepsake.core.loopback import is_loopback
from keepsake.services import endpoint, safefetch

if TYPE_CHECKING:
    import httpx
else:
    httpx = lazy("httpx")

#: A key as it is published; its fields depend on what it is made for.
Jwk = dict[str, Any]
#: Bytes and keys of a set, and seconds that fetching one may take.
LARGEST, MOST, SECONDS = 256 * 1024, 100, 5.0


async def fetched(url: str) -> list[Jwk]:
    """Every key that is published there now."""
    try:
        async with asyncio.timeout(SECONDS):
            return _keys(await _read(url))
    except (TimeoutError, httpx.HTTPError, ValueError, RecursionError) as error:
        raise Unavailable(f"The keys of an issuer cannot be read ({type(error).__name__}).") from error


async def _read(url: str) -> bytes:
    certificates = await asyncio.to_thread(endpoint.certificates)
    near = is_loopback(urlsplit(url).hostname or "")
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    async with (
        httpx.AsyncClient(follow_redirects=False, trust_env=not near, verify=certificates, timeout=SECONDS) as client,
        client.stream("GET", url, headers=headers) as answer,
    ):
        return await safefetch.whole(answer, LARGEST)


def _keys(body: bytes) -> list[Jwk]:
    told = json.loads(body)
    keys = told.get("keys") if isinstance(told, dict) else None
    if not isinstance(keys, list):
        raise ValueError("no set of keys")
    return [key for key in keys[:MOST] if isinstance(key, dict)]
