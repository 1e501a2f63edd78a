"""What is handed out is noted after the answer, so that it is known when someone brings it back."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import NamedTuple, Protocol

from keepsake.context import App, Ctx
from keepsake.core import echo
from keepsake.core.clock import HOUR
from keepsake.ops import readings, retrieve
from keepsake.store import handed_out, memories, recalls
from keepsake.store.engine import Tx
from keepsake.store.handed_out import Given
from keepsake.store.memories import Memory
from keepsake.store.recalls import Recall

#: Memories of one answer that are noted, and texts that this process knows it has noted.
MOST, REMEMBERED = 100, 20_000
#: Seconds that what was handed out may wait for more; who asks in this process has it noted first.
PAUSE_S = 1.0
#: Seconds for which it is believed that nobody was handed anything: many who write must not all ask.
EMPTY_S = 2.0
SKIPPED = "Keepsake handed this text out itself, and it still holds: nothing new to store."


class Shown(Protocol):
    """A memory as it is handed out."""

    @property
    def id(self) -> str: ...

    @property
    def text(self) -> str: ...


class Said(NamedTuple):
    """What is handed out of a memory, where that is not its text."""

    id: str
    text: str


def told(ctx: Ctx, found: Sequence[Shown], scores: Sequence[float] = ()) -> None:
    """Note that memories were handed to whoever asks; costs the answer next to nothing."""
    box, until = ctx.app.outbox, ctx.now + HOUR
    if ctx.surface != "web" and len(box.recalls) < REMEMBERED:
        # A person who looks through pages recalls nothing.
        who = (ctx.principal.name, ctx.now, 1)
        both = zip(found[:MOST], chain(scores, repeat(0.0)), strict=False)
        box.recalls += [Recall(ctx.org, int(one.id), *who, score) for one, score in both]
    if len(box.noted) > REMEMBERED:
        box.noted.clear()
    if len(box.waiting) > REMEMBERED:
        return
    fresh: list[Shown] = []
    for memory in found[:MOST]:
        key = (ctx.org, ctx.principal.name, memory.id, hash(memory.text))
        if box.noted.get(key, 0) <= ctx.now:
            box.noted[key] = until
            box.waiting.append(Given(ctx.org, ctx.principal.name, memory.text, int(memory.id)))
            fresh.append(memory)
    readings.note(ctx, fresh)
    _soon(ctx.app)


def given(app: App, org: int, principal: str, texts: Mapping[int, str]) -> None:
    """Note memories, by id, that a hook handed to someone."""
    app.outbox.waiting += [Given(org, principal, said, id) for id, said in texts.items()]
    app.outbox.recalls += [Recall(org, id, principal, app.now()) for id in texts]
    _soon(app)


def made(ctx: Ctx, bank: str, answer: str) -> None:
    """Note a text that was made from memories for whoever asks."""
    if answer and len(ctx.app.outbox.waiting) < REMEMBERED:
        ctx.app.outbox.waiting.append(Given(ctx.org, ctx.principal.name, answer, bank=bank))
    _soon(ctx.app)


def _soon(app: App) -> None:
    if (app.outbox.waiting or app.outbox.recalls) and not app.outbox.is_called:
        app.outbox.is_called = True
        app.later.do(_behind(app))


async def _behind(app: App) -> None:
    """Note together what several answers handed out."""
    await app.later.pause(PAUSE_S)
    app.outbox.is_called = False
    await noted(app)


async def noted(app: App) -> None:
    """Write down all that waits."""
    box = app.outbox
    async with box.turn:
        while box.waiting:
            given, box.waiting = box.waiting, []
            digests = {digest: one.memory for one in given for digest in _digests(app, one)}
            until = app.now() + handed_out.KEPT_FOR
            await app.store.engine.volatile(lambda tx: handed_out.put(tx, digests, until))  # noqa: B023
            box.empty_until = 0.0
        recalled, box.recalls = box.recalls, []
        if recalled:
            await app.store.engine.volatile(lambda tx: recalls.put(tx, recalled))


def _digests(app: App, given: Given) -> list[str]:
    if given.memory:
        return [_digest(app, given, echo.plain(given.text))]
    return [_digest(app, given, form) for form in echo.handed(given.text)]


def _digest(app: App, given: Given, form: str) -> str:
    return app.store.digest("\0".join((str(given.org), given.principal, given.bank, form)))


Known = Mapping[str, frozenset[int]]


async def known(app: App, asker: Given, forms: Sequence[str]) -> Known:
    """Those of these texts that this principal was handed, each with the memories it may be, or 0 for an answer."""
    box = app.outbox
    if not box.waiting and time.monotonic() < box.empty_until:
        return {}
    await noted(app)
    asked = {
        _digest(app, Given(asker.org, asker.principal, "", bank=bank), form): form
        for form in forms
        for bank in {"", asker.bank}
    }
    rows, is_empty = await app.store.engine.volatile(lambda tx: handed_out.known(tx, list(asked), app.now()))
    box.empty_until = time.monotonic() + EMPTY_S if is_empty else 0.0
    found: dict[str, frozenset[int]] = {}
    for digest, memory in rows.items():
        found[asked[digest]] = found.get(asked[digest], frozenset()) | {memory}
    return found


@dataclass(frozen=True, slots=True)
class Filed:
    """How a text that may be a repetition is filed; what says more than the memory it repeats is no repetition."""

    org: int
    bank: int
    event_at: int | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    #: What it is to be found as, where someone said so.
    category: str = ""

    def adds_nothing_to(self, memory: Memory) -> bool:
        """Whether the memory carries all of it already."""
        is_same_event = self.event_at is None or self.event_at == memory.event_at
        has_all = all(memory.metadata.get(key) == value for key, value in self.metadata.items())
        is_same_sort = self.category in ("", memory.category)
        return is_same_event and is_same_sort and has_all and set(self.tags) <= set(memory.tags)


async def standing(tx: Tx, app: App, filed: Filed, found: Known) -> dict[str, int]:
    """Those texts that still hold: memories of this bank that nothing has taken the place of, and answers."""
    ids = sorted({id for ids in found.values() for id in ids if id})
    held = {
        row.id
        for row in (await memories.fetched(tx, filed.org, filed.bank, ids)).values()
        if filed.adds_nothing_to(row) and await _holds(tx, app, row)
    }
    if filed.event_at is None and not filed.tags and not filed.metadata and not filed.category:
        held.add(0)
    return {form: max(ids & held) for form, ids in found.items() if ids & held}


async def _holds(tx: Tx, app: App, memory: Memory) -> bool:
    """Whether a memory still says what it said; a note that became facts does while all of them do."""
    if memory.state != "rolled":
        return retrieve.held(memory, app.now())
    children = await memories.children(tx, memory.org, memory.bank, [memory.id])
    rows = await memories.fetched(tx, memory.org, memory.bank, children)
    return bool(rows) and all(retrieve.held(row, app.now()) or row.state == "merged" for row in rows.values())
