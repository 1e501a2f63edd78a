"""What came from outside and was handed to someone lately, for whoever decides on what they ask for next."""

from collections.abc import Sequence

from keepsake.context import App, Ctx
from keepsake.store import readings
from keepsake.store.readings import Reading

#: How many are told of.
MOST = 50
#: Seconds that what was handed out may wait for more.
PAUSE_S = 1.0


def note(ctx: Ctx, found: Sequence[object]) -> None:
    """Note those of the memories handed out that came from outside."""
    outside = [str(getattr(one, "id", "")) for one in found if getattr(one, "trust", "") == "outside"]
    _noted(ctx, [Reading("memory", id, ctx.now) for id in outside])


def page(ctx: Ctx, address: str) -> None:
    """Note that a page was read for whoever asks."""
    _noted(ctx, [Reading("page", address[:500], ctx.now)])


def _noted(ctx: Ctx, found: Sequence[Reading]) -> None:
    if not found:
        return
    box = ctx.app.outbox
    box.readings += [(_reader(ctx), one) for one in found]
    if len(box.readings) == len(found):
        ctx.app.later.do(_behind(ctx.app))


def _reader(ctx: Ctx) -> str:
    return f"{ctx.org}/{ctx.principal.name}"


async def _behind(app: App) -> None:
    await app.later.pause(PAUSE_S)
    await _written(app)


async def _written(app: App) -> None:
    box = app.outbox
    found, box.readings = box.readings, []
    if found:
        await app.store.engine.volatile(lambda tx: readings.put(tx, found))


async def lately(ctx: Ctx) -> list[Reading]:
    """What whoever asks was handed from outside in the last hour, newest first."""
    await _written(ctx.app)
    return await ctx.store.engine.volatile(lambda tx: readings.lately(tx, _reader(ctx), ctx.now, MOST))
