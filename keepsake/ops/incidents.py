"""Incidents: as people see them, say something of them, and as the background opens and resolves them."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field

from keepsake.context import App, Changed, Ctx
from keepsake.core import clock, hysteresis, ids, text
from keepsake.core.clock import MINUTE, SECOND
from keepsake.core.errors import Conflict, NotFound
from keepsake.core.hysteresis import Standing
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean, Filled
from keepsake.ops import background, retrieve, storing
from keepsake.ops import banks as bank_ops
from keepsake.store import banks, checks, embeddings, incidents, jobs, memories
from keepsake.store.checks import Check, Ran
from keepsake.store.engine import Tx
from keepsake.store.incidents import State
from keepsake.store.memories import Memory

TAG = "incident"
#: Earlier incidents that are shown with a new one, and how near in meaning they must be.
EARLIER, NEAR = 3, 0.3
#: Notes that the memory of an incident tells.
TOLD_NOTES = 10
LONGEST_NOTE = 2_000


class Note(Result):
    """What someone said of an incident."""

    at: str = Field(description="When, ISO 8601.")
    author: str = Field(description="Who.")
    text: str = Field(description="What was said.")


class Earlier(Result):
    """An earlier incident that resembles this one."""

    id: str = Field(description="Id of the incident.")
    check: str = Field(description="Name of its check.")
    reason: str = Field(description="Why the check failed then.")
    opened_at: str = Field(description="When it began, ISO 8601.")
    resolved_at: str | None = Field(None, description="When it was over.")
    memory: str | None = Field(None, description="Id of the memory that tells it, with what was noted.")


class Incident(Result):
    """A time in which a check was down."""

    id: str = Field(description="Id of the incident.")
    check: str = Field(description="Name of the check.")
    target: str = Field(description="What the check watches.")
    state: State = Field(description="open or resolved.")
    reason: str = Field(description="Why the check failed when it opened.")
    opened_at: str = Field(description="When it began, ISO 8601.")
    resolved_at: str | None = Field(None, description="When it was over, ISO 8601.")
    times: int = Field(description="How often it came back within one incident, the first time included.")
    acknowledged_at: str | None = Field(None, description="When someone took it on, ISO 8601.")
    acknowledged_by: str | None = Field(None, description="Who took it on.")
    notes: list[Note] = Field(description="What was said of it, oldest first.")
    memory: str | None = Field(None, description="Id of the memory that tells it.")
    earlier: list[Earlier] = Field(description="Earlier incidents like it, most alike first, as recall found them.")


class Incidents(Result):
    """Incidents, newest first."""

    incidents: list[Incident] = Field(description="Newest first.")
    total: int = Field(description="How many there are in all.")


class ListIncidents(InBank):
    """Which incidents."""

    state: State | None = Field(None, description="Only open or only resolved ones.")
    check: Clean | None = Field(None, min_length=1, max_length=100, description="Only those of the check of this name.")
    limit: int = Field(20, ge=1, le=100, description="Maximum number of results.")
    offset: int = Field(0, ge=0, le=100_000, description="How many to skip.")


@operation("incident.list", effect=Effect.READ, scope="watch:read")
async def list_(ctx: Ctx, given: ListIncidents) -> Incidents:
    """List incidents, newest first: which check was down, from when to when, why, and what is known of it."""

    async def body(tx: Tx) -> Incidents:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return Incidents(incidents=[], total=0)
        page = incidents.Page(ctx.org, bank.id, given.limit, given.state, given.check, given.offset)
        rows, total = await incidents.listed(tx, page)
        return Incidents(incidents=await _described(tx, bank, rows), total=total)

    return await ctx.read(body)


async def _described(tx: Tx, bank: banks.Bank, rows: Sequence[incidents.Incident]) -> list[Incident]:
    """Incidents as everyone sees them."""
    notes = await incidents.notes(tx, bank.org, bank.id, [row.id for row in rows])
    wanted = {id for row in rows for id in row.earlier}
    before = await incidents.several(tx, bank.org, bank.id, sorted(wanted))
    told = [row.memory for row in (*rows, *before.values()) if row.memory is not None]
    # A memory may have been forgotten since.
    kept = set(await memories.fetched(tx, bank.org, bank.id, told))
    return [_shown(row, notes.get(row.id, []), before, kept) for row in rows]


def _shown(
    row: incidents.Incident, notes: list[incidents.Note], before: dict[int, incidents.Incident], kept: set[int]
) -> Incident:
    return Incident(
        id=str(row.id),
        check=row.name,
        target=row.target,
        state="open" if row.resolved_at is None else "resolved",
        reason=row.reason,
        opened_at=clock.iso(row.opened_at),
        resolved_at=_moment(row.resolved_at),
        times=row.flaps + 1,
        acknowledged_at=_moment(row.acknowledged_at),
        acknowledged_by=row.acknowledged_by or None,
        notes=[Note(at=clock.iso(note.at), author=note.author, text=note.text) for note in notes],
        memory=str(row.memory) if row.memory in kept else None,
        earlier=[_resembling(before[id], kept) for id in row.earlier if id in before],
    )


def _resembling(row: incidents.Incident, kept: set[int]) -> Earlier:
    return Earlier(
        id=str(row.id),
        check=row.name,
        reason=row.reason,
        opened_at=clock.iso(row.opened_at),
        resolved_at=_moment(row.resolved_at),
        memory=str(row.memory) if row.memory in kept else None,
    )


def _moment(at: int | None) -> str | None:
    return None if at is None else clock.iso(at)


class OneIncident(InBank):
    """Which incident."""

    id: Clean = Field(min_length=1, max_length=64, description="The id of the incident.")


class AddNote(OneIncident):
    """What to say of an incident."""

    text: Filled = Field(max_length=LONGEST_NOTE, description="What was found, done or decided.")


async def _one(tx: Tx, ctx: Ctx, given: OneIncident) -> tuple[banks.Bank, incidents.Incident]:
    """The incident meant; another bank's is as unknown as none."""
    bank = await bank_ops.found(tx, ctx, given.bank)
    id = ids.parse(given.id)
    row = await incidents.get(tx, ctx.org, bank.id, id) if bank and id else None
    if bank is None or row is None:
        raise NotFound(f"No incident {given.id!r} in this bank. Use incident.list to see the ids.")
    return bank, row


