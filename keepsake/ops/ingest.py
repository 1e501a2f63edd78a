"""What a repository tells gets into the store: in batches, once, without secrets and without what was forgotten."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keepsake.context import App
from keepsake.core import facts, text
from keepsake.core.errors import Conflict
from keepsake.ops import pieces as making
from keepsake.ops.pieces import Item, Made, Piece
from keepsake.store import audit, banks, bulk, embeddings, files, jobs, repos, search, suppressions
from keepsake.store.engine import Doc, Tx, VectorRow
from keepsake.store.entities import Named
from keepsake.store.memories import Memory
from keepsake.store.repos import Repo
from keepsake.store.sources import Source

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Piece", "Report", "Tally", "gone", "noted", "stored"]
OPERATION = "bank.sync"
#: Who stands in the audit where nobody asked by hand.
BACKGROUND = "background"
LOST = "Someone else syncs this bank now, or the sync was cancelled."
_COUNTED = {"readme": "files", "file": "files", "note": "notes", "tree": ""}


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of pieces."""

    stored: int = 0
    known: int = 0
    forgotten: int = 0
    superseded: int = 0

    def __add__(self, more: "Tally") -> "Tally":
        return Tally(
            self.stored + more.stored,
            self.known + more.known,
            self.forgotten + more.forgotten,
            self.superseded + more.superseded,
        )


@dataclass(slots=True)
class Report:
    """How far a sync has come, as those who follow it see it."""

    doing: str = ""
    #: How many there are of what is being read, and how many of them are read.
    of: int = 0
    done: int = 0
    #: The part of the whole job that this is.
    low: float = 0.0
    high: float = 1.0
    #: Set while a server wants us to wait, ISO 8601.
    waiting_until: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)
    #: What was left out, in sentences.
    notes: list[str] = field(default_factory=list)
    #: Memories with a good vector by what it was made from; read when it is first needed.
    twins: dict[str, int] | None = None

    def begin(self, doing: str, of: int, low: float, high: float) -> None:
        """Tell what is read now, and which part of the whole job it is."""
        self.doing, self.of, self.done, self.low, self.high = doing, of, 0, low, high

    def read(self, given: Sequence[Item]) -> None:
        """Count what has been read."""
        self.done += len(given)
        for item in given:
            if name := _COUNTED.get(item.pieces[0].subtype, f"{item.pieces[0].subtype}s"):
                self.counts[name] += 1

    @property
    def share(self) -> float:
        """How much of the job is done, 0 to 1."""
        return self.low + (self.high - self.low) * min(1.0, self.done / self.of if self.of else 0.0)

    def told(self, more: Tally) -> str:
        """What the job says of itself: counts, never content."""
        tally = self.tally + more
        shown: dict[str, object] = {"doing": self.doing, **self.counts}
        if self.of:
            shown |= {"read": self.done, "of": self.of}
        shown |= {"stored": tally.stored, "known": tally.known, "superseded": tally.superseded}
        if self.waiting_until:
            shown["waiting_until"] = self.waiting_until
        if self.notes:
            shown["notes"] = list(self.notes)
        return json.dumps(shown)

    async def tell(self, app: App, job: jobs.Job) -> None:
        """Write down how far it is; raises Conflict when the job is no longer ours."""
        await app.store.write(job.org, lambda tx: self.tell_in(tx, app, job))

    async def tell_in(self, tx: Tx, app: App, job: jobs.Job, more: Tally = Tally()) -> None:  # noqa: B008  # frozen
        """The same within a transaction, which it fences; `more` is what that transaction does."""
        if not await jobs.progress(tx, job, app.now(), self.share):
            raise Conflict(LOST)
        await jobs.tell(tx, job, self.told(more))


async def noted(app: App, job: jobs.Job, cursors: Mapping[str, object] | None = None, **fields: object) -> Repo:
    """Change how the repository of a job stands; of the cursors, only those that are given."""

    async def body(tx: Tx) -> Repo:
        await banks.step(tx, job.org, job.bank)
        if not await jobs.keep(tx, job, app.now()):
            raise Conflict(LOST)
        repo = await repos.get(tx, job.org, job.bank)
        if repo is None:
            raise Conflict("The bank has no repository any more.")
        merged = {**repo.cursors, **(cursors or {})}
        repo = replace(repo, cursors=merged, updated_at=app.now(), **fields)  # type: ignore[arg-type]  # its own fields
        await repos.put(tx, repo)
        return repo

    return await app.store.write(job.org, body)


async def stored(app: App, job: jobs.Job, repo: Repo, pieces: Sequence[Piece], report: Report | None = None) -> Tally:
    """Store what is new of these pieces, batch by batch; a changed item supersedes what it said before."""
    report = report or Report()
    writer = Writer(app, job, repo, await app.embedding.static_model(app.store), report)
    total = Tally()
    for batch in making.batches(making.items(pieces)):
        report.read(batch)
        done = await writer.stored(batch)
        report.tally += done
        total += done
    return total


