"""Documents: what memories were told by, and what goes with one that is deleted."""

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import clock
from keepsake.core.errors import NotFound
from keepsake.core.models import InBank, Receipt, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.ops import forgetting
from keepsake.store import banks, memories, sources
from keepsake.store.engine import Tx


class Document(Result):
    """A document."""

    id: str = Field(description="Id of the document, as it was given.")
    created_at: str = Field(description="When its newest revision was stored, ISO 8601.")
    memories: int = Field(description="How many memories rest on it.")
    characters: int = Field(description="Length of its text.")
    metadata: dict[str, object] = Field(description="Key-value pairs given with it.")


class DocumentText(Document):
    """A document with its text."""

    text: str = Field(description="Its text; what was forgotten is blank.")


class ListDocuments(InBank):
    """Which documents."""

    contains: Clean | None = Field(None, max_length=1_000, description="Only documents whose id or text contains this.")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results.")
    offset: int = Field(0, ge=0, le=10_000_000, description="Number of results to skip.")


class Documents(Result):
    """Documents, newest first."""

    documents: list[Document] = Field(description="Newest first.")


@operation("document.list", effect=Effect.READ, scope="memory:read")
async def list_(ctx: Ctx, given: ListDocuments) -> Documents:
    """List the documents that were taken into the bank, newest first."""

    async def body(tx: Tx) -> list[tuple[sources.Source, int, int]]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        asked = (given.contains or "", given.limit, given.offset)
        return await sources.listed(tx, ctx.org, bank.id, *asked) if bank else []

    return Documents(documents=[_shown(*found) for found in await ctx.read(body)])


def _shown(source: sources.Source, characters: int, held: int) -> Document:
    return Document(
        id=source.key,
        created_at=clock.iso(source.created_at),
        memories=held,
        characters=characters,
        metadata=source.meta,
    )


class OneDocument(InBank):
    """Which document."""

    id: Clean = Field(min_length=1, max_length=500, description="The id of the document.")


async def _one(tx: Tx, ctx: Ctx, given: OneDocument) -> tuple[banks.Bank, sources.Source]:
    bank = await bank_ops.found(tx, ctx, given.bank)
    source = await sources.current(tx, ctx.org, bank.id, "document", given.id) if bank else None
    if bank is None or source is None:
        raise NotFound(f"No document {given.id!r} in this bank. Use list_documents to see the ids.")
    return bank, source


@operation("document.get", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: OneDocument) -> DocumentText:
    """Retrieve one document by its id, with its text and metadata."""

    async def body(tx: Tx) -> DocumentText:
        bank, source = await _one(tx, ctx, given)
        held = await memories.fetched(tx, ctx.org, bank.id, await memories.of_source(tx, ctx.org, bank.id, source.id))
        shown = _shown(source, len(source.text), len(held))
        return DocumentText(**shown.model_dump(), text=source.text)

    return await ctx.read(body)


@operation("document.delete", effect=Effect.DESTRUCTIVE, scope="memory:delete")
async def delete(ctx: Ctx, given: OneDocument) -> Receipt:
    """Delete a document with every revision, and all memories linked to it; leaves a receipt."""
    await ctx.app.embedding.static_model(ctx.store)

    async def body(tx: Tx) -> Changed[Receipt]:
        bank, source = await _one(tx, ctx, given)
        await banks.step(tx, ctx.org, bank.id)
        revisions = await sources.revisions(tx, ctx.org, bank.id, "document", source.key)
        ids = [id for each in revisions for id in await memories.of_source(tx, ctx.org, bank.id, each)]
        await forgetting.suppress(tx, ctx, bank, ids)
        receipt = await forgetting.forget(tx, ctx, bank, ids, documents=1)
        await sources.delete(tx, ctx.org, bank.id, revisions)
        return Changed(receipt, bank.id, [source.id, *ids])

    return await ctx.change(body)