@operation("incident.get", effect=Effect.READ, scope="watch:read")
async def get(ctx: Ctx, given: OneIncident) -> Incident:
    """Get one incident: what broke, from when to when, what was said of it and what is known from before."""

    async def body(tx: Tx) -> Incident:
        bank, row = await _one(tx, ctx, given)
        [shown] = await _described(tx, bank, [row])
        return shown

    return await ctx.read(body)


async def _locked(tx: Tx, ctx: Ctx, given: OneIncident) -> tuple[banks.Bank, incidents.Incident]:
    """The incident as it stands once no other writer of the bank can change it."""
    bank, _ = await _one(tx, ctx, given)
    await banks.step(tx, ctx.org, bank.id)
    return await _one(tx, ctx, given)


@operation("incident.note", effect=Effect.MUTATE, scope="watch:write")
async def note(ctx: Ctx, given: AddNote) -> Incident:
    """Say something of an incident; who may write memories too has it told by the incident's memory."""
    model = await ctx.app.embedding.static_model(ctx.store)

    async def body(tx: Tx) -> Changed[Incident]:
        bank, row = await _locked(tx, ctx, given)
        told = "memory:write" in ctx.principal.scopes
        id = ctx.store.new_id()
        await incidents.note(
            tx, incidents.Note(ctx.org, bank.id, row.id, id, ctx.now, ctx.principal.name, given.text, told)
        )
        if told:
            row = await _remembered(tx, ctx, row, model)
        [shown] = await _described(tx, bank, [row])
        return Changed(shown, bank.id, [row.id, id], given.text)

    return await ctx.change(body)


@operation("incident.acknowledge", effect=Effect.MUTATE, scope="watch:write")
async def acknowledge(ctx: Ctx, given: OneIncident) -> Incident:
    """Take an incident on; doing it again changes nothing."""

    async def body(tx: Tx) -> Changed[Incident]:
        bank, row = await _locked(tx, ctx, given)
        is_first = row.acknowledged_at is None
        if is_first:
            row = replace(row, acknowledged_at=ctx.now, acknowledged_by=ctx.principal.name, updated_at=ctx.now)
            await incidents.put(tx, row)
        [shown] = await _described(tx, bank, [row])
        return Changed(shown, bank.id, [row.id] if is_first else [])

    return await ctx.change(body)


async def turned(app: App, ran: Ran, standing: Standing) -> None:
    """Write a run that opens or resolves an incident, with the incident and the memory of it, all or nothing."""
    check = ran.check
    bank = await app.store.read(check.org, lambda tx: banks.of_id(tx, check.org, check.bank))
    if bank is None:
        return
    is_down = standing.state == "down"
    ctx = background.ctx(app, check.org, bank.name, "incident.open" if is_down else "incident.resolve")
    model = await app.embedding.static_model(app.store)
    earlier = await _like(ctx, check, ran.reason) if is_down else ()

    async def body(tx: Tx) -> Changed[None]:
        # The bank's writers come one after the other, so that nobody changes the incident meanwhile.
        await banks.step(tx, ctx.org, bank.id)
        if not await checks.holds(tx, check):
            raise Conflict("Someone else runs this check now.")
        await checks.settle(tx, [(ran, standing)])
        row = await (_opened(tx, ctx, ran, earlier) if is_down else _resolved(tx, ctx, check, ran.at))
        if row is None:
            return Changed(None, bank.id, [check.id])
        row = await _remembered(tx, ctx, row, model)
        return Changed(None, bank.id, [row.id], row.reason)

    await ctx.change(body)


