"""Governed execution as agents ask for it: invoke, run and wait, look, cancel."""

import asyncio
import time

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import invocation, proposal
from keepsake.core.clock import SECOND
from keepsake.core.errors import BadInput, Conflict
from keepsake.core.invocation import OPEN, WAITING
from keepsake.core.models import Given, InBank
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean, CleanJson
from keepsake.ops import announcing, consenting, deciding, enrolment, readings
from keepsake.ops import banks as bank_ops
from keepsake.ops import invocations as shows
from keepsake.ops.invocations import InvocationStatus
from keepsake.store import invocations
from keepsake.store.engine import Tx
from keepsake.store.exec_tools import ExecTool
from keepsake.store.invocations import End, Invocation, Printed
from keepsake.store.readings import Reading

#: How many of one credential may stand open at once.
MOST = 100
#: Seconds between two looks at what someone else runs; they grow while nothing happens.
SOON_S, SELDOM_S = 0.05, 0.5
#: Characters of output in one message of progress.
MESSAGE = 4_000


class Invoke(InBank):
    """What to run."""

    tool: Clean = Field(min_length=1, max_length=100, description="Name of the enrolled tool.")
    arguments: dict[Clean, CleanJson] = Field(
        default_factory=dict, max_length=200, description="Its arguments, exactly as they shall be used."
    )
    reason: Clean = Field("", max_length=2_000, description="Why, for whoever decides on it.")


@operation("exec.invoke", effect=Effect.MUTATE, scope="exec:invoke")
async def invoke(ctx: Ctx, given: Invoke) -> InvocationStatus:
    """Ask for an enrolled tool to be run; gives the invocation's id at once, and where a person has to approve it."""
    row = await _asked(ctx, given)
    return shows.shown(ctx, row)


async def _asked(ctx: Ctx, given: Invoke) -> Invocation:
    """The invocation of a request; the same request within its window is the same invocation."""
    if ctx.redacted:
        raise BadInput(
            f"The arguments hold a secret ({', '.join(ctx.redacted)}), and secrets are not passed on. The operator puts"
            " it into the environment of the tool."
        )
    tool = await ctx.read(lambda tx: enrolment.chosen(tx, ctx, given.tool, given.bank))
    # Before the transaction, because a schema may hold patterns that take their time.
    arguments = enrolment.checked(tool, given.arguments)
    handed = await readings.lately(ctx)

    async def body(tx: Tx) -> Changed[tuple[Invocation, bool]]:
        if (await enrolment.chosen(tx, ctx, given.tool, given.bank)).version != tool.version:
            raise Conflict("The tool has just been changed. Look at it, and ask again.")
        row = await _row(tx, ctx, given, tool, arguments, handed)
        if await invocations.count_open(tx, ctx.org, row.credential, ctx.now) >= MOST:
            raise Conflict(f"{MOST} invocations of yours have not ended. Wait for some, or cancel them.")
        if await invocations.insert(tx, row):
            return Changed((row, True), row.bank, [row.id], f"{row.tool} {row.version} {row.arguments}")
        same = await invocations.of_same(tx, ctx.org, row.same or "")
        if same is None:
            raise Conflict("The same request has just ended. Try again.")
        return Changed((same, False), same.bank, [same.id])

    row, is_new = await ctx.change(body)
    if row.state == "awaiting_approval" and row.policy in ("elicitation", "sampling"):
        row = await consenting.asked(ctx, row, tool)
    if is_new and row.state == "awaiting_approval":
        announcing.waits(ctx, row)
    ctx.app.runs.set()
    return row


async def _row(tx: Tx, ctx: Ctx, given: Invoke, tool: ExecTool, arguments: str, handed: list[Reading]) -> Invocation:
    bank = await bank_ops.found(tx, ctx, given.bank)
    if bank is None and "bank:admin" in ctx.principal.scopes:
        bank = await bank_ops.ensured(tx, ctx, given.bank)
    definition, held = tool.definition, deciding.credential(ctx.principal)
    session = ctx.connection.id if ctx.connection is not None else f"bank:{bank.id if bank else 0}"
    state = invocation.begun(definition.approval)
    lasts = definition.queue_s if state == "queued" else definition.approval_s
    return Invocation(
        org=ctx.org,
        bank=bank.id if bank else 0,
        id=ctx.store.new_id(),
        tool=definition.name,
        version=tool.version,
        effect=definition.effect,
        policy=definition.approval,
        arguments=arguments,
        principal=ctx.principal.name,
        credential=held,
        person=ctx.principal.person,
        reason=given.reason,
        same=invocation.same(f"{held} {ctx.principal.name}", session, definition.name, proposal.parsed(arguments)),
        window_until=ctx.now + definition.window_s * SECOND,
        state=state,
        created_at=ctx.now,
        expires_at=ctx.now + lasts * SECOND,
        readings=tuple(handed),
    )


