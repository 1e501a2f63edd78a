"""Records: where memories are, what stands beside them in time, and the sessions they came from."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.store.engine import Tx, Value
from keepsake.store.filters import HELD, SAID_AT


async def sessions(tx: Tx, org: int, bank: int, sources: Sequence[int]) -> dict[int, str]:
    """The client's own ids of those sources that are sessions."""
    rows = await tx.all(
        "SELECT id, key FROM sessions WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(sources),
    )
    return {row["id"]: row["key"] for row in rows}


async def places(tx: Tx, org: int, ids: Sequence[int]) -> dict[int, int]:
    """The bank of each memory; ids are unique in the org, and unknown ones are left out."""
    rows = await tx.all(
        # Without `state` the primary key alone would answer, and SQLite would read all of it.
        "SELECT id, bank, state FROM memories WHERE org = :org AND id = ANY_INT(:ids)",
        org=org,
        ids=list(ids),
    )
    return {row["id"]: row["bank"] for row in rows}


async def summed_up(tx: Tx, org: int, banks: Sequence[int]) -> set[int]:
    """The banks that hold summaries."""
    rows = await tx.all(
        "SELECT b.bank AS bank FROM banks b WHERE b.org = :org AND b.bank = ANY_INT(:banks) AND EXISTS"
        " (SELECT 1 FROM memories m WHERE m.org = b.org AND m.bank = b.bank AND m.kind = 'summary')",
        org=org,
        banks=list(banks),
    )
    return {row["bank"] for row in rows}


@dataclass(frozen=True, slots=True)
class Anchor:
    """A memory as a point in its bank's time."""

    org: int
    bank: int
    id: int
    at: int
    #: Only these kinds beside it; empty means all but summaries.
    kinds: tuple[str, ...] = ()


async def before(tx: Tx, anchor: Anchor, limit: int) -> list[int]:
    """The memories that came last before it, the nearest first."""
    return await _beside(tx, anchor, "<", "DESC", limit)


async def after(tx: Tx, anchor: Anchor, limit: int) -> list[int]:
    """The memories that came first after it, the nearest first."""
    return await _beside(tx, anchor, ">", "ASC", limit)


async def _beside(tx: Tx, anchor: Anchor, side: str, order: str, limit: int) -> list[int]:
    """One way through the index for each kind that is wanted, and one through all of time where none is."""
    values: dict[str, Value] = {
        "org": anchor.org,
        "bank": anchor.bank,
        "at": anchor.at,
        "id": anchor.id,
        "limit": limit,
    }
    asked = [(_next_to(side, order, "="), {**values, "kind": kind}) for kind in anchor.kinds]
    found = await tx.gather(*(asked or [(_next_to(side, order, "<>"), {**values, "kind": "summary"})]))
    rows = [(int(row["at"]), int(row["id"])) for each in found for row in each]
    return [id for _, id in sorted(rows, reverse=order == "DESC")[:limit]]


def _next_to(side: str, order: str, kind: str) -> str:
    return (
        f"SELECT m.id AS id, {SAID_AT} AS at FROM memories m WHERE m.org = :org AND m.bank = :bank"
        f" AND {SAID_AT} {side}= :at AND ({SAID_AT} {side} :at OR m.id {side} :id) AND m.kind {kind} :kind"
        f" AND m.state = 'live' AND m.superseded_at IS NULL ORDER BY {SAID_AT} {order}, m.id {order} LIMIT :limit"
    )


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a memory came from, and what it took the place of."""

    kind: str = ""
    key: str = ""
    uri: str = ""
    revision: str = ""
    span: str = ""
    supersedes: tuple[int, ...] = ()
    derived_from: tuple[int, ...] = ()


async def origins(tx: Tx, org: int, ids: Sequence[int]) -> dict[int, Origin]:
    """Where each of these memories came from; one that nobody knows came from nowhere."""
    banks = sorted(set((await places(tx, org, ids)).values()))
    values: dict[str, Value] = {"org": org, "banks": banks, "ids": list(ids)}
    told, linked = await tx.gather((_TOLD, values), (_LINKED, values))
    found = {id: Origin() for id in ids}
    for row in told:
        kind, key, uri, revision, span = (row[name] or "" for name in ("kind", "key", "uri", "revision", "span"))
        others = [one for one in linked if one["id"] == row["id"]]
        supersedes = tuple(one["other"] for one in others if one["why"] == "supersedes")
        derived = tuple(one["other"] for one in others if one["why"] != "supersedes")
        parent = (row["parent"],) if row["parent"] else ()
        made_from = tuple(dict.fromkeys((*parent, *derived)))
        found[row["id"]] = Origin(kind, key, uri, revision, span, supersedes, made_from)
    return found


_TOLD = (
    "SELECT m.id AS id, m.span AS span, m.parent AS parent, s.kind AS kind, s.key AS key, s.uri AS uri,"
    " s.revision AS revision FROM memories m LEFT JOIN sources s ON s.org = m.org AND s.bank = m.bank"
    " AND s.id = m.source WHERE m.org = :org AND m.bank = ANY_INT(:banks) AND m.id = ANY_INT(:ids)"
)
_LINKED = (
    "SELECT l.origin AS id, l.target AS other, l.why AS why FROM memory_links l WHERE l.org = :org"
    " AND l.bank = ANY_INT(:banks) AND l.origin = ANY_INT(:ids) AND l.why <> 'near_duplicate' ORDER BY l.target"
)


async def kinds(tx: Tx, org: int, bank: int, at: int) -> dict[str, int]:
    """How many memories hold, by kind."""
    rows = await tx.all(
        f"SELECT m.kind AS kind, count(*) AS held FROM memories m WHERE m.org = :org AND m.bank = :bank AND {HELD}"
        " GROUP BY m.kind",
        org=org,
        bank=bank,
        at=at,
    )
    return {row["kind"]: int(row["held"]) for row in rows}


async def last_learned(tx: Tx, org: int, bank: int) -> int | None:
    """When a bank last learned something; ids are in the order of time."""
    row = await tx.one(
        "SELECT learned_at FROM memories WHERE org = :org AND bank = :bank ORDER BY id DESC LIMIT 1", org=org, bank=bank
    )
    return int(row["learned_at"]) if row else None


async def saved(tx: Tx, org: int, banks: Sequence[int], ids: Sequence[int]) -> int:
    """What these memories had cost to find out, beyond what they cost to read."""
    row = await tx.one(
        "SELECT sum(CASE WHEN m.tokens > length(m.text) / 4 THEN m.tokens - length(m.text) / 4 ELSE 0 END) AS saved"
        " FROM memories m WHERE m.org = :org AND m.bank = ANY_INT(:banks) AND m.id = ANY_INT(:ids)",
        org=org,
        banks=list(banks),
        ids=list(ids),
    )
    return int(row["saved"] or 0) if row else 0
