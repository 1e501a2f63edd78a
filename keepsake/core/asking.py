"""Asking the client at the other end of a call, where it can be asked."""

from collections.abc import Sequence
from typing import Protocol


class Asker(Protocol):
    """A client that may be asked something while its call is being answered.

    `about` tells one question from another: a client of the 2026 era answers by sending its call again.
    """

    async def choose(self, about: str, message: str, options: Sequence[str]) -> str | None:
        """What the person at the client chose; empty when they would not, None when it cannot be asked."""
        ...

    async def sample(self, about: str, message: str) -> str | None:
        """What the client's model replies; None when it cannot be asked."""
        ...
