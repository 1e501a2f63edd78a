"""The job `observe`: what hooks told becomes sessions, observations and stated rules; no model is asked."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from keepsake.context import App, Changed, Ctx
from keepsake.core import log, observation, stated, words
from keepsake.core.clock import HOUR, MINUTE
from keepsake.core.envelope import Envelope
from keepsake.core.errors import Conflict
from keepsake.core.observation import Observation
from keepsake.core.principal import LOCAL_ORG
from keepsake.core.project import Project
from keepsake.hooks import reading, spool
from keepsake.ops import background, handed_out, storing, summaries
from keepsake.ops.embedding import Alive
from keepsake.store import banks, embeddings, events, files, jobs, memories, projects, sessions, sources, suppressions
from keepsake.store.engine import Tx
from keepsake.store.events import Event
from keepsake.store.memories import Memory
from keepsake.store.sessions import Session

BATCH = 200
#: From this attempt on, events are looked at one by one.
ALONE = 3
#: A client that names no sessions began a new one after a silence of this length.
SILENCE = 4 * HOUR
#: Files that are looked at on disk when a session starts.
LOOKED_AT = 200
OPERATION = "memory.observe"


@dataclass(slots=True)
class Taken:
    """What one batch of a project's events became."""

    bank: banks.Bank
    seq: int
    model: embeddings.Model
    ids: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    #: Sessions to be summed up, with what was said in them.
    ended: dict[int, summaries.Told] = field(default_factory=dict)
    #: Memories that hooks handed out.
    handed: set[int] = field(default_factory=set)


async def observe(app: App, job: jobs.Job, alive: Alive) -> None:
    """Look at every event of an org, as long as the job is ours."""
    model = await app.embedding.static_model(app.store)
    if job.org == LOCAL_ORG:
        await take_in(app)
    while await alive():
        told = await _next(app, job)
        if not told:
            break
        for project, group in _by_project(told):
            await _project(app, job, model, project, group)
    await app.store.write(job.org, lambda tx: events.expire(tx, job.org, app.now()))


async def _next(app: App, job: jobs.Job) -> list[Event]:
    """The events to look at together; where that has failed before, one by one, so that one cannot hold up the rest."""
    if job.attempt < ALONE:
        return await app.store.read(job.org, lambda tx: events.waiting(tx, job.org, BATCH))
    row = await app.store.write(job.org, lambda tx: events.doubt(tx, job.org))
    return [events.of(row)] if row else []


async def take_in(app: App) -> int:
    """Move what hooks spooled into the inbox; tells how many events were new."""
    new = 0
    try:
        found = await asyncio.to_thread(spool.held, app.settings.data_dir)
        for path in found:
            new += await _spooled(app, path)
    except OSError as error:
        log.warning("spool not read", error=type(error).__name__)
    return new


async def _spooled(app: App, path: Path) -> int:
    told, broken = await asyncio.to_thread(spool.read, path)
    if broken:
        log.warning("spooled lines that are no events", lines=broken)
    new = await app.store.write(LOCAL_ORG, lambda tx: events.put(tx, LOCAL_ORG, told, app.now()))
    await asyncio.to_thread(path.unlink, missing_ok=True)
    return new


def _by_project(told: Sequence[Event]) -> Iterator[tuple[Project, list[Event]]]:
    groups: dict[str, list[Event]] = {}
    for event in told:
        groups.setdefault(event.project.identity, []).append(event)
    for group in groups.values():
        yield group[-1].project, group


async def _project(app: App, job: jobs.Job, model: embeddings.Model, project: Project, told: Sequence[Event]) -> None:
    ctx = background.ctx(app, job.org, project.name, OPERATION)

    async def body(tx: Tx) -> Changed[Taken]:
        if not await jobs.keep(tx, job, ctx.now):
            raise Conflict("Someone else looks at these events now.")
        bank = await projects.bank_for(tx, app.store, job.org, project, ctx.now)
        taken = Taken(bank, await banks.step(tx, job.org, bank.id), model)
        for group in _by_session(told):
            await _session(tx, ctx, taken, project, group)
        await events.done(tx, job.org, told)
        if taken.ids:
            await jobs.wanted(tx, app.store, job.org, bank.id, "embed", ctx.now)
        return Changed(taken, bank.id, taken.ids, "\n".join(taken.texts))

    taken = await ctx.change(body)
    if taken.handed:
        await _note_handed(app, job.org, taken)
    for session, said in taken.ended.items():
        await summaries.refresh(app, job, taken.bank, session, said)
    if any(event.envelope.event == "session-start" for event in told):
        await look(app, job.org, taken.bank.id, project.root)


def _by_session(told: Sequence[Event]) -> list[list[Envelope]]:
    groups: dict[str, list[Envelope]] = {}
    for event in told:
        groups.setdefault(event.envelope.session, []).append(event.envelope)
    return list(groups.values())


async def _session(tx: Tx, ctx: Ctx, taken: Taken, project: Project, told: Sequence[Envelope]) -> None:
    """Store what one session's events show."""
    session = await _found(tx, ctx, taken.bank.id, project, told)
    asked: dict[str, int] = {}
    for seen in observation.observed(told, project.root):
        memory = await _observed(tx, ctx, taken, session, seen)
        if memory is not None and seen.type == "prompt":
            asked[seen.narrative] = memory
    for envelope in told:
        if envelope.event == "prompt":
            await _stated(tx, ctx, taken, session, envelope, asked.get(envelope.text.strip()))
        taken.handed |= {int(id) for id in envelope.extra.get("handed", "").split() if id.isdecimal()}
    if any(envelope.event in ("turn-end", "compact", "session-end") for envelope in told):
        taken.ended[session.id] = summaries.told(told)