async def gone(app: App, job: jobs.Job, repo: Repo, kind: str, keys: Sequence[str], report: Report) -> None:
    """Put out of the way what was told by things that are no longer there."""
    writer = Writer(app, job, repo, await app.embedding.static_model(app.store), report)
    for start in range(0, len(keys), making.BATCH):
        part = keys[start : start + making.BATCH]
        count = await app.store.write(job.org, lambda tx: writer.gone(tx, kind, part))  # noqa: B023
        report.tally += Tally(superseded=count)


@dataclass(frozen=True, slots=True)
class Writer:
    """What batches are stored with."""

    app: App
    job: jobs.Job
    repo: Repo
    model: embeddings.Model
    report: Report

    async def stored(self, items: Sequence[Item]) -> Tally:
        """Store the new ones among these items."""
        app, org = self.app, self.job.org
        while True:
            new, forgotten = await app.store.read(org, lambda tx: self._looked(tx, items))
            if not new:
                return Tally(known=len(items))
            clean = await asyncio.to_thread(lambda: [making.cleaned(item) for item in new])  # noqa: B023
            if forgotten:
                clean = await app.store.read(org, lambda tx: self._cut(tx, clean))  # noqa: B023
            made = await asyncio.to_thread(lambda: [self._made(item) for item in clean])  # noqa: B023
            vectors = await app.embedding.static([one.told for all in made for one in all])
            await self._read_twins()
            given = list(zip(clean, made, strict=True))
            tally = await app.store.write(org, lambda tx: self._written(tx, given, vectors, forgotten))  # noqa: B023
            # None: something was forgotten in between, so look again what may be told.
            if tally is not None:
                return tally + Tally(known=len(items) - len(new))

    def _made(self, item: Item) -> list[Made]:
        return [making.made(self.job.org, self.job.bank, piece) for piece in item.pieces if piece.text]

    async def _looked(self, tx: Tx, items: Sequence[Item]) -> tuple[list[Item], int]:
        """Those that are not stored yet, and how much was ever forgotten here."""
        known = await self._known(tx, items)
        return [item for item in items if not _is_known(item, known)], await self._forgotten(tx)

    async def _forgotten(self, tx: Tx) -> int:
        return await suppressions.count(tx, self.job.org, self.job.bank)

    async def _known(self, tx: Tx, items: Iterable[Item]) -> dict[tuple[str, str], bulk.Item]:
        keys: dict[str, list[str]] = {}
        for item in items:
            keys.setdefault(item.kind, []).append(item.key)
        return {
            (kind, key): one
            for kind, of_kind in keys.items()
            for key, one in (await bulk.items(tx, self.job.org, self.job.bank, kind, of_kind)).items()
        }

    async def _read_twins(self) -> None:
        org, bank = self.job.org, self.job.bank
        if self.report.twins is None:
            self.report.twins = await self.app.store.read(org, lambda tx: bulk.sharp(tx, org, bank, self.model.id))

    async def _cut(self, tx: Tx, items: Sequence[Item]) -> list[Item]:
        """The items without what was forgotten; a piece that says nothing else has no text."""
        digest = self.app.store.digest
        told = {part for item in items for piece in item.pieces for part in (piece.title, piece.text)}
        spans = {
            part: {span: digest(text.digest(part[span.start : span.end])) for span in _spans(part)} for part in told
        }
        every = sorted({one for found in spans.values() for one in found.values()})
        forgotten = await suppressions.among(tx, self.job.org, self.job.bank, every)

        def left(part: str) -> str:
            kept = part
            for span, one in spans[part].items():
                if one in forgotten:
                    kept = kept[: span.start] + " " * (span.end - span.start) + kept[span.end :]
            return kept if kept == part else kept.strip()

        return [
            replace(item, pieces=tuple(replace(one, title=left(one.title), text=left(one.text)) for one in item.pieces))
            for item in items
        ]

    async def _written(
        self,
        tx: Tx,
        given: Sequence[tuple[Item, Sequence[Made]]],
        vectors: "npt.NDArray[np.float32]",
        forgotten: int,
    ) -> Tally | None:
        """Write one batch, with its progress and its audit entry; None when what may be told has changed."""
        org, bank = self.job.org, self.job.bank
        seq = await banks.step(tx, org, bank)
        if await self._forgotten(tx) != forgotten:
            return None
        known = await self._known(tx, [item for item, _ in given])
        change = Change(self, seq, self.app.now())
        place = 0
        for item, told in given:
            if not _is_known(item, known):
                change.take(item, told, vectors[place : place + len(told)], known.get((item.kind, item.key)))
            place += len(told)
        await change.write(tx)
        await self._finish(tx, change.tally, [memory.id for memory in change.memories], change.digest)
        return change.tally

    async def gone(self, tx: Tx, kind: str, keys: Sequence[str]) -> int:
        """Supersede what these sources told; tells how many memories."""
        org, bank = self.job.org, self.job.bank
        await banks.step(tx, org, bank)
        count = await bulk.gone(tx, org, bank, kind, keys, self.app.now())
        await self._finish(tx, Tally(superseded=count), [], text.digest("\n".join(keys)))
        return count

    async def _finish(self, tx: Tx, tally: Tally, ids: Sequence[int], digest: str) -> None:
        await self.report.tell_in(tx, self.app, self.job, tally)
        asked_by = str(self.repo.cursors.get("asked_by") or BACKGROUND)
        digest = self.app.store.digest(digest)
        entry = audit.Entry(self.job.org, self.job.bank, self.app.now(), asked_by, OPERATION, ids, digest)
        await audit.append(tx, entry)


