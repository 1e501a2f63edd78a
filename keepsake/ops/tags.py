"""Tags in use."""

import fnmatch

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.store import memories
from keepsake.store.engine import Tx


class ListTags(InBank):
    """Which tags."""

    pattern: Clean | None = Field(None, max_length=200, description="Glob pattern, such as `project:*`.")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results.")


class Tag(Result):
    """A tag in use."""

    tag: str = Field(description="The tag.")
    memories: int = Field(description="How many memories carry it.")


class Tags(Result):
    """Tags, most used first."""

    tags: list[Tag] = Field(description="Most used first.")


@operation("tag.list", effect=Effect.READ, scope="memory:read")
async def list_(ctx: Ctx, given: ListTags) -> Tags:
    """List the tags used in a bank, most used first, optionally only those that fit a glob pattern."""

    async def body(tx: Tx) -> list[tuple[str, int]]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        return await memories.tags(tx, ctx.org, bank.id, ctx.now) if bank else []

    used = await ctx.read(body)
    fitting = [(tag, n) for tag, n in used if given.pattern is None or fnmatch.fnmatchcase(tag, given.pattern)]
    return Tags(tags=[Tag(tag=tag, memories=n) for tag, n in fitting[: given.limit]])
