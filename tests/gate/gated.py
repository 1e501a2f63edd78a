"""A gated dialect in which somebody has registered what changes things, by mistake or on purpose."""

from dataclasses import replace

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core.models import Given
from keepsake.core.operation import Effect, operation
from keepsake.ops import memory
from keepsake.tools.checkstack import CHECKSTACK
from keepsake.tools.dialect import Tool
from tests.surfaces import probes
from tests.surfaces.probes import Done


class Mark(Given):
    """Where to leave a mark."""

    mark: str = Field(description="Name of the file that tells that it ran.")


async def _marked(ctx: Ctx, given: Mark) -> Done:
    probes.write(ctx.app.settings.data_dir / given.mark, ctx.operation)
    return Done()


@operation("probe.look", effect=Effect.READ, scope="research:read")
async def look(ctx: Ctx, given: Mark) -> Done:
    """Leave a mark, and change nothing."""
    return await _marked(ctx, given)


@operation("probe.change", effect=Effect.MUTATE, scope="research:read")
async def change(ctx: Ctx, given: Mark) -> Done:
    """Leave a mark, as a change would."""
    return await _marked(ctx, given)


@operation("probe.destroy", effect=Effect.DESTRUCTIVE, scope="research:read")
async def destroy(ctx: Ctx, given: Mark) -> Done:
    """Leave a mark, as a deletion would."""
    return await _marked(ctx, given)


_LATER = [Tool("look", look), Tool("change", change), Tool("destroy", destroy), Tool("retain", memory.retain)]
GATED = replace(CHECKSTACK, tools={**CHECKSTACK.tools, **{tool.name: tool for tool in _LATER}})
