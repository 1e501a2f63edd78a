"""What a client is given at the start of a session and with a prompt: read from the store by words alone."""

from collections.abc import Sequence

from keepsake.core import brief, pack, words
from keepsake.core.brief import Brief
from keepsake.core.pack import Item
from keepsake.core.rank import Corpus
from keepsake.store import events, packs, search
from keepsake.store.engine import Tx
from keepsake.store.events import Event

#: Prompt-time context must be worth its place: the share of a prompt's telling words that a memory holds,
#: and how many different ones at least.
FLOOR, LEAST = 0.5, 3
MOST = 3
#: Words of a prompt that are looked at; a longer one is a document.
READ, LONGEST = 40, 2_000


async def text(tx: Tx, org: int, event: Event, now: int) -> Brief:
    """What to inject after an event."""
    found = await events.bank_of(tx, org, event.project)
    if found is None:
        return Brief()
    bank, name = found
    if event.envelope.event == "session-start":
        return await start(tx, org, bank, name, now)
    return await prompt(tx, org, bank, event.envelope.text) if event.envelope.event == "prompt" else Brief()


async def start(tx: Tx, org: int, bank: int, name: str, now: int) -> Brief:
    """What a session in a bank begins with."""
    found = await packs.candidates(tx, org, bank, [], packs.newest(brief.LARGEST // 4))
    return brief.start(name, (pack.recent(item, bank, now) for item in found.items), found.summaries)


async def prompt(tx: Tx, org: int, bank: int, told: str) -> Brief:
    """What a prompt brings up in a bank."""
    asked = words.asked(told[:LONGEST])[:READ]
    if len(asked) < LEAST:
        return Brief()
    known = await search.corpus(tx, org, bank, asked)
    scores = await search.candidates(tx, search.Asked(org, bank, asked, known))
    shares = {id: _share(known, asked, one.words.split(), bank) for id, one in scores.items()}
    best = sorted((id for id, share in shares.items() if share >= FLOOR), key=lambda id: (-shares[id], -id))
    items = {item.id: item for item in await packs.items(tx, org, bank, best[: 4 * MOST])} if best else {}
    return brief.prompt([items[id] for id in best if id in items and _is_telling(items[id])][:MOST])


def _share(known: Corpus, asked: Sequence[str], held: Sequence[str], bank: int) -> float:
    """How much of what a prompt asks a memory holds, by how rare its words are; 0 when these are too few."""
    before, has = search.prefix(bank), frozenset(held)
    shared = [word for word in asked if before + word in has]
    total = sum(known.weight(word) for word in asked)
    return sum(known.weight(word) for word in shared) / total if len(shared) >= LEAST and total else 0.0


def _is_telling(item: Item) -> bool:
    """Whether a memory says something that the agent cannot see for itself."""
    return item.is_knowledge or item.kind in ("fact", "note", "insight", "milestone", "chunk")
