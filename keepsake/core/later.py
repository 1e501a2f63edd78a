"""Work that no one waits for: begun at once, finished before the process ends."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from keepsake.core import log
from keepsake.core.errors import KeepsakeError


class Later:
    """What is still being done behind the answers."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = asyncio.Event()

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin work whose end nobody waits for; when it fails, the log tells."""
        # A task that nothing refers to may be collected before it ends.
        task = asyncio.create_task(_logged(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def pause(self, seconds: float) -> None:
        """Let more work come together; not at the end."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), seconds)

    async def done(self) -> None:
        """Wait until nothing is left to do."""
        self._ending.set()
        while self._tasks:
            await asyncio.wait(self._tasks)


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except KeepsakeError as error:
        log.warning("left undone", code=error.code, trace=log.trace(error))
