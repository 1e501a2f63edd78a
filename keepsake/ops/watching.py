"""The watch: runs every check that is due, in one process even where many work, and writes what was found."""

import asyncio
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from keepsake.context import App
from keepsake.core import anomaly, log
from keepsake.core.clock import HOUR, MINUTE, SECOND
from keepsake.core.errors import Conflict, NotFound
from keepsake.core.hysteresis import Standing
from keepsake.core.lazy import lazy
from keepsake.store import anomalies as anomaly_rows
from keepsake.store import check_results, checks
from keepsake.store.check_results import Behind
from keepsake.store.checks import Check, Ran
from keepsake.store.engine import Tx

if TYPE_CHECKING:
    from keepsake.ops import anomalies, incidents, vitals
    from keepsake.services import probes
else:
    # A process that has nothing to watch need not load these.
    anomalies = lazy("keepsake.ops.anomalies")
    incidents = lazy("keepsake.ops.incidents")
    vitals = lazy("keepsake.ops.vitals")
    probes = lazy("keepsake.services.probes")

#: Runs at once in one process; they wait for answers, not for the processor.
MOST = 500
#: How often what is due is looked for and what was found is written, and how often where nothing is watched.
TICK_S, IDLE_S = 1.0, 5.0
#: How long incidents may still be written once the process was told to end.
GRACE_S = 5.0
#: How often a check is held against its history.
JUDGED = 5 * MINUTE


async def run(app: App) -> None:
    """Watch until cancelled."""
    watch = Watch(app)
    try:
        while True:
            rest = await watch.tick()
            await asyncio.sleep(rest)
    finally:
        await watch.stop()


async def step(app: App) -> int:
    """Run what is due now to its end; tells how many that were."""
    watch = Watch(app)
    await watch.tick()
    held = len(watch.running)
    if held:
        await asyncio.wait(watch.running)
    await watch.settle()
    if watch.turning is not None:
        await watch.turning
    return held


