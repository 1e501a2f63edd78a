"""What a context pack is made of, read by few indexed statements; no pydantic here, because hooks use it."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from keepsake.core import pack
from keepsake.core.pack import Item, Summary
from keepsake.store.engine import Row, Tx, Value
from keepsake.store.filters import SAID_AT

SHARED = "shared"
#: Memories of each kind of knowledge, and shared ones, that are looked at: the newest of them.
MOST_OF_KIND, MOST_SHARED = 100, 50
#: The newest memories that are looked at: a few, and one more for so many tokens of the budget.
NEWEST, TOKENS_EACH, MOST_NEWEST = 40, 20, 1_000
_ITEM = (
    "m.id AS id, m.bank AS bank, m.kind AS kind, m.subtype AS subtype, m.title AS title, m.text AS text,"
    f" {SAID_AT} AS at, m.trust AS trust, m.pinned AS pinned"
)
_LIVE = "m.state = 'live' AND m.superseded_at IS NULL"
_OF_BANK = f"FROM memories m WHERE m.org = :org AND m.bank = :bank AND {_LIVE}"
_NEWEST = f"ORDER BY {SAID_AT} DESC LIMIT :most"
# One artifact may have a thousand sections, all as new as its last version.
_FRESH = f"SELECT {_ITEM} {_OF_BANK} AND m.kind NOT IN ('summary', 'artifact') {_NEWEST}"
_OF_KIND = f"SELECT {_ITEM} {_OF_BANK} AND m.kind = :kind {_NEWEST}"
_PINNED = f"SELECT {_ITEM} {_OF_BANK} AND m.pinned = 1 AND m.kind <> 'summary' ORDER BY m.id DESC LIMIT :most"
_SUMMARIES = (
    f"SELECT m.id AS id, m.bank AS bank, m.text AS text, m.parts AS parts, {SAID_AT} AS at {_OF_BANK}"
    f" AND m.kind = 'summary' {_NEWEST}"
)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What may go into a pack."""

    items: list[Item]
    summaries: list[Summary]


def _item(row: Row) -> Item:
    told = (row["id"], row["bank"], row["kind"], row["subtype"], row["title"], row["text"], row["at"])
    return Item(*told, trust=row["trust"], is_pinned=bool(row["pinned"]))


def newest(budget: int) -> int:
    """How many of the newest memories may fit in a budget."""
    return min(MOST_NEWEST, NEWEST + budget // TOKENS_EACH)


async def candidates(tx: Tx, org: int, bank: int, others: Sequence[int], most: int) -> Candidates:
    """The newest memories of a bank, all its knowledge and what is pinned, its last summaries, what others share."""
    values: dict[str, Value] = {"org": org, "bank": bank}
    last, *found = await tx.gather(
        (_SUMMARIES, values | {"most": pack.SUMMARIES}),
        (_FRESH, values | {"most": most}),
        (_PINNED, values | {"most": MOST_OF_KIND}),
        # Each kind by itself: asked for all at once, the planner would rather walk through the whole bank.
        *((_OF_KIND, values | {"kind": kind, "most": MOST_OF_KIND}) for kind in pack.KNOWLEDGE),
    )
    shared = await _shared(tx, org, others) if others else []
    items = {row["id"]: _item(row) for rows in [*found, shared] for row in rows}
    return Candidates(list(items.values()), [_summary(row) for row in last])


async def _shared(tx: Tx, org: int, others: Sequence[int]) -> list[Row]:
    """The newest memories of other banks that are meant for all."""
    tagged = await tx.all(
        "SELECT bank, memory FROM memory_tags WHERE org = :org AND bank = ANY_INT(:others) AND tag = :tag"
        " ORDER BY memory DESC LIMIT :most",
        org=org,
        others=list(others),
        tag=SHARED,
        most=MOST_SHARED,
    )
    if not tagged:
        return []
    return await tx.all(
        f"SELECT {_ITEM} FROM memories m WHERE m.org = :org AND m.bank = ANY_INT(:banks) AND m.id = ANY_INT(:ids)"
        f" AND {_LIVE} AND m.kind <> 'summary'",
        org=org,
        banks=sorted({row["bank"] for row in tagged}),
        ids=[row["memory"] for row in tagged],
    )


async def items(tx: Tx, org: int, bank: int, ids: Iterable[int]) -> list[Item]:
    """Live memories of a bank by id; summaries are none."""
    rows = await tx.all(
        f"SELECT {_ITEM} {_OF_BANK} AND m.kind <> 'summary' AND m.id = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=sorted(ids),
    )
    return [_item(row) for row in rows]


def _summary(row: Row) -> Summary:
    parts = json.loads(row["parts"])
    told = {name: str(parts[name]) for name in pack.SUMMARY if parts.get(name)}
    return Summary(row["id"], row["bank"], row["at"], row["text"], told)
