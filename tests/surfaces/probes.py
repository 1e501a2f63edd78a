"""Operations and a dialect for tests of the protocol: one reports, one lingers, one breaks."""

import asyncio
from pathlib import Path

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core.models import Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.tools.dialect import Dialect, Tool, table

SECRET = "the password is hunter2"


class Nothing(Given):
    """Nothing to say."""


class Mark(Given):
    """Where to leave marks."""

    mark: str = Field(description="Name of the file, beside the database, that tells how far it came.")
    seconds: float = Field(60.0, description="How long to linger.")


class Done(Result):
    """It is done."""

    done: bool = Field(True, description="Always true.")


@operation("probe.report", effect=Effect.READ, scope="memory:read")
async def report(ctx: Ctx, given: Nothing) -> Done:
    """Report progress three times."""
    for step in (1, 2, 3):
        await ctx.report(step, 3, f"step {step}")
    return Done()


@operation("probe.linger", effect=Effect.READ, scope="memory:read")
async def linger(ctx: Ctx, given: Mark) -> Done:
    """Wait, and leave a mark of how it ended."""
    mark = ctx.app.settings.data_dir / given.mark
    write(mark, "started")
    try:
        await asyncio.sleep(given.seconds)
    except asyncio.CancelledError:
        write(mark, "cancelled")
        raise
    write(mark, "finished")
    return Done()


def write(mark: Path, text: str) -> None:
    """Leave a mark that a reader never sees half."""
    draft = mark.with_suffix(".draft")
    draft.write_text(text)
    draft.rename(mark)


@operation("probe.broken", effect=Effect.READ, scope="memory:read")
async def broken(ctx: Ctx, given: Nothing) -> Done:
    """Fail with something that no client may see."""
    raise RuntimeError(SECRET)


DIALECT = Dialect("probe", "Probe", "", table(Tool("report", report), Tool("linger", linger), Tool("broken", broken)))
