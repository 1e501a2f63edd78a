"""Whether what a client follows has changed; no operation, because it tells nothing of what is there."""

from collections.abc import Mapping
from dataclasses import dataclass

from keepsake.context import Ctx
from keepsake.core.pack import KNOWLEDGE
from keepsake.ops import banks as bank_ops
from keepsake.store import banks, slugs, traces
from keepsake.store.engine import Tx

Trace = str
#: What is read, and of what.
Kind = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Place:
    """A bank, and how many writes it has seen."""

    bank: tuple[int, int]
    seq: int


async def place(ctx: Ctx) -> Place | None:
    """Where a request works; None while that is nowhere."""
    if ctx.bank is None:
        return None

    async def body(tx: Tx) -> Place | None:
        bank = await bank_ops.found(tx, ctx, None)
        if bank is None:
            return None
        seen = await banks.sequences(tx, ctx.org, [bank.id])
        return Place((ctx.org, bank.id), seen.get(bank.id, 0))

    return await ctx.read(body)


async def traced(ctx: Ctx, wanted: Mapping[str, Kind | None]) -> dict[str, Trace]:
    """A trace of the list of resources, under no address, and of each address."""

    async def body(tx: Tx) -> dict[str, Trace]:
        bank = await bank_ops.found(tx, ctx, None)
        if bank is None:
            return {}
        found = {"": await traces.newest(tx, bank.org, bank.id)}
        return found | {address: await _of(tx, bank, kind) for address, kind in wanted.items()}

    return await ctx.read(body)


async def _of(tx: Tx, bank: banks.Bank, kind: Kind | None) -> Trace:
    operation, told = kind or ("", "")
    if operation == "memory.get":
        id = await slugs.meant(tx, bank.org, bank.id, told)
        return await traces.of_memory(tx, bank.org, bank.id, id) if id else ""
    if operation == "artifact.get":
        return await traces.of_artifact(tx, bank.org, bank.id, told)
    if operation == "decision.list":
        return await traces.of_kinds(tx, bank.org, bank.id, KNOWLEDGE)
    # A brief is made of everything.
    return str((await banks.sequences(tx, bank.org, [bank.id])).get(bank.id, 0)) if operation else ""
