"""Passwords: hashed by argon2, off the event loop, and only so many at once."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

from keepsake.core.errors import Unavailable
from keepsake.core.lazy import lazy

if TYPE_CHECKING:
    import argon2
else:
    argon2 = lazy("argon2")

#: Each takes 64 MiB and a core for a while.
AT_ONCE = 2
#: Those who wait beyond this many are sent away, so that a flood does not hold everyone up.
MOST_WAITING = 32
SHORTEST, LONGEST = 12, 1_024
_waiting = 0


async def hashed(password: str) -> str:
    """The hash to store."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), _hasher().hash, password)


async def fits(hash: str | None, password: str) -> bool:
    """Whether a password is the one that was hashed; without a hash it takes as long, and is not."""
    global _waiting
    if _waiting >= MOST_WAITING:
        raise Unavailable("Too many people sign in at this moment. Try again in a minute.")
    _waiting += 1
    try:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_threads(), _verified, hash or _nobody(), password) and hash is not None
    finally:
        _waiting -= 1


def _verified(hash: str, password: str) -> bool:
    try:
        return _hasher().verify(hash, password)
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False


@cache
def _hasher() -> "argon2.PasswordHasher":
    return argon2.PasswordHasher(time_cost=3, memory_cost=64 * 1024, parallelism=4)


@cache
def _nobody() -> str:
    """A hash of the same cost that no password fits, for names that nobody has."""
    return "$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHRzb21lc2FsdA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


@cache
def _threads() -> ThreadPoolExecutor:
    # The pool is the semaphore: its threads are all that ever hash.
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="passwords")
