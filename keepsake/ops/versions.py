"""How a version of an artifact gets into the store: its text as a source, and memories by which it is found."""

import asyncio
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keepsake.context import Ctx
from keepsake.core import facts, portions, text
from keepsake.core.errors import Conflict
from keepsake.core.portions import Portion
from keepsake.ops import pieces
from keepsake.ops.pieces import Made, Piece
from keepsake.store import artifacts, banks, bulk, embeddings, jobs, search, sources, suppressions
from keepsake.store.artifacts import Artifact, Kept, Version
from keepsake.store.engine import Tx, VectorRow
from keepsake.store.memories import Memory

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FORGOTTEN = "All of this text was deleted on request before; it does not come back by itself."


class Outdated(Exception):
    """Something was forgotten while a text was made ready, so it must be looked through again."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a version will say, and what it is called."""

    title: str
    type: str
    content: str
    #: Whose next version it is; None for a new artifact.
    artifact: int | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """All of a version that can be worked out before its transaction."""

    draft: Draft
    model: embeddings.Model
    #: How much had ever been forgotten in the bank when it was made ready.
    forgotten: int
    portions: Sequence[Portion]
    #: What each portion is found by, with its vector; None for one that the version before has already.
    made: Sequence["tuple[Made, npt.NDArray[np.float32]] | None"]


async def ready(ctx: Ctx, bank: banks.Bank | None, draft: Draft) -> Ready:
    """Cut a text into portions without what was forgotten, and make what the new ones are found by."""
    forgotten = await ctx.read(lambda tx: _forgotten(tx, ctx, bank)) if bank else 0
    model = await ctx.app.embedding.static_model(ctx.store)
    if forgotten and bank:
        content = await _left(ctx, bank, draft)
        if not content.strip():
            raise Conflict(FORGOTTEN)
        draft = replace(draft, content=content)
    known = await ctx.read(lambda tx: _known(tx, ctx, bank, draft)) if bank else set()
    parts, made = await asyncio.to_thread(_made, ctx.org, bank.id if bank else 0, draft, known)
    vectors = iter(await ctx.app.embedding.static([one.told for one in made if one]))
    return Ready(draft, model, forgotten, parts, [(one, next(vectors)) if one else None for one in made])


async def _known(tx: Tx, ctx: Ctx, bank: banks.Bank, draft: Draft) -> set[tuple[str, str]]:
    """What the version before tells, by title and hash."""
    told = await artifacts.told(tx, ctx.org, bank.id, draft.artifact) if draft.artifact else []
    return {(one.title, one.text_hash) for one in told}


async def check(tx: Tx, ctx: Ctx, bank: banks.Bank, ready: Ready) -> None:
    """Refuse to go on where something was forgotten since."""
    if await _forgotten(tx, ctx, bank) != ready.forgotten:
        raise Outdated


async def _forgotten(tx: Tx, ctx: Ctx, bank: banks.Bank) -> int:
    return await suppressions.count(tx, ctx.org, bank.id)


async def _left(ctx: Ctx, bank: banks.Bank, draft: Draft) -> str:
    """A text with blanks where it says what was forgotten."""
    digest = ctx.store.digest
    spans = await asyncio.to_thread(lambda: {span: digest(text.digest(told)) for span, told in _spans(draft).items()})
    gone = await ctx.read(lambda tx: suppressions.among(tx, ctx.org, bank.id, sorted(set(spans.values()))))
    content = draft.content
    for (start, end), one in spans.items():
        if one in gone:
            content = content[:start] + " " * (end - start) + content[end:]
    return content


def _spans(draft: Draft) -> dict[tuple[int, int], str]:
    """Every portion and every sentence of a text, by its place."""
    found: dict[tuple[int, int], str] = {}
    for part in portions.split(draft.title, draft.type, draft.content):
        told = draft.content[part.start : part.end]
        found[part.start, part.end] = told
        for span in facts.split(told):
            found[part.start + span.start, part.start + span.end] = told[span.start : span.end]
    return found


def _made(org: int, bank: int, draft: Draft, known: Set[tuple[str, str]]) -> tuple[list[Portion], list[Made | None]]:
    parts = portions.split(draft.title, draft.type, draft.content)
    told = [Piece(artifacts.KIND, "", "", draft.type, part.title, _said(draft, part)) for part in parts]
    are_new = [(one.title, text.digest(one.text)) not in known for one in told]
    return parts, [pieces.made(org, bank, one) if is_new else None for one, is_new in zip(told, are_new, strict=True)]


def _said(draft: Draft, part: Portion) -> str:
    return draft.content[part.start : part.end]


