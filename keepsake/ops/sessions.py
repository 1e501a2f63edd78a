"""Sessions of agents: when someone worked on a project, in which client, and what was kept of it."""

from pathlib import PurePosixPath

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import clock, ids
from keepsake.core.clock import DAY, MINUTE
from keepsake.core.errors import NotFound
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.ops import handed_out
from keepsake.ops import records as record_ops
from keepsake.ops.records import Record
from keepsake.store import banks, memories, sessions
from keepsake.store.engine import Tx
from keepsake.store.sessions import Wanted

#: Sessions of one answer, and memories of one session in it.
MOST = 100
DAYS = 7


class ListSessions(InBank):
    """Which sessions."""

    client: Clean = Field("", max_length=100, description="Only those of this client.")
    keys: list[Clean] = Field(
        default_factory=list, max_length=MOST, description="Only these, by the client's ids of them."
    )
    before: Clean | None = Field(None, min_length=1, max_length=64, description="Only those below this one, by its id.")
    limit: int = Field(20, ge=1, le=MOST, description="Maximum number of results.")


class Session(Result):
    """A session."""

    id: str = Field(description="Its id.")
    key: str = Field(description="The client's own id of it.")
    title: str = Field(description="What it was about, where it was summed up; else where it took place.")
    client: str = Field(description="The client in which someone worked.")
    project: str = Field(description="Name of the folder.")
    branch: str = Field(description="The branch that was checked out; empty where that is unknown.")
    started_at: str = Field(description="When it began, ISO 8601.")
    last_at: str = Field(description="When something last happened in it.")
    ended_at: str | None = Field(None, description="When it ended; absent while it goes on.")
    observations: int = Field(description="How many things were observed in it.")
    kept: int = Field(description="How many other memories came from it.")
    summary: str | None = Field(None, description="Id of the memory that sums it up.")


class Sessions(Result):
    """Sessions, the last active first."""

    sessions: list[Session] = Field(description="The last active first.")


@operation("session.list", effect=Effect.READ, scope="memory:read")
async def list_(ctx: Ctx, given: ListSessions) -> Sessions:
    """List the sessions in which agents worked on a bank's project, the last active first."""

    async def body(tx: Tx) -> list[Session]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return []
        below = await _one(tx, bank, given.before) if given.before else None
        wanted = Wanted(
            ctx.org,
            bank.id,
            given.client,
            tuple(given.keys),
            (below.last_at, below.id) if below else None,
            given.limit,
        )
        return await _described(tx, bank, await sessions.page(tx, wanted))

    return Sessions(sessions=await ctx.read(body))


async def _one(tx: Tx, bank: banks.Bank, said: str) -> sessions.Session:
    id = ids.parse(said)
    found = await sessions.by_id(tx, bank.org, bank.id, id) if id else None
    found = found or await sessions.named(tx, bank.org, bank.id, said)
    if found is None:
        raise NotFound("No such session in this bank. List the sessions to find its id.")
    return found


async def _described(tx: Tx, bank: banks.Bank, found: list[sessions.Session]) -> list[Session]:
    """Sessions with their titles and what came of them."""
    if not found:
        return []
    counts = await sessions.held(tx, bank.org, bank.id, [one.id for one in found])
    summaries = await memories.fetched(tx, bank.org, bank.id, [one.summary for one in found if one.summary])
    return [_shown(one, counts.get(one.id, (0, 0)), summaries) for one in found]


def _shown(one: sessions.Session, counts: tuple[int, int], summaries: dict[int, memories.Memory]) -> Session:
    summary = summaries.get(one.summary or 0)
    project = PurePosixPath(one.cwd.replace("\\", "/")).name
    return Session(
        id=str(one.id),
        key=one.key,
        title=(summary.title if summary else "") or (f"Session in {project}" if project else "Session"),
        client=one.client,
        project=project,
        branch=one.branch,
        started_at=clock.iso(one.started_at),
        last_at=clock.iso(one.last_at),
        ended_at=clock.iso(one.ended_at) if one.ended_at is not None else None,
        observations=counts[0],
        kept=counts[1],
        summary=str(summary.id) if summary else None,
    )


class GetSession(InBank):
    """Which session, and what of it."""

    id: Clean = Field(min_length=1, max_length=300, description="Its id, or the client's own id of it.")
    after: Clean | None = Field(
        None, min_length=1, max_length=64, description="Only what came after this memory of it, by its id."
    )
    limit: int = Field(50, ge=1, le=MOST, description="Maximum number of memories.")


class SessionTold(Session):
    """A session with what came from it."""

    told: str = Field(description="What it came to, where it was summed up.")
    records: list[Record] = Field(description="What came from it, in the order of time, but not its summary.")
    has_more: bool = Field(description="Whether there are later ones.")


@operation("session.get", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: GetSession) -> SessionTold:
    """Read one session: what it came to, and what was observed and kept in it, in the order of time."""

    async def body(tx: Tx) -> SessionTold:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            raise NotFound("No such session in this bank. List the sessions to find its id.")
        one = await _one(tx, bank, given.id)
        after = await _place(tx, bank, given.after)
        found = await sessions.told(tx, ctx.org, bank.id, one.id, after, given.limit + 1)
        rows = await memories.fetched(tx, ctx.org, bank.id, found[: given.limit])
        described = {int(each.id): each for each in await record_ops.described(tx, bank, list(rows.values()))}
        [shown] = await _described(tx, bank, [one])
        summary = await memories.fetched(tx, ctx.org, bank.id, [one.summary]) if one.summary else {}
        return SessionTold.model_construct(
            **dict(shown),
            told=next((each.text for each in summary.values()), ""),
            records=[described[id] for id in found[: given.limit] if id in described],
            has_more=len(found) > given.limit,
        )

    found = await ctx.read(body)
    handed_out.told(ctx, found.records)
    return found


async def _place(tx: Tx, bank: banks.Bank, said: str | None) -> tuple[int, int] | None:
    """A memory as a point in time."""
    id = ids.parse(said or "")
    found = await memories.fetched(tx, bank.org, bank.id, [id]) if id else {}
    return next(((one.said_at, one.id) for one in found.values()), None)


class Weeks(InBank):
    """How far back, and by whose days."""

    weeks: int = Field(26, ge=1, le=53, description="How many weeks, this one included.")
    offset_minutes: int = Field(0, ge=-1_440, le=1_440, description="How far the reader's clock is ahead of UTC.")


class Activity(Result):
    """How often agents worked."""

    starts_on: str = Field(description="The first day, a Monday, as YYYY-MM-DD.")
    days: list[int] = Field(description="Sessions that began on each day, the last one today.")
    clients: list[str] = Field(description="The clients in which someone worked, by name.")


@operation("session.activity", effect=Effect.READ, scope="memory:read")
async def activity(ctx: Ctx, given: Weeks) -> Activity:
    """Tell how many sessions began on each day of the last weeks, and in which clients."""
    offset = given.offset_minutes * MINUTE
    today = (ctx.now + offset) // DAY
    # Day 0 was a Thursday.
    first = today - (today + 3) % DAYS - DAYS * (given.weeks - 1)
    since = first * DAY - offset

    async def body(tx: Tx) -> tuple[dict[int, int], list[str]]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return {}, []
        begun = await sessions.days(tx, ctx.org, bank.id, since, offset)
        return begun, await sessions.clients(tx, ctx.org, bank.id, since)

    begun, clients = await ctx.read(body)
    days = [begun.get(day, 0) for day in range(first, today + 1)]
    return Activity(starts_on=clock.iso(first * DAY)[:10], days=days, clients=clients)
