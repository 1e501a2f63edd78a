"""Decisions, what belongs to them, and milestones: memories that are read by kind, status and time."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.store import memories, sessions
from keepsake.store.engine import Tx, Value
from keepsake.store.filters import SAID_AT
from keepsake.store.memories import Memory


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which of a bank's decisions or milestones."""

    org: int
    bank: int
    kinds: tuple[str, ...]
    statuses: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    subtype: str = ""
    #: When it happened, else was learned: from this moment on, and before that one.
    since: int | None = None
    until: int | None = None
    #: A memory that it must be related to.
    related: int | None = None
    include_superseded: bool = False


def _where(wanted: Wanted) -> tuple[str, dict[str, Value]]:
    clauses = ["m.org = :org AND m.bank = :bank AND m.state = 'live' AND m.kind = ANY_TEXT(:kinds)"]
    values: dict[str, Value] = {"org": wanted.org, "bank": wanted.bank, "kinds": list(wanted.kinds)}
    if not wanted.include_superseded:
        clauses.append("m.superseded_at IS NULL")
    if wanted.subtype:
        clauses.append("m.subtype = :subtype")
        values["subtype"] = wanted.subtype
    if wanted.tags:
        clauses.append(
            "EXISTS (SELECT 1 FROM memory_tags t WHERE t.org = m.org AND t.bank = m.bank AND t.memory = m.id"
            " AND t.tag = ANY_TEXT(:tags))"
        )
        values["tags"] = list(wanted.tags)
    for name, sign in (("since", ">="), ("until", "<")):
        if (moment := getattr(wanted, name)) is not None:
            clauses.append(f"{SAID_AT} {sign} :{name}")
            values[name] = moment
    if wanted.related is not None:
        clauses.append(
            "m.id IN (SELECT r.origin FROM relations r WHERE r.org = :org AND r.bank = :bank AND r.target = :related"
            " UNION SELECT r.target FROM relations r WHERE r.org = :org AND r.bank = :bank AND r.origin = :related)"
        )
        values["related"] = wanted.related
    if wanted.statuses:
        clauses.append(_has_status(wanted.statuses, values))
    return " AND ".join(clauses), values


def _has_status(statuses: Sequence[str], values: dict[str, Value]) -> str:
    """A decision says its status among its parts; one that was stated in passing says none, and holds."""
    ways = []
    for n, status in enumerate(statuses):
        # Quotation marks inside of a JSON text are escaped, so no text of a part can look like this.
        values[f"status{n}"] = f'%"status": "{status}"%'
        ways.append(f"m.parts LIKE :status{n}")
        if status in ("accepted", "rejected"):
            sign = "=" if status == "rejected" else "<>"
            ways.append(f"(m.parts NOT LIKE '%\"status\": %' AND m.kind {sign} 'rejected')")
    own = " OR ".join(ways)
    if "superseded" in statuses:
        return f"(m.superseded_at IS NOT NULL OR {own})"
    return f"(m.superseded_at IS NULL AND ({own}))"


async def page(tx: Tx, wanted: Wanted, limit: int, offset: int) -> tuple[list[Memory], int]:
    """A page of them, the latest first, and how many there are in all."""
    where, values = _where(wanted)
    # The plus keeps SQLite from walking through all of time where few stand so: they are found by kind, then sorted.
    rows = await tx.planned(
        f"SELECT m.id AS id FROM memories m WHERE {where} ORDER BY +{SAID_AT} DESC, m.id DESC"
        " LIMIT :limit OFFSET :offset",
        limit=limit,
        offset=offset,
        **values,
    )
    total = await tx.planned(f"SELECT count(*) AS total FROM memories m WHERE {where}", **values)
    order = [row["id"] for row in rows]
    held = await memories.fetched(tx, wanted.org, wanted.bank, order)
    return [held[id] for id in order if id in held], int(total[0]["total"])


async def twin(tx: Tx, memory: Memory) -> Memory | None:
    """The memory of the same kind and words that still holds."""
    id = await sessions.stated(tx, memory.org, memory.bank, memory.kind, memory.text_hash)
    found = await memories.fetched(tx, memory.org, memory.bank, [id]) if id else {}
    return next(iter(found.values()), None)


async def among(tx: Tx, wanted: Wanted, ids: Sequence[int]) -> dict[int, Memory]:
    """Those of these memories that are wanted."""
    where, values = _where(wanted)
    rows = await tx.all(
        f"SELECT m.id AS id FROM memories m WHERE {where} AND m.id = ANY_INT(:among)", among=list(ids), **values
    )
    return await memories.fetched(tx, wanted.org, wanted.bank, [row["id"] for row in rows])


async def replaced(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> dict[int, list[int]]:
    """What each of these has taken the place of, the latest first."""
    rows = await tx.all(
        "SELECT origin, target FROM memory_links WHERE org = :org AND bank = :bank AND why = 'supersedes'"
        " AND origin = ANY_INT(:ids) ORDER BY target DESC",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    found: dict[int, list[int]] = {}
    for row in rows:
        found.setdefault(row["origin"], []).append(row["target"])
    return found
