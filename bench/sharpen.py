"""How fast the background gives memories their sharper vectors."""

import asyncio
import tempfile
import time
from pathlib import Path

from bench import corpus
from keepsake import context, dispatch, settings, worker
from keepsake.core.principal import local_owner


async def _measured(folder: Path, count: int) -> float:
    async with context.open(settings.load({}, data_dir=folder)) as app:
        ctx = app.ctx(local_owner(), "bench")
        await dispatch.call(ctx, "memory.retain", {"content": "warm"})
        while await worker.step(app):
            pass
        writes = [dispatch.call(ctx, "memory.retain", {"content": text}) for text in corpus.memories(count)]
        await asyncio.gather(*writes)
        before = time.process_time()
        while await worker.step(app):
            pass
        return count / (time.process_time() - before)


def rate(count: int = 400) -> float:
    """Short memories a CPU second, from claiming the job to the last vector written."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measured(Path(folder), count))
