"""Scanning: finds the secrets that older versions let in, and takes them out of everything that holds them."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import secrets, text
from keepsake.core.models import InBank, Receipt, Result
from keepsake.core.operation import Effect, operation
from keepsake.ops import banks as bank_ops
from keepsake.ops import naming, receipts, storing
from keepsake.store import banks, entities, jobs, memories, redactions, search, threads
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory
from keepsake.store.redactions import Plain, Told

#: Rows read at once, and rows rewritten by one transaction.
PAGE, BATCH = 500, 100


class Finding(Result):
    """Something that holds secrets; never the secrets."""

    kind: str = Field(description="memory, document, bank, model, directive, relation, artifact or chat.")
    id: str = Field(description="Its id.")
    secrets: list[str] = Field(description="The kinds of secrets in it.")


class Scan(InBank):
    """Which bank, and how much to tell."""

    limit: int = Field(1_000, ge=1, le=10_000, description="Maximum number of findings to list; all are counted.")


class Scanned(Result):
    """What holds secrets."""

    bank: str = Field(description="Name of the bank.")
    looked_at: int = Field(description="How many memories, documents and other texts were read.")
    total: int = Field(description="How many of them hold a secret.")
    secrets: dict[str, int] = Field(description="How many hold a secret of each kind.")
    findings: list[Finding] = Field(description="Which ones, never what they say.")


@operation("memory.scan", effect=Effect.READ, scope="memory:read")
async def scan(ctx: Ctx, given: Scan) -> Scanned:
    """Find the memories, documents and other texts of a bank that hold a secret; tells ids and kinds, never values."""
    bank = await ctx.read(lambda tx: bank_ops.found(tx, ctx, given.bank))
    name, _ = bank_ops.wanted(ctx, given.bank)
    findings: list[Finding] = []
    kinds: Counter[str] = Counter()
    looked_at = 0
    async for found in _everything(ctx, bank):
        looked_at += 1
        if not found.names:
            continue
        kinds.update(found.names)
        findings.append(Finding(kind=found.kind, id=found.id, secrets=list(found.names)))
    return Scanned(
        bank=name, looked_at=looked_at, total=len(findings), secrets=dict(kinds), findings=findings[: given.limit]
    )


class Redaction(Result):
    """What was taken out."""

    bank: str = Field(description="Name of the bank.")
    memories: int = Field(description="Memories that were rewritten.")
    documents: int = Field(description="Documents that were rewritten, each revision counted.")
    others: int = Field(description="Other texts that were rewritten: of the bank, of models, of directives.")
    receipts: list[str] = Field(description="Receipts, one for each step.")
    scrubbed: bool = Field(
        description="Whether the database file was rewritten as well; PostgreSQL's own vacuum sees to that."
    )


@operation("memory.redact", effect=Effect.DESTRUCTIVE, scope="memory:delete")
async def redact(ctx: Ctx, given: InBank) -> Redaction:
    """Take every secret out of what a bank holds, from text, index and vectors, for good; leaves receipts."""
    bank = await ctx.read(lambda tx: bank_ops.found(tx, ctx, given.bank))
    name, _ = bank_ops.wanted(ctx, given.bank)
    done = Counter[str]()
    made: list[str] = []
    if bank is not None:
        # Loaded before the transactions, which may wait for nothing.
        await ctx.app.embedding.static_model(ctx.store)
        async for work in _steps(ctx, bank):
            receipt = await _rewritten(ctx, bank, work)
            made.append(receipt.id)
            done.update({"memories": receipt.memories, "documents": receipt.documents, "others": len(work.plain)})
    scrubbed = bool(made) and await redactions.scrub(ctx.store.engine)
    return Redaction(
        bank=name,
        memories=done["memories"],
        documents=done["documents"],
        others=done["others"],
        receipts=made,
        scrubbed=scrubbed,
    )


@dataclass(frozen=True, slots=True)
class Found:
    """Something that was looked at, and what is in it."""

    kind: str
    id: str
    names: tuple[str, ...]


async def _everything(ctx: Ctx, bank: banks.Bank | None) -> AsyncIterator[Found]:
    if bank is None:
        return
    async for told in _sources(ctx, bank):
        yield Found("document", told.key if not secrets.redacted(told.key).cuts else str(told.id), _source(told)[1])
    async for memory in _memories(ctx, bank):
        yield Found("memory", str(memory.id), _memory(memory)[1])
    for row in await ctx.read(lambda tx: redactions.plain(tx, ctx.org, bank.id)):
        id = bank.name if row.table.kind == "bank" else "/".join(str(part) for part in row.keys.values())
        yield Found(row.table.kind, id, _plain(row)[1])


async def _memories(ctx: Ctx, bank: banks.Bank) -> AsyncIterator[Memory]:
    after = 0
    while rows := await ctx.read(lambda tx: redactions.memories_after(tx, ctx.org, bank.id, after, PAGE)):  # noqa: B023
        for row in sorted(rows, key=lambda row: row.id):
            yield row
            after = row.id


async def _sources(ctx: Ctx, bank: banks.Bank) -> AsyncIterator[Told]:
    after = 0
    while rows := await ctx.read(lambda tx: redactions.sources_after(tx, ctx.org, bank.id, after, PAGE)):  # noqa: B023
        for row in rows:
            yield row
            after = row.id


def _memory(memory: Memory) -> tuple[Memory, tuple[str, ...]]:
    """A memory without its secrets, and what they are."""
    body, title, slug, category = (
        secrets.redacted(part) for part in (memory.text, memory.title, memory.slug, memory.category)
    )
    tags = [secrets.redacted(tag) for tag in memory.tags]
    metadata, parts = secrets.redacted_json(dict(memory.metadata)), secrets.redacted_json(memory.parts)
    assert isinstance(metadata.value, dict) and isinstance(parts.value, dict)
    found = [name for part in (body, title, slug, category, *tags) for name in part.found]
    found += [*metadata.found, *parts.found]
    clean = replace(
        memory,
        text=body.text,
        title=title.text,
        # A name holds words of what was cut out.
        slug="" if body.cuts or title.cuts or slug.cuts else memory.slug,
        category=category.text,
        tags=tuple(dict.fromkeys(tag.text for tag in tags)),
        metadata=metadata.value,
        parts=parts.value,
        tokens=text.cost(body.text),
        text_hash=text.digest(body.text) if body.cuts else memory.text_hash,
    )
    return clean, tuple(dict.fromkeys(found))


def _source(told: Told) -> tuple[Told, tuple[str, ...]]:
    body, key, uri = (secrets.redacted(part) for part in (told.text, told.key, told.uri))
    meta = secrets.redacted_json(told.meta)
    assert isinstance(meta.value, dict)
    found = dict.fromkeys((*body.found, *key.found, *uri.found, *meta.found))
    return Told(told.id, key.text, uri.text, body.text, meta.value), tuple(found)


def _plain(row: Plain) -> tuple[Plain, tuple[str, ...]]:
    found: dict[str, None] = {}
    texts = {}
    for name, value in row.texts.items():
        is_json = name in ("tags", "evidence", "citations") and value[:1] in ("[", "{")
        made = secrets.redacted_json(json.loads(value) if is_json else value)
        found |= dict.fromkeys(made.found)
        texts[name] = value if not made.found else json.dumps(made.value) if is_json else str(made.value)
    return Plain(row.table, row.keys, texts), tuple(found)


def _told_again(memory: Memory, was: str, now: secrets.Redacted) -> Memory:
    """A memory that stands in a text which was redacted: its span fits again, and its words are those of the text."""
    if not memory.span:
        return memory
    start, end = (int(part) for part in memory.span.split(":"))
    first, last = now.moved(start), now.moved(end)
    moved = replace(memory, span=f"{first}:{last}")
    if memory.text != was[start:end] or memory.text == now.text[first:last]:
        return moved
    said = now.text[first:last]
    return replace(moved, text=said, text_hash=text.digest(said), tokens=text.cost(said))


@dataclass(frozen=True, slots=True)
class Work:
    """What one transaction rewrites: each as it was and as it will be."""

    memories: Sequence[tuple[Memory, Memory]] = ()
    sources: Sequence[Told] = ()
    plain: Sequence[Plain] = ()


async def _steps(ctx: Ctx, bank: banks.Bank) -> AsyncIterator[Work]:
    """Texts that others point into come first, each with all that points into it."""
    async for told in _sources(ctx, bank):
        clean, found = _source(told)
        if found:
            yield Work(await _resting(ctx, bank, told), sources=[clean])
    dirty: list[tuple[Memory, Memory]] = []
    async for memory in _memories(ctx, bank):
        clean_memory, found = _memory(memory)
        if found:
            dirty += [(memory, clean_memory), *await _made_from(ctx, bank, memory)]
        if len(dirty) >= BATCH:
            yield Work(_once(dirty))
            dirty = []
    if dirty:
        yield Work(_once(dirty))
    rows = await ctx.read(lambda tx: redactions.plain(tx, ctx.org, bank.id))
    if plain := [clean_row for clean_row, found in map(_plain, rows) if found]:
        yield Work(plain=plain)


async def _resting(ctx: Ctx, bank: banks.Bank, told: Told) -> list[tuple[Memory, Memory]]:
    """The memories of a source that its redaction changes."""

    async def body(tx: Tx) -> list[Memory]:
        ids = await memories.of_source(tx, ctx.org, bank.id, told.id)
        return list((await memories.fetched(tx, ctx.org, bank.id, ids)).values())

    now = secrets.redacted(told.text)
    pairs = [(row, _memory(_told_again(row, told.text, now))[0]) for row in await ctx.read(body)]
    return [(was, clean) for was, clean in pairs if was != clean]


async def _made_from(ctx: Ctx, bank: banks.Bank, note: Memory) -> list[tuple[Memory, Memory]]:
    """The facts of a note that its redaction changes."""

    async def body(tx: Tx) -> list[Memory]:
        ids = await memories.children(tx, ctx.org, bank.id, [note.id])
        return list((await memories.fetched(tx, ctx.org, bank.id, ids)).values())

    now = secrets.redacted(note.text)
    pairs = [(row, _memory(_told_again(row, note.text, now))[0]) for row in await ctx.read(body)]
    return [(was, clean) for was, clean in pairs if was != clean]


def _once(pairs: Sequence[tuple[Memory, Memory]]) -> list[tuple[Memory, Memory]]:
    """A fact that holds a secret itself was met with its note already: that is the one whose span fits."""
    kept: dict[int, tuple[Memory, Memory]] = {}
    for was, clean in pairs:
        kept.setdefault(was.id, (was, clean))
    return list(kept.values())


async def _rewritten(ctx: Ctx, bank: banks.Bank, work: Work) -> Receipt:
    """Rewrite, and leave a receipt."""

    async def body(tx: Tx) -> Changed[Receipt]:
        seq = await banks.step(tx, ctx.org, bank.id)
        for source in work.sources:
            await redactions.rewrite_source(tx, ctx.org, bank.id, source, text.digest(source.text))
        for row in work.plain:
            await redactions.rewrite_plain(tx, ctx.org, bank.id, row)
        fresh = [
            clean for was, clean in work.memories if await redactions.rewrite_memory(tx, was, replace(clean, seq=seq))
        ]
        await _findable(tx, ctx, bank, fresh, seq)
        targets = [*(clean.id for clean in fresh), *(source.id for source in work.sources)]
        counts = {"memories": len(fresh), "documents": len(work.sources), "others": len(work.plain)}
        receipt = await receipts.leave(tx, ctx, bank.id, counts, sorted(targets), [clean.id for clean in fresh])
        return Changed(receipt, bank.id, targets or [bank.id])

    return await ctx.change(body)


async def _findable(tx: Tx, ctx: Ctx, bank: banks.Bank, fresh: Sequence[Memory], seq: int) -> None:
    """Make words, vectors and entities again, of the memories and of the neighbours they lent words to."""
    ids = [memory.id for memory in fresh]
    seen = set(await redactions.indexed(tx, ctx.org, bank.id, ids))
    await search.remove(tx, ctx.org, bank.id, sorted(seen))
    named = await entities.unlink(tx, ctx.org, bank.id, ids)
    for memory in fresh:
        if memory.id in seen:
            await search.add(tx, ctx.org, bank.id, memory.id, search.of(memory))
            await entities.link(tx, ctx.store, ctx.org, bank.id, memory.id, naming.named(memory.text))
    # Only now: an entity that the memory still names stays itself, with its relations.
    await entities.drop(tx, ctx.org, bank.id, named)
    around = {memory.before for memory in fresh if memory.before} | set(await threads.after(tx, ctx.org, bank.id, ids))
    touched = await redactions.indexed(tx, ctx.org, bank.id, sorted({*ids, *around}))
    await storing.remake(tx, ctx.app, ctx.org, bank.id, touched, seq)
    await jobs.wanted(tx, ctx.store, ctx.org, bank.id, "embed", ctx.now)
