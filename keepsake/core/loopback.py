"""Which addresses can be reached from this machine only."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        # A name that merely begins like an address may lead anywhere.
        return False