@dataclass(slots=True)
class _Change:
    """The rows of one version, gathered before they are written."""

    ctx: Ctx
    artifact: Artifact
    ready: Ready
    seq: int
    source: int

    async def write(self, tx: Tx) -> None:
        """What the version says as before stays, what is new comes in, the rest is superseded."""
        org, bank = self.artifact.org, self.artifact.bank
        was = await artifacts.told(tx, org, bank, self.artifact.id)
        kept: list[Kept] = []
        rows: list[Memory] = []
        vectors: list[VectorRow] = []
        new: list[Made] = []
        for part, made in zip(self.ready.portions, self.ready.made, strict=True):
            hash = text.digest(_said(self.ready.draft, part))
            same = next((each for each in was if (each.title, each.text_hash) == (part.title, hash)), None)
            if same is not None:
                was.remove(same)
                told = json.dumps(dict(self._metadata), ensure_ascii=False)
                kept.append(Kept(same.id, self.source, f"{part.start}:{part.end}", told))
                continue
            # Another version may have come in between, or the text says the same twice.
            one, vector = made or await self._late(tx, part)
            rows.append(self._memory(one, part))
            vectors.append(VectorRow(org, bank, rows[-1].id, self.ready.model.id, vector, one.told_hash, self.seq))
            new.append(one)
        titles = {row.title: row.id for row in reversed(rows)}
        first = rows[0].id if rows else None
        await bulk.supersede(tx, org, bank, {one.id: titles.get(one.title, first) for one in was}, self.ctx.now)
        await artifacts.keep(tx, org, bank, kept)
        await self._insert(tx, rows, vectors, new)

    async def _late(self, tx: Tx, part: Portion) -> "tuple[Made, npt.NDArray[np.float32]]":
        """What a portion is found by, made inside the transaction: of a few, at most."""
        said = Piece(artifacts.KIND, "", "", self.artifact.type, part.title, _said(self.ready.draft, part))
        made = pieces.made(self.artifact.org, self.artifact.bank, said)
        return made, await tx.aside(lambda: self.ctx.app.embedding.at_once(made.told))

    async def _insert(self, tx: Tx, rows: Sequence[Memory], vectors: Sequence[VectorRow], new: Sequence[Made]) -> None:
        org, bank = self.artifact.org, self.artifact.bank
        await bulk.insert(tx, rows)
        await search.add_all(tx, org, bank, [replace(one.doc, id=row.id) for one, row in zip(new, rows, strict=True)])
        for vector in vectors:
            await tx.put_vector(vector)
        named = {row.id: one.named for one, row in zip(new, rows, strict=True)}
        await bulk.link(tx, self.ctx.store, org, bank, named)

    @property
    def _metadata(self) -> Mapping[str, object]:
        one = self.artifact
        told = {"artifact_id": str(one.id), "identifier": one.identifier, "artifact_type": one.type}
        return {**told, "version": one.version}

    def _memory(self, made: Made, part: Portion) -> Memory:
        one = self.artifact
        return Memory(
            org=one.org,
            bank=one.bank,
            id=self.ctx.store.new_id(),
            kind=artifacts.KIND,
            fact_type="world",
            text=made.piece.text,
            learned_at=self.ctx.now,
            author=self.ctx.principal.name,
            text_hash=made.text_hash,
            tokens=text.cost(made.piece.text),
            seq=self.seq,
            subtype=one.type,
            title=part.title,
            category=artifacts.KIND,
            metadata=self._metadata,
            source=self.source,
            span=f"{part.start}:{part.end}",
        )


async def write(tx: Tx, ctx: Ctx, artifact: Artifact, ready: Ready, note: str) -> None:
    """Write a version of an artifact whose row is written already."""
    org, bank, content = artifact.org, artifact.bank, ready.draft.content
    seq = await banks.step(tx, org, bank)
    if any(one and one[0].doc.bank != bank for one in ready.made):
        # The bank was made a moment ago, and words are indexed under it.
        made = [(pieces.made(org, bank, one[0].piece), one[1]) if one else None for one in ready.made]
        ready = replace(ready, made=made)
    change = _Change(ctx, artifact, ready, seq, ctx.store.new_id())
    await change.write(tx)
    former = await sources.current(tx, org, bank, artifacts.KIND, str(artifact.id))
    if former is not None:
        await sources.replace(tx, former, change.source)
    await sources.insert(
        tx,
        sources.Source(
            org=org,
            bank=bank,
            id=change.source,
            kind=artifacts.KIND,
            key=str(artifact.id),
            hash=text.digest(content),
            text=content,
            created_at=ctx.now,
            revision=str(artifact.version),
        ),
    )
    size = len(content.encode())
    version = Version(artifact.id, artifact.version, change.source, size, ctx.principal.name, ctx.now, note)
    await artifacts.add_version(tx, org, bank, version)
    await jobs.wanted(tx, ctx.store, org, bank, "embed", ctx.now)
