"""A worker for whom time passes faster: `python -m tests.stories.watching_worker SINCE`."""

import asyncio
import sys

from keepsake import context, settings, worker
from keepsake.context import App
from keepsake.ops import watching
from tests.stories.counting_worker import hurried


async def main(since: int) -> None:
    """Watch until killed."""
    worker.FIRST_WATCH_S, watching.TICK_S, watching.IDLE_S = 0.0, 0.05, 0.05
    async with context.open(settings.load()) as opened:
        print("ready", flush=True)
        await worker.run(App(opened.settings, opened.store, now=lambda: hurried(since)))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
