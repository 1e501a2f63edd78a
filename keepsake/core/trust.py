"""How far a memory's source is trusted: a repository or page from outside least, the owner's own words most."""

from collections.abc import Iterable

#: From least to most.
ORDER = ("outside", "agent", "owner")


def lowest(trusts: Iterable[str]) -> str:
    """What is made from several sources is trusted like the least of them; a word that nobody knows, not at all."""
    return min(trusts, key=lambda trust: ORDER.index(trust) if trust in ORDER else -1)