class Run(Invoke):
    """What to run, and how long to wait for it."""

    wait_s: int = Field(600, ge=1, le=3_600, description="Seconds to wait; after that, it goes on without you.")


@operation("exec.run", effect=Effect.MUTATE, scope="exec:invoke")
async def run(ctx: Ctx, given: Run) -> InvocationStatus:
    """Ask for an enrolled tool to be run and wait for its end, hearing its output and progress meanwhile."""
    row = await _asked(ctx, given)
    told, patience = Told(ctx), time.monotonic() + given.wait_s
    pause = SOON_S
    while True:
        after, pieces = await ctx.read(lambda tx: _looked(tx, ctx, row, told.seen))
        is_news = await told.tell(after, pieces)
        if shows.state_of(ctx, after) not in OPEN or time.monotonic() >= patience:
            return shows.shown(ctx, after, await ctx.read(lambda tx: shows.output(tx, after)))  # noqa: B023
        pause = SOON_S if is_news else min(SELDOM_S, pause * 1.5)
        await asyncio.sleep(pause)


async def _looked(tx: Tx, ctx: Ctx, row: Invocation, seen: int) -> tuple[Invocation, list[Printed]]:
    after = await invocations.of_id(tx, ctx.org, row.id) or row
    return after, await invocations.printed(tx, ctx.org, row.id, seen)


class Told:
    """What whoever waits was told so far."""

    def __init__(self, ctx: Ctx) -> None:
        self.ctx, self.seen, self.count, self.state = ctx, -1, 0, ""

    async def tell(self, row: Invocation, pieces: list[Printed]) -> bool:
        """Report what is new; tells whether anything was."""
        state = shows.state_of(self.ctx, row)
        is_turned, is_over = state != self.state, state not in OPEN
        self.state = state
        url = shows.shown(self.ctx, row).approval_url
        told = [f"{state}: {url}" if url else state] if is_turned else []
        cut = [piece.text[n : n + MESSAGE] for piece in pieces for n in range(0, len(piece.text), MESSAGE)]
        self.seen = pieces[-1].n if pieces else self.seen
        for message in [*cut, *told] if is_over else [*told, *cut]:
            await self._report(message)
        return bool(told or cut)

    async def _report(self, message: str) -> None:
        self.count += 1
        # Nobody knows how much is left, so only what has happened counts.
        await self.ctx.report(float(self.count), float(self.count + 1), message)


class OneInvocation(Given):
    """Which invocation."""

    id: Clean = Field(min_length=1, max_length=64, description="The id of the invocation.")


@operation("exec.get", effect=Effect.READ, scope="exec:invoke")
async def get(ctx: Ctx, given: OneInvocation) -> InvocationStatus:
    """Tell how an invocation of yours stands, with what it has printed so far."""

    async def body(tx: Tx) -> InvocationStatus:
        row = await _own(tx, ctx, given.id)
        return shows.shown(ctx, row, await shows.output(tx, row))

    return await ctx.read(body)


async def _own(tx: Tx, ctx: Ctx, id: str) -> Invocation:
    row = await shows.known(tx, ctx, id)
    if row is None or not deciding.is_own(ctx.principal, row):
        raise shows.unknown(id)
    return row


@operation("exec.cancel", effect=Effect.MUTATE, scope="exec:invoke")
async def cancel(ctx: Ctx, given: OneInvocation) -> InvocationStatus:
    """Ask for an invocation of yours to be ended; asking again, or after its end, changes nothing."""

    async def body(tx: Tx) -> Changed[InvocationStatus]:
        row = await _own(tx, ctx, given.id)
        state, touched = shows.state_of(ctx, row), False
        if state in WAITING:
            end = End("cancelled", WAITING, "It was cancelled before it began.")
            touched = await invocations.end(tx, row, end, ctx.now)
        if not touched and state in OPEN:
            touched = await invocations.ask_to_cancel(tx, row, ctx.now)
        after = await _own(tx, ctx, given.id)
        return Changed(shows.shown(ctx, after), row.bank, [row.id] if touched else [])

    told = await ctx.change(body)
    ctx.app.runs.set()
    return told
