"""What came of a run, offered to memory as an observation: what a program says is data from outside."""

from dataclasses import dataclass

from keepsake.context import Ctx
from keepsake.core import words
from keepsake.core.invocation import State
from keepsake.ops import forgetting, storing
from keepsake.store import banks, jobs
from keepsake.store.engine import Tx
from keepsake.store.invocations import CATEGORY, Invocation
from keepsake.store.memories import Memory

#: Characters of arguments and of output that are remembered.
ARGUMENTS, OUTPUT = 500, 1_000


@dataclass(frozen=True, slots=True)
class Came:
    """How a run ended."""

    state: State
    outcome: str
    output: str = ""
    exit_code: int | None = None


async def remember(tx: Tx, ctx: Ctx, row: Invocation, came: Came) -> None:
    """Store what came of it in the bank it was asked for in, if that is still there."""
    bank = await banks.of_id(tx, row.org, row.bank) if row.bank else None
    if bank is None:
        return
    told = await forgetting.left_of(tx, ctx, bank, _told(row, came))
    if not told:
        return
    memory = Memory(
        org=row.org,
        bank=bank.id,
        id=ctx.store.new_id(),
        kind="observation",
        subtype="command",
        fact_type="experience",
        title=f"{row.tool}: {came.state}",
        text=told,
        learned_at=ctx.now,
        author=row.principal,
        text_hash=words.digest(told),
        tokens=words.cost(told),
        seq=await banks.step(tx, row.org, bank.id),
        category=CATEGORY,
        metadata={"invocation": str(row.id), "tool": row.tool, "status": came.state},
        event_at=row.started_at or ctx.now,
        happened_from=row.started_at or ctx.now,
        trust="outside",
    )
    await storing.store(tx, ctx.app, memory, ctx.app.embedding.known["static"])
    await jobs.wanted(tx, ctx.store, row.org, bank.id, "embed", ctx.now)


def _told(row: Invocation, came: Came) -> str:
    lines = [f"{row.principal} ran {row.tool} with {row.arguments[:ARGUMENTS]}: {came.state}."]
    lines += [came.outcome] if came.outcome else []
    # The end says how it went.
    shown = came.output.strip()
    lines += [f"It printed: {shown if len(shown) <= OUTPUT else '…' + shown[-OUTPUT:]}"] if shown else []
    return "\n".join(lines)
