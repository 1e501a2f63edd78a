"""Importing: takes over what other tools remember, once, with where it came from.

The records are given, not a path: whoever has the files reads them, and no server opens a file that a caller names.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import clock, facts, names, project, text
from keepsake.core.models import Given, InBank, Moment, Result, Tags
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean, CleanJson, Filled
from keepsake.ops import banks as bank_ops
from keepsake.ops import forgetting, naming, storing
from keepsake.store import banks, embeddings, entities, files, imports, jobs, sessions, sources, suppressions, threads
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory
from keepsake.store.sessions import Session

#: Records that one call takes.
MOST = 200
Kind = Literal["fact", "observation", "summary", "decision", "constraint", "heuristic", "rejected"]
_EXPERIENCE = ("observation", "summary")


class Named(Given):
    """Who or what a record is about."""

    name: Filled = Field(max_length=200, description="Its name.")
    kind: Clean = Field("", max_length=100, description="What it is: a person, a project, …")


class Record(Given):
    """One thing that another tool remembers."""

    key: Filled = Field(max_length=300, description="The tool, its table and its own id; never taken over twice.")
    kind: Kind = Field(description="What it is here.")
    text: Filled = Field(max_length=1_000_000, description="What is remembered.")
    subtype: Clean = Field("", max_length=100, description="What the tool calls its type.")
    title: Clean = Field("", max_length=1_000, description="A short title.")
    project: Clean = Field("", max_length=1_000, description="What the tool calls the project; it names the bank.")
    session: Clean = Field("", max_length=300, description="The session it belongs to.")
    happened_at: Moment | None = Field(None, description="When it happened, ISO 8601.")
    parts: dict[Clean, CleanJson] = Field(
        default_factory=dict, max_length=50, description="Its parts: subtitle, facts, concepts, files, or a summary's."
    )
    tags: Tags = Field(default_factory=list, description="Tags of the memory.")
    metadata: dict[Clean, CleanJson] = Field(
        default_factory=dict, max_length=200, description="Where it came from, and what else the tool knew."
    )
    entities: list[Named] = Field(default_factory=list, max_length=50, description="Who and what it is about.")


class Import(InBank):
    """What to take over."""

    records: list[Record] = Field(
        min_length=1, max_length=MOST, description="Each goes to the bank of its project, unless a bank is named."
    )


class Imported(Result):
    """What became of the records."""

    stored: int = Field(description="New memories.")
    known: int = Field(description="Records that were taken over before.")
    forgotten: int = Field(description="Records that were deleted here on request, and stay so.")
    banks: dict[str, int] = Field(description="How many of the new ones are in each bank.")
    redacted: list[str] = Field(description="Kinds of secrets that were taken out first.")


@dataclass(frozen=True, slots=True)
class Sorted:
    """Records of one bank: those to store, each with what is known of it, and how many others."""

    new: Sequence[tuple[Record, imports.Known | None]]
    known: int = 0
    forgotten: int = 0


@operation("memory.preview_import", effect=Effect.READ, scope="memory:read")
async def preview(ctx: Ctx, given: Import) -> Imported:
    """Tell what importing these records would do; changes nothing."""
    tally: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    for name, records in _by_bank(ctx, given).items():
        sorted_ = await ctx.read(lambda tx: _previewed(tx, ctx, given, name, records))  # noqa: B023
        tally.update(known=sorted_.known, forgotten=sorted_.forgotten)
        stored[name] += len(sorted_.new)
    return _told(ctx, stored, tally)


@operation("memory.import", effect=Effect.MUTATE, scope="memory:write", in_parts=True)
async def import_(ctx: Ctx, given: Import) -> Imported:
    """Take over what another tool remembers; a record that was taken over before is skipped."""
    model = await ctx.app.embedding.static_model(ctx.store)
    tally: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    for name, records in _by_bank(ctx, given).items():
        # Looked at first, so that running it again writes nothing.
        sorted_ = await ctx.read(lambda tx: _previewed(tx, ctx, given, name, records))  # noqa: B023
        if sorted_.new:
            sorted_ = await ctx.change(lambda tx: _stored(tx, ctx, given, name, records, model))  # noqa: B023
        tally.update(known=sorted_.known, forgotten=sorted_.forgotten)
        stored[name] += len(sorted_.new)
    return _told(ctx, stored, tally)


def _told(ctx: Ctx, stored: Counter[str], tally: Counter[str]) -> Imported:
    return Imported(
        stored=stored.total(),
        known=tally["known"],
        forgotten=tally["forgotten"],
        banks={name: count for name, count in stored.items() if count},
        redacted=list(ctx.redacted),
    )


def _by_bank(ctx: Ctx, given: Import) -> dict[str, list[Record]]:
    """The records by the name of their bank, each once."""
    everyones, _ = bank_ops.wanted(ctx, given.bank)
    is_told = given.bank is not None or ctx.bank is not None
    found: dict[str, dict[str, Record]] = {}
    for record in given.records:
        name = project.named(record.project) if record.project and not is_told else everyones
        found.setdefault(name, {}).setdefault(record.key, record)
    return {name: list(records.values()) for name, records in found.items()}


def _within(ctx: Ctx, given: Import, name: str) -> tuple[Ctx, str | None]:
    """The bank of a project is one that the request implies: made by the first write, and checked like any other."""
    return (ctx, given.bank) if given.bank is not None else (replace(ctx, bank=name), None)


async def _previewed(tx: Tx, ctx: Ctx, given: Import, name: str, records: Sequence[Record]) -> Sorted:
    bank = await bank_ops.found(tx, *_within(ctx, given, name))
    return Sorted([(record, None) for record in records]) if bank is None else await _sorted(tx, ctx, bank, records)


async def _sorted(tx: Tx, ctx: Ctx, bank: banks.Bank, records: Sequence[Record]) -> Sorted:
    met = await imports.known(tx, ctx.org, bank.id, [record.key for record in records])
    left = [record for record in records if record.key not in met or not met[record.key].is_held]
    digests = {record.key: ctx.store.digest(text.digest(record.text)) for record in left}
    gone = await suppressions.among(tx, ctx.org, bank.id, list(digests.values()))
    # With a memory goes all that may hold its text, such as summaries; so where anything was forgotten, what is gone
    # stays gone. A bank that was only cleared can be filled again.
    is_final = await suppressions.exist(tx, ctx.org, bank.id)
    there = [one for one in left if digests[one.key] not in gone and not (is_final and one.key in met)]
    cut = [await _cut(tx, ctx, bank, record) for record in there] if is_final else there
    new = [(record, met.get(record.key)) for record in cut if record is not None]
    return Sorted(new, known=len(records) - len(left), forgotten=len(left) - len(new))


async def _cut(tx: Tx, ctx: Ctx, bank: banks.Bank, record: Record) -> Record | None:
    """A record without the statements that were forgotten; None when it says nothing else."""
    title, told = [await forgetting.left_of(tx, ctx, bank, part) for part in (record.title, record.text)]
    parts: dict[str, object] = {}
    for name, part in record.parts.items():
        pieces = [part] if isinstance(part, str) else part if isinstance(part, list) else []
        left = [await forgetting.left_of(tx, ctx, bank, piece) for piece in pieces if isinstance(piece, str)]
        kept = [piece for piece in left if piece]
        if kept or not pieces:
            parts[name] = part if not pieces else kept[0] if isinstance(part, str) else kept
    if record.kind == "summary" and parts != record.parts:
        # Its text is made of its parts, where a statement stands behind the name of its field.
        told = "\n".join(f"{name}: {part}" for name, part in parts.items() if isinstance(part, str))
    return record.model_copy(update={"title": title, "text": told, "parts": parts}) if told.strip() else None


async def _stored(
    tx: Tx, ctx: Ctx, given: Import, name: str, records: Sequence[Record], model: embeddings.Model
) -> Changed[Sorted]:
    bank = await bank_ops.ensured(tx, *_within(ctx, given, name))
    seq = await banks.step(tx, ctx.org, bank.id)
    sorted_ = await _sorted(tx, ctx, bank, records)
    ids = []
    for record, known in sorted_.new:
        memory = _memory(ctx, bank, record, seq)
        session = await _session(tx, ctx, bank, record, memory.said_at) if record.session else None
        if session:
            await storing.store(tx, ctx.app, replace(memory, source=session.id), model)
        else:
            # What has nothing in common but the day of its import is no thread.
            await storing.store_at(tx, ctx.app, memory, model, threads.Place(""))
        await _linked(tx, ctx, record, memory)
        await imports.note(tx, ctx.org, bank.id, record.key, memory.id, known, ctx.store.new_id(), ctx.now)
        ids.append(memory.id)
    await jobs.wanted(tx, ctx.store, ctx.org, bank.id, "embed", ctx.now)
    return Changed(sorted_, bank.id, ids, "\n".join(record.text for record, _ in sorted_.new))


async def _session(tx: Tx, ctx: Ctx, bank: banks.Bank, record: Record, at: int) -> Session:
    """The session of a record; one that was captured as well is the same one."""
    if known := await sessions.named(tx, ctx.org, bank.id, record.session):
        return known
    id = ctx.store.new_id()
    session = Session(id, record.session, _peer(record), "", "", at, at)
    await sessions.insert(tx, ctx.org, bank.id, session)
    if await sources.current(tx, ctx.org, bank.id, "transcript", record.session) is None:
        source = sources.Source(ctx.org, bank.id, id, "transcript", record.session, "", "", ctx.now)
        await sources.insert(tx, source)
    return session


async def _linked(tx: Tx, ctx: Ctx, record: Record, memory: Memory) -> None:
    """Note who, what and which files a memory is about."""
    if record.kind == "fact":
        await entities.link(tx, ctx.store, ctx.org, memory.bank, memory.id, _named(record))
    touched = [
        files.Touched(memory.id, path, wrote, memory.said_at)
        for part, wrote in (("files_modified", True), ("files_read", False))
        for path in _paths(record.parts.get(part))
    ]
    if touched:
        await files.add(tx, ctx.org, memory.bank, touched)


def _paths(told: object) -> list[str]:
    """Files within the project; where an absolute path leads, only that machine knew."""
    paths = [path for path in told if isinstance(path, str)] if isinstance(told, list) else []
    return [path for path in paths if not path.startswith(("/", "~", "\\")) and path[1:2] != ":"]


def _peer(record: Record) -> str:
    return record.key.partition(":")[0]


def _memory(ctx: Ctx, bank: banks.Bank, record: Record, seq: int) -> Memory:
    at = clock.parse(record.happened_at) if record.happened_at else None
    return Memory(
        org=ctx.org,
        bank=bank.id,
        id=ctx.store.new_id(),
        kind=record.kind,
        fact_type=_fact_type(record),
        text=record.text,
        learned_at=ctx.now,
        author=f"import:{_peer(record)}",
        text_hash=text.digest(record.text),
        tokens=text.cost(record.text),
        seq=seq,
        subtype=record.subtype,
        title=record.title,
        category="general" if record.kind == "fact" else record.kind,
        parts=dict(record.parts),
        tags=tuple(dict.fromkeys((*record.tags, f"import:{_peer(record)}"))),
        metadata=record.metadata,
        happened_from=at,
        event_at=at,
    )


def _fact_type(record: Record) -> str:
    if record.kind in _EXPERIENCE:
        return "experience"
    return facts.fact_type(record.text) if record.kind == "fact" else "opinion"


def _named(record: Record) -> list[entities.Named]:
    """Who and what a fact is about, first as the tool says, then as its words do."""
    found = {
        folded: entities.Named(one.name, folded, one.kind.lower() or "name", "named")
        for one in record.entities
        if (folded := names.folded(one.name))
    }
    for one in naming.named(record.text):
        found.setdefault(one.folded, one)
    return list(found.values())