@dataclass(slots=True)
class Watch:
    """The runs that this process has claimed, and what came of them."""

    app: App
    running: "dict[asyncio.Task[Ran], Check]" = field(default_factory=dict)
    ended: list[Ran] = field(default_factory=list)
    #: Runs that open or resolve an incident; those are written one by one, beside the others.
    turns: list[tuple[Ran, Standing]] = field(default_factory=list)
    turning: "asyncio.Task[None] | None" = None
    #: When it last looked.
    seen: int = 1 << 62

    async def tick(self) -> float:
        """Write what has ended, begin what is due; tells for how many seconds there is nothing to do."""
        await self.settle()
        now, engine = self.app.now(), self.app.store.engine
        if now < self.seen and (woken := await engine.claim(lambda tx: checks.bring_back(tx, now))):
            log.warning("a clock that was set back had put checks off", checks=int(woken))
        self.seen = now
        wake = await engine.look(checks.next_wake)
        room = MOST - len(self.running)
        if wake is not None and wake <= now and room > 0:
            for check in await engine.claim(lambda tx: checks.claim(tx, now, room)):
                task = asyncio.create_task(_ran(self.app, check))
                self.running[task] = check
                task.add_done_callback(self._end)
        return IDLE_S if wake is None else TICK_S

    def _end(self, task: "asyncio.Task[Ran]") -> None:
        check = self.running.pop(task)
        if task.cancelled():
            return
        if (error := task.exception()) is None:
            self.ended.append(task.result())
            return
        # A fault of ours is no fault of what is watched, but it must be seen.
        log.error("check broken", check=check.id, error=type(error).__name__, trace=log.trace(error))
        self.ended.append(_told(self.app, check, False, 0, "could not be looked at: an error in Keepsake"))

    async def settle(self) -> None:
        """Write what has ended since the last time."""
        ended = self.ended[:]
        plain: list[tuple[Ran, Standing]] = []
        turns: list[tuple[Ran, Standing]] = []
        for ran in ended:
            standing, turn = ran.check.standing.after(ran.ok, ran.at, ran.check.limits)
            (turns if turn else plain).append((ran, standing))
        for org, runs in groupby(sorted(plain, key=_place), key=lambda run: run[0].check.org):
            await _settled(self.app, org, list(runs))
        # Only what was written is done with: whoever is told to end meanwhile writes it again, which changes nothing.
        del self.ended[: len(ended)]
        self.turns += turns
        self._begin_to_turn()
        await _judged(self.app, [ran.check for ran in ended])

    def _begin_to_turn(self) -> None:
        if self.turning is not None and self.turning.done():
            self.turning.result()
            self.turning = None
        if self.turns and self.turning is None:
            self.turning = asyncio.create_task(self._turn())

    async def _turn(self) -> None:
        while self.turns:
            ran, standing = self.turns.pop(0)
            try:
                await incidents.turned(self.app, ran, standing)
            except Conflict:
                # It was taken over or removed; whoever has it now sees for himself.
                log.info("check lost", check=ran.check.id)
                continue
            log.info("check turned", check=ran.check.id, kind=ran.check.kind, state=standing.state)

    async def stop(self) -> None:
        """Give back what has not ended, so that the next process need not wait for the leases."""
        held = list(self.running.values())
        tasks = list(self.running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.settle()
        if self.turning is not None:
            await asyncio.wait([self.turning], timeout=GRACE_S)
        held += [ran.check for ran, _ in self.turns]
        if held:
            await self.app.store.engine.claim(lambda tx: checks.release(tx, held))


def _place(run: tuple[Ran, Standing]) -> tuple[int, int, int]:
    # Always in this order, so that two processes that write at once do not wait for each other.
    return run[0].check.org, run[0].check.bank, run[0].check.id


async def _settled(app: App, org: int, runs: Sequence[tuple[Ran, Standing]]) -> None:
    await app.store.write(org, lambda tx: checks.settle(tx, runs))


async def _judged(app: App, ran: Iterable[Check]) -> None:
    due = [check for check in ran if check.run % max(1, JUDGED // check.every) == 0]
    for (org, bank), of_bank in groupby(sorted(due, key=_bank), key=_bank):
        await anomalies.judge(app, org, bank, list(of_bank))


def _bank(check: Check | Behind) -> tuple[int, int]:
    return check.org, check.bank


async def _ran(app: App, check: Check) -> Ran:
    """Run one check, again after a pause where it fails."""
    outcome = await _looked(app, check)
    for _ in range(check.retries):
        if outcome.ok:
            break
        await asyncio.sleep(checks.PAUSE / SECOND * random.uniform(0.75, 1.25))
        outcome = await _looked(app, check)
    return _told(app, check, outcome.ok, outcome.latency, outcome.reason)


async def _looked(app: App, check: Check) -> "probes.Outcome":
    if check.kind == "heartbeat":
        return probes.Outcome(not (late := _late(check, app.now())), 0, late)
    if check.kind == "self":
        ill = [f"{sign.name}: {sign.told}" for sign in await vitals.signs(app, check.org) if not sign.ok]
        return probes.Outcome(not ill, 0, f"is not well: {', '.join(ill)}" if ill else "")
    return await probes.probe(check)


def _late(check: Check, now: int) -> str:
    """Why a heartbeat is late; nothing when it was heard, but whoever heard it could not write that down."""
    if check.last_at is None:
        return "was never heard of"
    is_heard = not check.reason and 0 <= now - check.last_at < check.every + check.grace
    return "" if is_heard else "was not heard of in time"


def _told(app: App, check: Check, ok: bool, latency: int, reason: str) -> Ran:
    now = app.now()
    return Ran(check, ok, latency, reason, now, next_due(check, now, random.random()))


def next_due(check: Check, now: int, jitter: float) -> int:
    """When a check is due after a run; the jitter, 0 to 1, keeps those apart that were added or woken together."""
    soon = now + int(check.every * (0.5 + jitter / 2))
    if check.last_at is None:
        return soon
    # From when it was due and not from when it ended, so that slow answers do not make it rarer.
    due = check.due_at + int(check.every * (0.95 + jitter / 10))
    # What was missed, while nobody ran it, is not made up for; and a clock may have been set back meanwhile.
    return due if now < due <= now + 2 * check.every else soon


async def beat(app: App, token: str) -> None:
    """A heartbeat came: whoever has its token says that all is well."""
    now = app.now()
    check = await app.store.engine.claim(lambda tx: checks.of_token(tx, token, now))
    if check is None:
        if not await app.store.engine.look(lambda tx: checks.knows_token(tx, token)):
            raise NotFound("There is no heartbeat of this token. `keepsake check add NAME --heartbeat` makes one.")
        return
    ran = Ran(check, True, 0, "", now, now + check.every + check.grace)
    standing, turn = check.standing.after(True, now, check.limits)
    try:
        await (incidents.turned(app, ran, standing) if turn else _settled(app, check.org, [(ran, standing)]))
    except Conflict:
        # Another beat came a moment later, and says the same.
        log.info("check lost", check=check.id)


async def roll_up(app: App) -> int:
    """Make hours of samples, and drop what is too old; tells how many checks were behind."""
    hour = app.now() // HOUR * HOUR
    behind = await app.store.engine.look(lambda tx: check_results.behind(tx, hour))
    for (org, bank), of_bank in groupby(behind, key=_bank):
        late = list(of_bank)
        for first in range(0, len(late), check_results.BATCH):
            await _rolled(app, org, bank, late[first : first + check_results.BATCH], hour)
        await app.store.write(org, lambda tx: anomaly_rows.prune(tx, org, bank, hour))  # noqa: B023  # awaited here
    return len(behind)


async def _rolled(app: App, org: int, bank: int, late: Sequence[Behind], hour: int) -> None:
    gone = [one.id for one in late if one.removed_at is not None and one.removed_at < hour - check_results.HOURS_FOR]
    ids = [one.id for one in late if one.id not in gone]

    async def body(tx: Tx) -> None:
        since = min(one.rolled_to for one in late)
        samples = await check_results.since(tx, org, bank, ids, since)
        hours = {
            one.id: anomaly.rolled([of for of in samples.get(one.id, []) if one.rolled_to <= of.at < hour])
            for one in late
            if one.id in ids
        }
        await check_results.roll(tx, org, bank, hours, hour)
        await check_results.drop(tx, org, bank, gone)

    await app.store.write(org, body)
