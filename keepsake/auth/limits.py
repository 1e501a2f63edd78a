"""The rate limit: a fixed minute per key, counted in the shared database."""

from dataclasses import dataclass

from keepsake.core.clock import MINUTE, SECOND
from keepsake.core.errors import RateLimited
from keepsake.core.principal import Principal
from keepsake.store import keys
from keepsake.store.engine import Tx
from keepsake.store.store import Store


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of this minute."""

    limit: int
    remaining: int
    #: When the minute ends, in seconds since 1970.
    reset: int

    def headers(self) -> dict[str, str]:
        """As every counted answer tells it."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset),
        }


async def count(store: Store, principal: Principal, limit: int, now: int, calls: int) -> Allowance | None:
    """Count calls against the principal's key; the local owner is not counted."""
    key = principal.key
    if key is None:
        return None

    async def counted(tx: Tx) -> int:
        await keys.used(tx, key, now)
        return await keys.counted(tx, key, now, calls)

    total = await store.engine.volatile(counted)
    end = (now // MINUTE + 1) * MINUTE
    reset = end // SECOND
    if total > limit:
        raise RateLimited(limit, reset, max(1, (end - now) // SECOND))
    return Allowance(limit, limit - total, reset)


async def note_use(store: Store, principal: Principal, now: int) -> None:
    """Remember when a key was last used, where nothing is counted."""
    key = principal.key
    if key is not None:
        await store.engine.volatile(lambda tx: keys.used(tx, key, now))
