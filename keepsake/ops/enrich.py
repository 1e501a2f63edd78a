"""Enrichment: the background turns what was retained into facts with entities, times and neighbours."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from keepsake.context import App
from keepsake.core import echo, facts, text, when
from keepsake.core.errors import Conflict
from keepsake.ops import extract, handed_out, naming, storing, truth
from keepsake.ops.embedding import Alive
from keepsake.ops.extract import Fact, Reading, Tally
from keepsake.store import banks, embeddings, entities, jobs, memories, mental_models, threads
from keepsake.store.engine import Tx
from keepsake.store.handed_out import Given
from keepsake.store.memories import Memory

BATCH = 25


@dataclass(frozen=True, slots=True)
class Batch:
    """Notes as they were read, and what each of them says."""

    notes: Sequence[Memory]
    facts: Mapping[int, Sequence[Fact]]
    #: What their authors were handed of it before.
    handed: Mapping[str, handed_out.Known]
    model: embeddings.Model
    tally: Tally


async def enrich(app: App, job: jobs.Job, alive: Alive) -> None:
    """Look at every new note of a bank, as long as the job is ours."""
    model = await app.embedding.static_model(app.store)
    tally = Tally()
    while await alive():
        reading = await app.store.read(job.org, lambda tx: _read(tx, job))
        if not reading.notes:
            return
        # A language model may take a minute: no transaction waits for it.
        found = await extract.facts_of(app, job, reading, tally)
        batch = Batch(reading.notes, found, await _handed(app, reading.notes, found), model, tally)
        tally.facts += await app.store.write(job.org, lambda tx: _some(tx, app, job, batch))  # noqa: B023
        tally.notes += len(reading.notes)


async def _read(tx: Tx, job: jobs.Job) -> Reading:
    """The oldest notes that wait, and what stands before each of them."""
    notes = await memories.new(tx, job.org, job.bank, BATCH)
    before = await memories.fetched(tx, job.org, job.bank, [note.before for note in notes if note.before])
    return Reading(notes, {id: memory.text for id, memory in before.items()})


async def _handed(
    app: App, notes: Sequence[Memory], found: Mapping[int, Sequence[Fact]]
) -> dict[str, handed_out.Known]:
    """Which of the facts their author was handed before; one of several must not come back as a proof of itself."""
    forms: dict[str, set[str]] = {}
    for note in notes:
        if note.source is None and len(found[note.id]) > 1:
            forms.setdefault(note.author, set()).update(echo.plain(fact.text) for fact in found[note.id])
    return {
        author: await handed_out.known(app, Given(notes[0].org, author, ""), sorted(told))
        for author, told in forms.items()
    }


async def _some(tx: Tx, app: App, job: jobs.Job, batch: Batch) -> int:
    """Store the facts of those notes that are still as they were read; tells how many."""
    seq = await banks.step(tx, job.org, job.bank)
    if not await jobs.keep(tx, job, app.now()):
        raise Conflict("Someone else enriches this bank now.")
    told: list[tuple[Memory, Fact]] = []
    for note in batch.notes:
        # One by one: a note follows the last fact of the one before it, once that has become facts.
        present = await memories.fetched(tx, job.org, job.bank, [note.id])
        if _is_same(note, present.get(note.id)):
            told += await _facts(tx, app, replace(present[note.id], seq=seq), batch)
    ids = [fact.id for fact, _ in told]
    following = await threads.after(tx, job.org, job.bank, ids)
    before = [fact.before for fact, _ in told if fact.before]
    await storing.lend(tx, job.org, job.bank, sorted({*ids, *following, *before}))
    for fact, found in told:
        await entities.link(tx, app.store, job.org, job.bank, fact.id, naming.named(fact.text, found.entities))
        await truth.settle(tx, app, fact)
    await jobs.wanted(tx, app.store, job.org, job.bank, "embed", app.now())
    if await _consolidates(tx, app, job):
        await jobs.wanted(tx, app.store, job.org, job.bank, "consolidate", app.now())
    await jobs.tell(tx, job, json.dumps(batch.tally.shown(len(batch.notes), len(told))))
    return len(told)


async def _new(tx: Tx, app: App, note: Memory, batch: Batch) -> Sequence[Fact]:
    """The facts of a note without those that were handed out and still hold."""
    found, known = batch.facts[note.id], batch.handed.get(note.author, {})
    if note.source is not None or len(found) < 2 or not known:
        return found
    filed = handed_out.Filed(note.org, note.bank, note.event_at, note.tags, note.metadata)
    standing = await handed_out.standing(tx, app, filed, known)
    return [fact for fact in found if standing.get(echo.plain(fact.text), note.id) == note.id]


def _is_same(note: Memory, now: Memory | None) -> bool:
    """Whether a note still waits with the text that was looked at."""
    return now is not None and (now.kind, now.state, now.text_hash, now.text) == (
        "note",
        "live",
        note.text_hash,
        note.text,
    )


async def _consolidates(tx: Tx, app: App, job: jobs.Job) -> bool:
    """Whether anyone gains: a language model tells something new, and a mental model may wait for it.

    Insights made by rules only say again what the facts say, and would stand beside them in every answer.
    """
    models = await mental_models.listed(tx, job.org, job.bank)
    return bool(app.settings.llm_base_url) or any(model.refresh_after_consolidation for model in models)


async def _facts(tx: Tx, app: App, note: Memory, batch: Batch) -> list[tuple[Memory, Fact]]:
    """A note that says one thing becomes that fact; of more, each becomes a fact of its own."""
    found = await _new(tx, app, note, batch)
    if not found:
        await threads.close_gap(tx, note.org, note.bank, [note.id])
        await storing.hide(tx, note, "merged")
        return []
    if _is_one(note, found):
        fact = _understood(note, found[0])
        await memories.settle(tx, fact)
        return [(fact, found[0])]
    made: list[tuple[Memory, Fact]] = []
    place = await _place(tx, note)
    for one in found:
        fact = replace(
            note,
            id=app.store.new_id(),
            kind="fact",
            text=one.text,
            text_hash=text.digest(one.text),
            tokens=text.cost(one.text),
            parent=note.id,
            span=f"{one.start}:{one.end}",
            parts={"told_by": one.maker} if one.maker else {},
        )
        made.append((await storing.store_at(tx, app, _understood(fact, one), batch.model, place), one))
        place = threads.Place(note.thread, made[-1][0].id, one.text)
    await memories.follow(tx, note.org, note.bank, note.id, made[-1][0].id)
    await storing.hide(tx, note, "rolled")
    return made


def _is_one(note: Memory, found: Sequence[Fact]) -> bool:
    """Whether a note says one thing, which is all of it."""
    said = [(unit.start, unit.end) for unit in extract.units(note)]
    return len(found) == 1 and [(fact.start, fact.end) for fact in found] == said


async def _place(tx: Tx, note: Memory) -> threads.Place:
    """Where the note stood."""
    rows = await memories.fetched(tx, note.org, note.bank, [note.before] if note.before else [])
    return threads.Place(note.thread, note.before, rows[note.before].text if note.before in rows else "")


def _understood(fact: Memory, found: Fact) -> Memory:
    """A fact with its type and the time it speaks of, counted from the event's own time where one was given."""
    fact = replace(fact, fact_type=found.type or facts.fact_type(fact.text))
    at = fact.said_at
    is_given = fact.event_at is not None or fact.happened_from is not None
    window = found.window or next(iter(spoken(fact.text, at)), None)
    if window is None or (is_given and window.start <= at < window.end):
        return fact
    return replace(fact, event_at=at if is_given else None, happened_from=window.start, happened_to=window.end)


def spoken(told: str, at: int) -> list[when.Window]:
    """The times that a text speaks of, without those that have no beginning or no end."""
    return [one for one in when.windows(told, at) if one.start > when.EARLIEST and one.end < when.LATEST]