async def _like(ctx: Ctx, check: Check, reason: str) -> tuple[int, ...]:
    """Earlier incidents like the one that opens, found as every memory is."""
    asked = f"check {check.name} failed: {reason}"
    question = retrieve.Question(asked, ctx.now, "high", tags=(TAG,), kinds=("observation",))
    hits = await retrieve.search_bank(ctx, ctx.bank, question)
    near = [int(hit.memory.id) for hit in hits if hit.similarity >= NEAR]
    known = await ctx.read(lambda tx: incidents.of_memories(tx, ctx.org, check.bank, near))
    return tuple(dict.fromkeys(known[id] for id in near if id in known))[:EARLIER]


async def _opened(tx: Tx, ctx: Ctx, ran: Ran, earlier: tuple[int, ...]) -> incidents.Incident:
    check = ran.check
    last = await incidents.latest(tx, ctx.org, check.bank, check.id)
    if last is not None and (last.resolved_at is None or hysteresis.is_same(last.resolved_at, ran.at, check.every)):
        row = replace(last, reason=ran.reason, resolved_at=None, flaps=last.flaps + 1, updated_at=ctx.now)
    else:
        row = incidents.Incident(
            org=ctx.org,
            bank=check.bank,
            id=ctx.store.new_id(),
            check_id=check.id,
            name=check.name,
            target=check.target,
            reason=ran.reason,
            # It began with the first failure in a row, not with the one that made us sure.
            opened_at=max(check.created_at, ran.at - (check.open_after - 1) * check.every),
            updated_at=ctx.now,
            earlier=earlier,
        )
    await checks.flapped(tx, check, row.flaps)
    return row


async def _resolved(tx: Tx, ctx: Ctx, check: Check, at: int) -> incidents.Incident | None:
    row = await incidents.latest(tx, ctx.org, check.bank, check.id)
    if row is None or row.resolved_at is not None:
        return None
    return replace(row, resolved_at=max(at, row.opened_at), updated_at=ctx.now)


async def close(tx: Tx, ctx: Ctx, check: Check, model: embeddings.Model) -> None:
    """End the incident of a check that is removed."""
    row = await _resolved(tx, ctx, check, ctx.now)
    if row is not None:
        told = "The check was removed while it failed."
        id = ctx.store.new_id()
        await incidents.note(tx, incidents.Note(ctx.org, row.bank, row.id, id, ctx.now, ctx.principal.name, told, True))
        await _remembered(tx, ctx, row, model)


async def _remembered(tx: Tx, ctx: Ctx, row: incidents.Incident, model: embeddings.Model) -> incidents.Incident:
    """Write an incident, and tell it by a memory that takes the place of what told it before."""
    notes = (await incidents.notes(tx, row.org, row.bank, [row.id])).get(row.id, [])
    said = _story(row, [note.text for note in notes if note.told])
    id = ctx.store.new_id()
    memory = Memory(
        org=row.org,
        bank=row.bank,
        id=id,
        kind="observation",
        subtype=TAG,
        fact_type="experience",
        title=f"Incident of the check {row.name}",
        text=said,
        learned_at=ctx.now,
        author=background.NAME,
        text_hash=text.digest(said),
        tokens=text.cost(said),
        seq=await banks.step(tx, row.org, row.bank),
        category=TAG,
        tags=(TAG, f"check:{row.name}"),
        metadata={"incident": str(row.id), "check": row.name, "state": "resolved" if row.resolved_at else "open"},
        event_at=row.opened_at,
        happened_from=row.opened_at,
        happened_to=row.resolved_at,
    )
    if row.memory is not None:
        await memories.supersede(tx, row.org, row.bank, [row.memory], id, ctx.now)
    await storing.store(tx, ctx.app, memory, model)
    await jobs.wanted(tx, ctx.store, row.org, row.bank, "embed", ctx.now)
    made = replace(row, memory=id)
    await incidents.put(tx, made)
    return made


def _story(row: incidents.Incident, notes: Sequence[str]) -> str:
    """What is remembered of an incident."""
    watched = f" ({row.target})" if row.target else ""
    again = f" In that while it failed {row.flaps + 1} times." if row.flaps else ""
    if row.resolved_at is None:
        when = f"has failed since {_minute(row.opened_at)}"
    else:
        lasted = _lasted(row.resolved_at - row.opened_at)
        when = f"failed from {_minute(row.opened_at)} to {_minute(row.resolved_at)} ({lasted})"
    said = "".join(f"\nNote: {note}" for note in notes[-TOLD_NOTES:])
    return f"The check {row.name}{watched} {when}: it {row.reason}.{again}{said}"


def _minute(at: int) -> str:
    return f"{clock.iso(at)[:16].replace('T', ' ')} UTC"


def _lasted(length: int) -> str:
    minutes = round(length / MINUTE)
    if minutes < 1:
        return f"{length // SECOND} seconds"
    return f"{minutes} minutes" if minutes < 120 else f"{minutes // 60} hours {minutes % 60} minutes"
