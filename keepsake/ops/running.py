"""Running what was agreed to: each once, by one process, its end written down or known to be unknown."""

import asyncio
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keepsake.context import App, Changed, Ctx
from keepsake.core import log, proposal, template
from keepsake.core.clock import DAY
from keepsake.core.enrolment import Enrolment, HttpCall
from keepsake.core.errors import Conflict, KeepsakeError, Unavailable
from keepsake.core.invocation import LEASE, WAITING
from keepsake.core.lazy import lazy
from keepsake.core.principal import Principal
from keepsake.core.printed import Printed
from keepsake.core.template import ENV
from keepsake.ops import background, outcomes
from keepsake.ops import invocations as shows
from keepsake.ops.enrolment import CHANGED
from keepsake.store import embeddings, exec_tools, invocations
from keepsake.store.engine import Tx
from keepsake.store.exec_tools import ExecTool
from keepsake.store.invocations import Due, End, Invocation
from keepsake.store.store import HOLDER

if TYPE_CHECKING:
    from keepsake.services import calling, sandbox
else:
    calling = lazy("keepsake.services.calling")
    sandbox = lazy("keepsake.services.sandbox")

#: Runs at once in one process, and how much is looked at to find them.
MOST, LOOKED_AT = 64, 500
#: How often others' requests are looked for, and how often where nobody ever asked.
POLL_S, IDLE_S = 1.0, 5.0
#: How often what was printed is written down and a wish to cancel is looked for; after how long the lease is renewed.
BEAT_S, RENEW = 0.3, LEASE // 3
#: How often the end of a run is tried to be written, and how long a process that ends waits for its runs.
TRIES, GRACE_S = 6, 10.0
#: How long what has ended is kept.
KEPT_FOR = 90 * DAY


class Busy(Conflict):
    """As many of the tool run as may."""


async def run(app: App) -> None:
    """Run what there is until cancelled."""
    runs = Runs(app)
    try:
        while True:
            app.runs.clear()
            rest = await runs.tick()
            with suppress(TimeoutError):
                await asyncio.wait_for(app.runs.wait(), rest)
    finally:
        await runs.stop()


async def step(app: App) -> int:
    """Run what can be run now to its end; tells how many that were."""
    runs = Runs(app)
    await runs.tick()
    if runs.running:
        await asyncio.wait(list(runs.running))
    return runs.begun


@dataclass(slots=True)
class Runs:
    """What this process runs."""

    app: App
    running: "dict[asyncio.Task[None], Execution]" = field(default_factory=dict)
    begun: int = 0

    async def tick(self) -> float:
        """Begin what may begin, end what is past its time; tells for how many seconds there is nothing to do."""
        now = self.app.now()
        due = await self.app.store.engine.look(lambda tx: invocations.due(tx, now, LOOKED_AT))
        busy: set[tuple[int, str]] = set()
        for one in due:
            if one.state != "queued" or one.expires_at <= now:
                await _lapsed(self.app, one)
            elif len(self.running) < MOST and (one.org, one.tool) not in busy:
                await self._begin(one, busy)
        has_any = bool(due) or await self.app.store.engine.look(invocations.exist)
        return POLL_S if has_any else IDLE_S

    async def _begin(self, due: Due, busy: set[tuple[int, str]]) -> None:
        try:
            found = await _started(self.app, due, busy)
        except Busy:
            return
        if found is None:
            return
        execution = Execution(self.app, *found)
        task = asyncio.create_task(execution.run())
        self.running[task] = execution
        self.begun += 1
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        del self.running[task]
        # Another of the same tool may have waited for it.
        self.app.runs.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("run left", error=type(error).__name__, trace=log.trace(error))

    async def stop(self) -> None:
        """End what runs, and write down that it was ended."""
        for execution in self.running.values():
            execution.stop()
        if self.running:
            await asyncio.wait(list(self.running), timeout=GRACE_S)


async def clear_away(app: App) -> int:
    """Drop what ended long ago, in every org; the audit log still tells of it. Tells how many."""
    before, dropped = app.now() - KEPT_FOR, 0
    for org in await app.store.engine.look(embeddings.orgs):
        dropped += await app.store.write(org, lambda tx: invocations.prune(tx, org, before))  # noqa: B023  # awaited
    return dropped


def _ctx(app: App, org: int, operation: str) -> Ctx:
    return app.ctx(Principal(org, background.NAME, frozenset()), surface="").running(operation)


