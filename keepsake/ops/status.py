"""The state of things at a glance: banks, memories, jobs, keys."""

from collections import Counter

from pydantic import Field

from keepsake import __version__
from keepsake.context import Ctx
from keepsake.core.models import Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.store import banks, jobs, keys, memories
from keepsake.store.engine import Tx


class GetStatus(Given):
    """Nothing to say."""


class BankStatus(Result):
    """A bank and how much it holds."""

    name: str = Field(description="Its name.")
    memories: int = Field(description="Memories that hold now.")


class Failing(Result):
    """Background work that did not succeed yet."""

    bank: str = Field(description="Name of the bank.")
    kind: str = Field(description="What kind of work.")
    error: str = Field(description="What kind of error it met.")


class Status(Result):
    """What there is, and what waits to be done."""

    version: str = Field(description="Version of Keepsake.")
    store: str = Field(description="sqlite or postgres.")
    banks: list[BankStatus] = Field(description="The banks that you may see, by name.")
    memories: int = Field(description="Memories in all of them.")
    jobs: dict[str, int] = Field(description="Background jobs of these banks, by state.")
    failing: list[Failing] = Field(description="Jobs that failed, whether they are tried again or given up.")
    keys: int | None = Field(description="Active keys; null for who may not manage them.")


@operation("status.get", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: GetStatus) -> Status:
    """Tell how many banks, memories, jobs and keys there are, and which jobs fail."""

    async def body(tx: Tx) -> Status:
        seen = {bank.id: bank.name for bank in await banks.listed(tx, ctx.org) if ctx.principal.sees(bank.name)}
        held = [
            BankStatus(name=name, memories=sum((await memories.counts(tx, ctx.org, id, ctx.now)).values()))
            for id, name in seen.items()
        ]
        standing = [one for one in await jobs.standing(tx, ctx.org) if one.bank in seen]
        states: Counter[str] = Counter()
        for one in standing:
            states[one.state] += one.jobs
        return Status(
            version=__version__,
            store=ctx.store.engine.name,
            banks=held,
            memories=sum(bank.memories for bank in held),
            jobs=dict(states),
            failing=[
                Failing(bank=seen[one.bank], kind=one.kind, error=one.error.partition(":")[0])
                for one in standing
                if one.error
            ],
            keys=await _active_keys(tx, ctx),
        )

    return await ctx.read(body)


async def _active_keys(tx: Tx, ctx: Ctx) -> int | None:
    if "admin" not in ctx.principal.scopes:
        return None
    return sum(key.revoked_at is None for key in await keys.listed(tx, ctx.org))