async def _found(tx: Tx, ctx: Ctx, bank: int, project: Project, told: Sequence[Envelope]) -> Session:
    """The session that events belong to, made when it is new, and moved on to their time."""
    first, last = min(one.at for one in told), max(one.at for one in told)
    key, session = await _key(tx, ctx.org, bank, told[0], first)
    ended = last if told[-1].event == "session-end" else None
    if session is None:
        id = ctx.store.new_id()
        session = Session(id, key, told[0].client, told[0].cwd, project.branch, first, last, ended)
        await sessions.insert(tx, ctx.org, bank, session)
        if await sources.current(tx, ctx.org, bank, "transcript", key) is None:
            await sources.insert(tx, sources.Source(ctx.org, bank, id, "transcript", key, "", "", ctx.now))
        return session
    session = replace(
        session,
        branch=project.branch or session.branch,
        started_at=min(first, session.started_at),
        last_at=max(last, session.last_at),
        ended_at=ended,
    )
    await sessions.update(tx, ctx.org, bank, session)
    return session


async def _key(tx: Tx, org: int, bank: int, envelope: Envelope, at: int) -> tuple[str, Session | None]:
    if "derived" not in envelope.extra:
        return envelope.session, await sessions.named(tx, org, bank, envelope.session)
    session = await sessions.latest(tx, org, bank, envelope.session)
    begins = envelope.event == "session-start" and session is not None and at - session.last_at > MINUTE
    if session is None or begins or at - session.last_at > SILENCE:
        return f"{envelope.session}:{at}", None
    return session.key, session


async def _observed(tx: Tx, ctx: Ctx, taken: Taken, session: Session, seen: Observation) -> int | None:
    memory = _memory(ctx, taken, session, "observation", seen.narrative, seen.at)
    memory = replace(memory, subtype=seen.type, title=seen.title, parts=seen.parts)
    if not await _store(tx, ctx, taken, memory):
        return None
    touched = [files.Touched(memory.id, path, True, seen.at, seen.blobs.get(path, "")) for path in seen.modified]
    touched += [files.Touched(memory.id, path, False, seen.at, seen.blobs.get(path, "")) for path in seen.read]
    if touched:
        await files.add(tx, ctx.org, taken.bank.id, touched)
    return memory.id


async def _stated(tx: Tx, ctx: Ctx, taken: Taken, session: Session, envelope: Envelope, prompt: int | None) -> None:
    """Keep the decisions and rules that a person stated, under their prompt; what is stated again is confirmed."""
    for one in stated.found(envelope.text):
        known = await sessions.stated(tx, ctx.org, taken.bank.id, one.kind, words.digest(one.text))
        if known is not None:
            await memories.confirm(tx, ctx.org, taken.bank.id, known)
            continue
        memory = _memory(ctx, taken, session, one.kind, one.text, envelope.at)
        # A key's holder may be a program; only the owner's own client speaks for the person.
        trust = envelope.extra.get("trust", "owner")
        memory = replace(memory, fact_type="opinion", title=words.line(one.text, 80), trust=trust, parent=prompt)
        await _store(tx, ctx, taken, memory)


def _memory(ctx: Ctx, taken: Taken, session: Session, kind: str, told: str, at: int) -> Memory:
    return Memory(
        org=ctx.org,
        bank=taken.bank.id,
        id=ctx.store.new_id(),
        kind=kind,
        fact_type="experience",
        text=told,
        learned_at=ctx.now,
        author=session.client,
        text_hash=words.digest(told),
        tokens=words.cost(told),
        seq=taken.seq,
        category=kind,
        happened_from=at,
        event_at=at,
        source=session.id,
    )


async def _store(tx: Tx, ctx: Ctx, taken: Taken, memory: Memory) -> bool:
    if await suppressions.has(tx, ctx.org, taken.bank.id, ctx.store.digest(memory.text_hash)):
        return False
    await storing.store(tx, ctx.app, memory, taken.model)
    taken.ids.append(memory.id)
    taken.texts.append(memory.text)
    return True


async def _note_handed(app: App, org: int, taken: Taken) -> None:
    """Know the texts again that hooks handed to the local owner's agents."""
    found = await app.store.read(org, lambda tx: memories.fetched(tx, org, taken.bank.id, sorted(taken.handed)))
    handed_out.given(app, org, background.LOCAL, {id: memory.text for id, memory in found.items()})


async def look(app: App, org: int, bank: int, root: str) -> None:
    """Compare the files that memories tell of with what they hold on disk now, where they are on this machine."""
    if not await asyncio.to_thread(Path(root).is_dir):
        return
    known = await app.store.read(org, lambda tx: files.newest(tx, org, bank, LOOKED_AT))
    now = await asyncio.to_thread(lambda: {path: reading.blob(root, path) for path, _, _ in known})
    changed = {path: now[path] for path, blob, was_changed in known if (now[path] != blob) is not was_changed}
    if changed:
        await app.store.write(org, lambda tx: _changed(tx, org, bank, changed, app.now()))


async def _changed(tx: Tx, org: int, bank: int, changed: dict[str, str], now: int) -> None:
    for path, blob in changed.items():
        await files.changed(tx, org, bank, path, blob or "gone", now)
