"""How a memory gets into the store: its row, its words, its vector, its place in a thread."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from keepsake.context import App
from keepsake.core import text
from keepsake.core.lazy import lazy
from keepsake.store import embeddings, memories, search, threads
from keepsake.store.engine import Tx, VectorRow
from keepsake.store.memories import Memory

if TYPE_CHECKING:
    from keepsake.core import names
else:
    names = lazy("keepsake.core.names")

#: The category of a memory that was given none; facts stored one after the other under it need not belong together.
GENERAL = "general"


async def store(tx: Tx, app: App, memory: Memory, model: embeddings.Model) -> Memory:
    """Write a new memory at the end of its thread, so that it is found at once."""
    place = threads.Place("")
    if (of := _stream(memory)) is not None:
        place = await threads.place(tx, memory.org, memory.bank, of, memory.id, memory.said_at)
    return await store_at(tx, app, memory, model, place)


def _stream(memory: Memory) -> str | None:
    """What a memory may stand among: its source, its talk, or the context it was given; a lone fact has none."""
    if memory.source:
        return f"s{memory.source}"
    is_turn = any(mention.role == "speaker" for mention in names.entities(memory.text[:200]))
    if memory.category == GENERAL and not memory.tags and not is_turn:
        return None
    return threads.stream(memory.category, memory.tags)


async def store_at(tx: Tx, app: App, memory: Memory, model: embeddings.Model, place: threads.Place) -> Memory:
    """Write a new memory where it belongs."""
    memory = replace(memory, thread=place.thread, before=place.before)
    await memories.insert(tx, memory)
    await search.add(tx, memory.org, memory.bank, memory.id, search.of(memory, place.lent))
    await _vector(tx, app, memory, model, place.lent)
    return memory


async def hide(tx: Tx, memory: Memory, state: str) -> None:
    """Take a memory out of every search; it can still be got by its id."""
    await search.remove(tx, memory.org, memory.bank, [memory.id])
    await memories.hide(tx, memory.org, memory.bank, memory.id, state)


async def _vector(tx: Tx, app: App, memory: Memory, model: embeddings.Model, lent: str) -> None:
    told = threads.embedded(lent, f"{memory.title}\n{memory.text}".strip())
    row = VectorRow(
        memory.org, memory.bank, memory.id, model.id, app.embedding.at_once(told), text.digest(told), memory.seq
    )
    await tx.put_vector(row)


async def lend(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> None:
    """Give memories the words of their neighbours to be found by."""
    lent = await threads.neighbours(tx, org, bank, ids)
    for id in ids:
        await search.recontext(tx, org, bank, id, "\n".join(lent.get(id, [])))


async def remake(tx: Tx, app: App, org: int, bank: int, ids: Sequence[int], seq: int) -> None:
    """Make the searchable traces of memories again after a neighbour has gone or changed."""
    if not ids:
        return
    await lend(tx, org, bank, ids)
    model = app.embedding.known["static"]
    rows = await memories.fetched(tx, org, bank, ids)
    before = await memories.fetched(tx, org, bank, [row.before for row in rows.values() if row.before])
    for row in rows.values():
        lent = before[row.before].text if row.before in before else ""
        await _vector(tx, app, replace(row, seq=seq), model, lent)