async def _lapsed(app: App, due: Due) -> None:
    """Write down what time has made of an invocation."""
    ctx = _ctx(app, due.org, f"exec.{'unknown' if due.state == 'running' else 'expire'}")

    async def body(tx: Tx) -> Changed[None]:
        row = await invocations.of_id(tx, due.org, due.id)
        state = shows.state_of(ctx, row) if row is not None else due.state
        if row is None or state == row.state:
            raise Busy("Someone else was quicker.")
        told = shows.why(row, state, await _hindrance(tx, row)) if state == "expired" else ""
        await invocations.end(tx, row, End(state, (row.state,), told), ctx.now)
        if state == "unknown":
            await outcomes.remember(tx, ctx, row, outcomes.Came(state, "Nobody knows what became of it.", ""))
        return Changed(None, row.bank, [row.id])

    await app.embedding.static_model(app.store)
    with suppress(Busy):
        await ctx.change(body)


async def _hindrance(tx: Tx, row: Invocation) -> str:
    """What kept an invocation from its turn."""
    tool = await exec_tools.named(tx, row.org, row.tool)
    most = tool.definition.concurrency if tool is not None else 1
    is_crowded = await invocations.running(tx, row.org, row.tool) >= most
    return f": as many of the tool ran as may ({most})" if is_crowded else ": no worker took it"


async def _started(app: App, due: Due, busy: set[tuple[int, str]]) -> tuple[Invocation, ExecTool, str] | None:
    """Take an invocation to run it, if its tool, its asker and its approval are still what they were."""
    ctx, holder = _ctx(app, due.org, "exec.start"), f"{HOLDER}:{secrets.token_hex(4)}"

    async def body(tx: Tx) -> Changed[tuple[Invocation, ExecTool, str] | None]:
        row = await invocations.of_id(tx, due.org, due.id)
        if row is None or row.state != "queued":
            raise Busy("Someone else was quicker.")
        tool = await exec_tools.hold(tx, row.org, row.tool)
        if tool is None or (why := await _why_not(tx, ctx, row, tool)):
            await invocations.end(tx, row, End("expired", WAITING, why if tool is not None else CHANGED), ctx.now)
            return Changed(None, row.bank, [row.id])
        if await invocations.running(tx, row.org, row.tool) >= tool.definition.concurrency:
            busy.add((row.org, row.tool))
            raise Busy("As many of the tool run as may.")
        if not await invocations.start(tx, row, holder, ctx.now):
            raise Busy("Someone else was quicker.")
        taken = replace(row, state="running", started_at=ctx.now)
        return Changed((taken, tool, holder), row.bank, [row.id], f"{row.version} {row.arguments}")

    return await ctx.change(body)


async def _why_not(tx: Tx, ctx: Ctx, row: Invocation, tool: ExecTool) -> str:
    """Why an invocation must not be run any more; empty when it may."""
    if tool.version != row.version:
        return CHANGED
    if await invocations.is_shut_out(tx, row, ctx.now):
        return "Whoever asked may ask no more."
    return ""