def _is_known(item: Item, known: Mapping[tuple[str, str], bulk.Item]) -> bool:
    one = known.get((item.kind, item.key))
    return one is not None and one.is_held and one.revision == item.revision


def _spans(told: str) -> list[facts.Span]:
    return [facts.Span(0, len(told)), *facts.split(told)]


@dataclass(slots=True)
class Change:
    """The rows of one batch, gathered before they are written."""

    writer: Writer
    seq: int
    now: int
    memories: list[Memory] = field(default_factory=list)
    docs: list[Doc] = field(default_factory=list)
    vectors: list[VectorRow] = field(default_factory=list)
    named: dict[int, Sequence[Named]] = field(default_factory=dict)
    touched: list[files.Touched] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    replaced: dict[int, int | None] = field(default_factory=dict)
    superseded: dict[int, int | None] = field(default_factory=dict)
    kept: list[bulk.Kept] = field(default_factory=list)
    forgotten: int = 0

    @property
    def tally(self) -> Tally:
        """What the batch does."""
        return Tally(len(self.memories), 0, self.forgotten, len(self.superseded))

    @property
    def digest(self) -> str:
        """Of all that is written."""
        return text.digest("\n".join(memory.text_hash for memory in self.memories))

    def take(
        self, item: Item, told: Sequence[Made], vectors: "npt.NDArray[np.float32]", known: bulk.Item | None
    ) -> None:
        """Add one item: what it says as before stays, what is new comes in, the rest is superseded."""
        source = self._source(item, known)
        was = list(known.told) if known else []
        by_title: dict[str, int] = {}
        first: int | None = None
        for one, vector in zip(told, vectors, strict=True):
            same = next(
                (each for each in was if (each.title, each.text_hash) == (one.piece.title, one.text_hash)), None
            )
            if same is not None:
                was.remove(same)
                blob, at = str(one.piece.metadata.get("blob") or ""), one.piece.seen_at or one.piece.at or self.now
                self.kept.append(bulk.Kept(same.id, source, one.piece.metadata, blob, at))
                continue
            id = self._add(one, vector, source)
            by_title.setdefault(one.piece.title, id)
            first = first or id
        self.superseded |= {each.id: by_title.get(each.title, first) for each in was}
        self.forgotten += len(item.pieces) - len(told)

    def _source(self, item: Item, known: bulk.Item | None) -> int:
        """The source of this revision: a new one, or the one that it had when it was last so."""
        before = known.revisions.get(known.revision) if known and known.revision is not None else None
        again = known.revisions.get(item.revision) if known else None
        id = again or self.writer.app.store.new_id()
        if again is None:
            job = self.writer.job
            self.sources.append(
                Source(job.org, job.bank, id, item.kind, item.key, "", "", self.now, item.uri, item.revision)
            )
        else:
            self.replaced[id] = None
        if before is not None and before != id:
            self.replaced[before] = id
        return id

    def _add(self, one: Made, vector: "npt.NDArray[np.float32]", source: int) -> int:
        org, bank, id = self.writer.job.org, self.writer.job.bank, self.writer.app.store.new_id()
        memory = replace(making.memory(one, org, bank, id, self.now), source=source, seq=self.seq)
        self.memories.append(memory)
        self.docs.append(replace(one.doc, id=id))
        self.vectors.append(VectorRow(org, bank, id, self.writer.model.id, vector, one.told_hash, self.seq))
        self.named[id] = one.named
        self.touched += making.touched(one.piece, id, self.now)
        return id

    async def write(self, tx: Tx) -> None:
        """Write all of it."""
        org, bank = self.writer.job.org, self.writer.job.bank
        await bulk.insert_sources(tx, self.sources)
        await bulk.replaced(tx, org, bank, self.replaced)
        await bulk.insert(tx, self.memories)
        await search.add_all(tx, org, bank, self.docs)
        for row in self.vectors:
            await tx.put_vector(row)
        twins = self.writer.report.twins or {}
        same = {row.memory: twins[row.text_hash] for row in self.vectors if row.text_hash in twins}
        await bulk.copy_vectors(tx, org, bank, same, self.seq)
        await bulk.link(tx, self.writer.app.store, org, bank, self.named)
        await files.add(tx, org, bank, self.touched)
        await bulk.supersede(tx, org, bank, self.superseded, self.now)
        await bulk.keep(tx, org, bank, self.kept)
