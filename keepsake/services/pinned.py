"""A request to the very address that was checked, in the name that it was found by."""

from typing import TYPE_CHECKING

from keepsake import __version__
from keepsake.core.lazy import lazy
from keepsake.core.target import Target

if TYPE_CHECKING:
    import httpx
else:
    httpx = lazy("httpx")

AGENT = f"Keepsake/{__version__}"


def request(target: Target, address: str, accept: str = "*/*", encoding: str = "identity") -> "httpx.Request":
    """Made from what was read of an address and nothing else, so that no second reading of it can lead elsewhere."""
    host = f"[{address}]" if ":" in address else address
    headers = {
        "Host": target.authority,
        "User-Agent": AGENT,
        "Accept": accept,
        "Accept-Encoding": encoding,
        "Connection": "close",
    }
    url = f"{target.scheme}://{host}:{target.port}{target.path}"
    return httpx.Request("GET", url, headers=headers, extensions={"sni_hostname": target.host})