@dataclass(slots=True)
class Execution:
    """One run."""

    app: App
    row: Invocation
    tool: ExecTool
    holder: str
    #: Set to end it.
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    is_stopped: bool = False
    pieces: int = 0
    output: str = ""
    renewed: int = 0

    def stop(self) -> None:
        """End it, because the process ends."""
        self.is_stopped = True
        self.cancelled.set()

    async def run(self) -> None:
        """Run it, telling what it prints, and write down its end."""
        definition = self.tool.definition
        values = {name: os.environ[name] for name in definition.env if name in os.environ}
        printed = Printed(list(values.values()))
        self.renewed = self.app.now()
        beating = asyncio.create_task(self._beating(printed))
        try:
            came = await self._came(definition, values, printed)
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
        try:
            await self._written(printed.ready() + printed.last())
        except KeepsakeError as error:
            # How it ended matters more than its last words.
            log.warning("the last output of a run is lost", invocation=self.row.id, code=error.code)
        if self.is_stopped and came.state == "cancelled":
            came = replace(came, state="failed", outcome="It was ended with the server, and may have done a part.")
        await self._end(came)

    async def _came(self, definition: Enrolment, values: dict[str, str], printed: Printed) -> outcomes.Came:
        """How it ended, whatever went wrong."""

        async def heard(chunk: bytes) -> None:
            printed.add(chunk)

        try:
            if missing := [name for name in definition.env if name not in values]:
                told = f"The variable {missing[0]} is not set where the worker runs, so nothing was run."
                return outcomes.Came("failed", told)
            if definition.http is not None:
                return await self._called(definition, definition.http, values, heard)
            ended = await sandbox.run(self._program(definition, values), heard, self.cancelled)
        except (Unavailable, ValueError) as error:
            return outcomes.Came("failed", str(error))
        return outcomes.Came(ended.state, ended.reason, exit_code=ended.exit_code)

    def _program(self, definition: Enrolment, values: dict[str, str]) -> "sandbox.Program":
        return sandbox.Program(
            argv=definition.command(proposal.parsed(self.row.arguments)),
            mark=str(self.row.id),
            env=values,
            directory=definition.directory,
            timeout_s=definition.timeout_s,
            output_limit=definition.output_limit,
            sandbox=definition.sandbox,
            hidden=[self.app.settings.data_dir],
        )

    async def _called(
        self, definition: Enrolment, http: HttpCall, env: dict[str, str], heard: "calling.Heard"
    ) -> outcomes.Came:
        """Send an HTTP call once; one that got no answer may have been taken all the same."""
        values = definition.values(proposal.parsed(self.row.arguments))
        values |= {f"{ENV}{name}": value for name, value in env.items()}
        body = None if http.body is None else proposal.canonical(template.filled_json(http.body, values)).encode()
        url = http.address(values)
        wanted = calling.Call(
            method=http.method,
            url=url,
            headers=http.header_values(values),
            body=body,
            timeout_s=definition.timeout_s,
            output_limit=definition.output_limit,
            anywhere=http.host in self.app.settings.exec_hosts,
        )
        call = asyncio.create_task(calling.call(wanted, heard))
        stopping = asyncio.create_task(self.cancelled.wait())
        try:
            await asyncio.wait((call, stopping), timeout=definition.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                return _answered(call.result())
            if stopping.done():
                return outcomes.Came("cancelled", "It was broken off; the other side may have done it all the same.")
            told = f"No whole answer came within {definition.timeout_s} s; the other side may have done it."
            return outcomes.Came("timed_out", told)
        finally:
            call.cancel()
            stopping.cancel()
            await asyncio.gather(call, stopping, return_exceptions=True)

    async def _beating(self, printed: Printed) -> None:
        """Write down what is printed, renew the lease, and hear when someone wants it ended."""
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                await self._beat(printed)
            except KeepsakeError as error:
                log.warning("no heartbeat of a run", invocation=self.row.id, code=error.code)

    async def _beat(self, printed: Printed) -> None:
        await self._written(printed.ready())
        now = self.app.now()
        if now - self.renewed >= RENEW:
            self.renewed = now
            await self.app.store.write(self.row.org, lambda tx: invocations.keep(tx, self.row, self.holder, now))
        row = await self.app.store.read(self.row.org, lambda tx: invocations.of_id(tx, self.row.org, self.row.id))
        if row is not None and row.cancel_at is not None:
            self.cancelled.set()

    async def _written(self, text: str) -> None:
        if not text:
            return
        n, self.pieces = self.pieces, self.pieces + 1
        self.output += text
        await self.app.store.write(self.row.org, lambda tx: invocations.write(tx, self.row, n, text))

    async def _end(self, came: outcomes.Came) -> None:
        """Write the end down, again and again while the store does not take it; else nobody knows it."""
        ctx = _ctx(self.app, self.row.org, "exec.end")
        came = replace(came, output=self.output)
        await self.app.embedding.static_model(self.app.store)

        async def body(tx: Tx) -> Changed[None]:
            end = End(came.state, ("running", "unknown"), came.outcome, came.exit_code, self.holder)
            if await invocations.end(tx, self.row, end, ctx.now):
                await outcomes.remember(tx, ctx, self.row, came)
            return Changed(None, self.row.bank, [self.row.id], f"{came.state} {came.outcome} {came.output}")

        for attempt in range(TRIES):
            try:
                await ctx.change(body)
            except KeepsakeError as error:
                log.warning("the end of a run is not written yet", invocation=self.row.id, code=error.code)
                await asyncio.sleep(0.1 * 4**attempt)
            else:
                log.info("ran", tool=self.row.tool, invocation=self.row.id, state=came.state)
                return
        log.error("the end of a run was lost", invocation=self.row.id, state=came.state)


def _answered(status: int) -> outcomes.Came:
    if 200 <= status < 300:
        return outcomes.Came("succeeded", "", exit_code=status)
    return outcomes.Came("failed", f"It was answered with status {status}.", exit_code=status)
