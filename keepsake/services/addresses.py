"""Which addresses a name has, and which of them anyone may be sent to."""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from keepsake.core.errors import Unavailable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: Names that are looked up at once; a dead resolver holds a thread for seconds, and it must be none that others need.
THREADS = 16
#: Listed by hand, because `is_global` of Python 3.11 knows neither all of IANA's registries nor the clouds' own hosts.
_NOT_PUBLIC_4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
        *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4"),
    )
)
#: Everything outside this one is local, mapped, translated or not given out; within it are a few exceptions.
_UNICAST_6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    ipaddress.IPv6Network(network)
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)


class NoAddress(Unavailable):
    """A name that has no address, or none that may be used; the message says which."""


def are_public(found: Sequence[str]) -> bool:
    """Whether each of these addresses is public."""
    return all(is_public(ipaddress.ip_address(address)) for address in found)


def is_public(address: Address) -> bool:
    """Whether an address is that of any host on the internet, and neither ours nor our network's."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    return address in _UNICAST_6 and not any(address in network for network in _NOT_PUBLIC_6)


async def resolved(host: str, *, anywhere: bool) -> list[str]:
    """The addresses of a host, to be connected to as they are; unless it may be anywhere, each must be public."""
    found = literal(host) or await _looked_up(host)
    if not anywhere and not are_public(found):
        # Which address it is would tell a stranger about our network.
        raise NoAddress("is refused: its address is private, and only the owner of this machine may watch those")
    return found


def literal(host: str) -> list[str]:
    """The address that a host is written as; nothing for a name."""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        return []


async def _looked_up(host: str) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        answer = await loop.run_in_executor(_threads(), lookup, host)
    except (socket.gaierror, UnicodeError):
        raise NoAddress("cannot be found: the name has no address") from None
    # A scope belongs to a link of this machine.
    found = list(dict.fromkeys(address for address in answer if "%" not in address))
    if not found:
        raise NoAddress("cannot be found: the name has no address")
    return found


def lookup(host: str) -> Sequence[str]:
    """Ask the system's resolver."""
    return [str(place[0]) for *_, place in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="resolver")
