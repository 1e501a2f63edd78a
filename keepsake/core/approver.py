"""Who asked for something that another has to agree to."""

from typing import Protocol

from keepsake.core.clock import MINUTE

#: How long after giving their password someone may agree to what their own agent asked.
FRESH = 5 * MINUTE


class Asked(Protocol):
    """What a proposal and an invocation have in common."""

    @property
    def bank(self) -> int: ...

    @property
    def principal(self) -> str: ...

    @property
    def credential(self) -> str: ...

    @property
    def person(self) -> int | None: ...
