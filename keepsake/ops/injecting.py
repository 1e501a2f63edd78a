"""What clients are given by themselves: at the start of a session, and with a prompt."""

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import text
from keepsake.core.brief import Brief
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.hooks import context
from keepsake.ops import banks as bank_ops
from keepsake.store.engine import Tx


class Preview(InBank):
    """For which bank, and which prompt."""

    prompt: Clean = Field("", max_length=20_000, description="What someone types into a client; nothing for none.")


class Injected(Result):
    """A text as a client is given it."""

    text: str = Field(description="The whole text; empty where nothing is given.")
    tokens: int = Field(description="What it costs.")
    ids: list[str] = Field(description="The memories that it tells.")


class Injection(Result):
    """What hooks would give a client."""

    start: Injected = Field(description="At the start of a session.")
    prompt: Injected = Field(description="With the prompt.")


@operation("memory.injection", effect=Effect.READ, scope="memory:read")
async def preview(ctx: Ctx, given: Preview) -> Injection:
    """Show what the hooks of a client would give it at the start of a session and with a prompt."""

    async def body(tx: Tx) -> tuple[Brief, Brief]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return Brief(), Brief()
        start = await context.start(tx, ctx.org, bank.id, bank.name, ctx.now)
        return start, await context.prompt(tx, ctx.org, bank.id, given.prompt)

    start, prompt = await ctx.read(body)
    return Injection(start=_told(start), prompt=_told(prompt))


def _told(brief: Brief) -> Injected:
    return Injected(text=brief.text, tokens=text.cost(brief.text), ids=[str(id) for id in brief.ids])
