"""The state of things at a glance: banks, memories, jobs, keys."""

from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from keepsake import __version__
from keepsake.context import App, Ctx
from keepsake.core.models import Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.ops import embedding
from keepsake.store import banks, embeddings, jobs, keys, memories
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


class Embedded(Result):
    """The model of meaning, and what it has yet to do."""

    model: str = Field(description="The embedding model that memories get their vectors from.")
    is_new: bool = Field(description="Whether another model still serves until this one has embedded every memory.")
    waiting: int = Field(description="Memories of these banks that wait for their vector from it.")


class Status(Result):
    """What there is, and what waits to be done."""

    version: str = Field(description="Version of Keepsake.")
    store: str = Field(description="sqlite or postgres.")
    banks: list[BankStatus] = Field(description="The banks that you may see, by name.")
    memories: int = Field(description="Memories in all of them.")
    jobs: dict[str, int] = Field(description="Background jobs of these banks, by state.")
    failing: list[Failing] = Field(description="Jobs that failed, whether they are tried again or given up.")
    embedding: Embedded = Field(description="The embedding model, and how many memories wait for it.")
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
            embedding=await embedded(tx, ctx.app, ctx.org, list(seen)),
            keys=await _active_keys(tx, ctx),
        )

    return await ctx.read(body)


async def embedded(tx: Tx, app: App, org: int, seen: Sequence[int]) -> Embedded:
    """Tell which embedding model is in use, and how many memories of these banks wait for it."""
    model = embedding.in_use(app, await embeddings.models(tx))
    waiting = [await embeddings.others(tx, org, bank, model.id if model else 0) for bank in seen]
    return Embedded(
        model=model.name if model else embedding.wanted(app),
        is_new=model is None or model.state == "incoming",
        waiting=sum(waiting),
    )


async def _active_keys(tx: Tx, ctx: Ctx) -> int | None:
    if not ctx.principal.is_manager:
        return None
    return sum(key.revoked_at is None for key in await keys.listed(tx, ctx.org))
