"""Enrichment: the background turns what was retained into facts with entities, times and neighbours."""

from dataclasses import replace

from keepsake.context import App
from keepsake.core import facts, names, text, when
from keepsake.ops import storing, truth
from keepsake.ops.embedding import Alive
from keepsake.store import banks, embeddings, entities, jobs, memories, mental_models, threads
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory

BATCH = 25


async def enrich(app: App, job: jobs.Job, alive: Alive) -> None:
    """Look at every new note of a bank, as long as the job is ours."""
    model = await app.embedding.static_model(app.store)
    while await alive():
        if not await app.store.write(job.org, lambda tx: _some(tx, app, job, model)):
            return


async def _some(tx: Tx, app: App, job: jobs.Job, model: embeddings.Model) -> int:
    """Enrich the oldest notes that wait; returns how many."""
    notes = await memories.new(tx, job.org, job.bank, BATCH)
    if not notes:
        return 0
    seq = await banks.step(tx, job.org, job.bank)
    told = [fact for note in notes for fact in await _facts(tx, app, replace(note, seq=seq), model)]
    ids = [fact.id for fact in told]
    following = await threads.after(tx, job.org, job.bank, ids)
    before = [fact.before for fact in told if fact.before]
    await storing.lend(tx, job.org, job.bank, sorted({*ids, *following, *before}))
    for fact in told:
        await entities.link(tx, app.store, job.org, job.bank, fact.id, named(fact.text))
        await truth.settle(tx, app, fact)
    await jobs.wanted(tx, app.store, job.org, job.bank, "embed", app.now())
    if await _consolidates(tx, app, job):
        await jobs.wanted(tx, app.store, job.org, job.bank, "consolidate", app.now())
    return len(notes)


async def _consolidates(tx: Tx, app: App, job: jobs.Job) -> bool:
    """Whether anyone gains: a language model tells something new, and a mental model may wait for it.

    Insights made by rules only say again what the facts say, and would stand beside them in every answer.
    """
    models = await mental_models.listed(tx, job.org, job.bank)
    return bool(app.settings.llm_base_url) or any(model.refresh_after_consolidation for model in models)


async def _facts(tx: Tx, app: App, note: Memory, model: embeddings.Model) -> list[Memory]:
    """A note that says one thing becomes that fact; of more, each becomes a fact of its own."""
    spans = [] if note.parts.get("whole") else facts.split(note.text)
    if len(spans) < 2:
        fact = _understood(note)
        await memories.settle(tx, fact)
        return [fact]
    made: list[Memory] = []
    place = await _place(tx, note)
    for span in spans:
        own = note.text[span.start : span.end]
        fact = replace(
            note,
            id=app.store.new_id(),
            kind="fact",
            text=own,
            text_hash=text.digest(own),
            tokens=text.cost(own),
            parent=note.id,
            span=f"{span.start}:{span.end}",
        )
        made.append(await storing.store_at(tx, app, _understood(fact), model, place))
        place = threads.Place(note.thread, made[-1].id, own)
    await memories.follow(tx, note.org, note.bank, note.id, made[-1].id)
    await storing.hide(tx, note, "rolled")
    return made


async def _place(tx: Tx, note: Memory) -> threads.Place:
    """Where the note stood."""
    rows = await memories.fetched(tx, note.org, note.bank, [note.before] if note.before else [])
    return threads.Place(note.thread, note.before, rows[note.before].text if note.before in rows else "")


def _understood(fact: Memory) -> Memory:
    """A fact with its type, and the time it speaks of where nobody gave one."""
    fact = replace(fact, fact_type=facts.fact_type(fact.text))
    if fact.happened_from is not None:
        return fact
    windows = when.windows(fact.text, fact.learned_at)
    return replace(fact, happened_from=windows[0].start, happened_to=windows[0].end) if windows else fact


def named(told: str) -> list[entities.Named]:
    """Who and what a text speaks of, each once."""
    found: dict[str, entities.Named] = {}
    for mention in names.entities(told):
        folded = names.folded(mention.name)
        if folded and (folded not in found or mention.role == "speaker"):
            found[folded] = entities.Named(mention.name, folded, mention.kind, mention.role)
    return list(found.values())
