"""What a brief is made of, read by few indexed statements: nothing that was superseded or forgotten."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from keepsake.core.decision import BLOCKER, KINDS
from keepsake.store import relations
from keepsake.store.engine import Asked, Row, Tx, Value
from keepsake.store.filters import SAID_AT
from keepsake.store.relations import Relation

#: Rows that are looked at: of each kind of decision, of milestones, of what is in the way, of other memories, of edges.
DECISIONS, MILESTONES, BLOCKERS, MEMORIES, EDGES = 24, 12, 20, 12, 40
#: What else is told of a bank.
OTHERS = ("fact", "note", "insight", "summary")
#: Characters of a text that may be shown.
START = 400
_ROW = (
    f"m.id AS id, m.kind AS kind, m.title AS title, substr(m.text, 1, {START}) AS text, m.parts AS parts,"
    f" {SAID_AT} AS at, m.trust AS trust"
)
_LIVE = "m.org = :org AND m.bank = :bank AND m.state = 'live' AND m.superseded_at IS NULL"
#: What came from outside is no decision and no blocker of ours, whatever it says.
_OURS = "m.trust <> 'outside'"
_OF_KIND = f"SELECT {_ROW} FROM memories m WHERE {_LIVE} AND m.kind = :kind ORDER BY {SAID_AT} DESC LIMIT :most"
_DECIDED = (
    f"SELECT {_ROW} FROM memories m WHERE {_LIVE} AND m.kind = :kind AND {_OURS} ORDER BY {SAID_AT} DESC LIMIT :most"
)
_TAGGED = (
    f"SELECT {_ROW} FROM memory_tags t JOIN memories m ON m.org = t.org AND m.bank = t.bank AND m.id = t.memory"
    f" WHERE t.org = :org AND t.bank = :bank AND t.tag = '{BLOCKER}' AND {_LIVE} AND {_OURS}"
    " ORDER BY t.memory DESC LIMIT :most"
)
_FILED = (
    f"SELECT {_ROW} FROM memories m WHERE {_LIVE} AND m.category = '{BLOCKER}' AND {_OURS}"
    " ORDER BY m.id DESC LIMIT :most"
)
_CONFLICTS = (
    f"SELECT c.id AS id, c.created_at AS at, substr(o.text, 1, {START}) AS older, substr(n.text, 1, {START}) AS newer"
    " FROM conflicts c JOIN memories o ON o.org = c.org AND o.bank = c.bank AND o.id = c.older"
    " JOIN memories n ON n.org = c.org AND n.bank = c.bank AND n.id = c.newer"
    " WHERE c.org = :org AND c.bank = :bank AND c.state = 'open' AND o.superseded_at IS NULL"
    " AND n.superseded_at IS NULL ORDER BY c.id DESC LIMIT :most"
)
_INCIDENTS = (
    "SELECT id, name, reason, opened_at FROM incidents WHERE org = :org AND bank = :bank AND resolved_at IS NULL"
    " ORDER BY opened_at DESC LIMIT :most"
)


@dataclass(frozen=True, slots=True)
class Told:
    """A memory in outline."""

    id: int
    kind: str
    title: str
    text: str
    at: int
    trust: str
    parts: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Doubt:
    """Two memories that cannot both hold."""

    id: int
    at: int
    older: str
    newer: str


@dataclass(frozen=True, slots=True)
class Outage:
    """An incident that is not over."""

    id: int
    at: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Material:
    """What may go into a brief, the latest of each first."""

    decisions: Sequence[Told]
    blockers: Sequence[Told]
    milestones: Sequence[Told]
    memories: Sequence[Told]
    doubts: Sequence[Doubt]
    outages: Sequence[Outage]
    edges: Sequence[Relation]


def _told(row: Row) -> Told:
    parts = json.loads(row["parts"]) if row["kind"] in KINDS and row["parts"] != "{}" else {}
    return Told(row["id"], row["kind"], row["title"], row["text"], row["at"], row["trust"], parts)


def _latest(found: Iterable[list[Row]]) -> list[Told]:
    told = {row["id"]: _told(row) for rows in found for row in rows}
    return sorted(told.values(), key=lambda one: (-one.at, -one.id))


async def material(tx: Tx, org: int, bank: int, with_incidents: bool) -> Material:
    """Read all of it at once; incidents are for those who may see them."""
    values: dict[str, Value] = {"org": org, "bank": bank}
    blocked: list[Asked] = [(sql, values | {"most": BLOCKERS}) for sql in (_TAGGED, _FILED)]
    # Each kind by itself: asked for all at once, the planner would rather walk through the whole bank.
    decided: list[Asked] = [(_DECIDED, values | {"kind": kind, "most": DECISIONS}) for kind in KINDS]
    others: list[Asked] = [(_OF_KIND, values | {"kind": kind, "most": MEMORIES}) for kind in OTHERS]
    edges = relations.newest(org, bank, EDGES)
    outages: list[Asked] = [(_INCIDENTS, values | {"most": BLOCKERS})] if with_incidents else []
    found = await tx.gather(
        (_CONFLICTS, values | {"most": BLOCKERS}),
        edges.asked,
        (_OF_KIND, values | {"kind": "milestone", "most": MILESTONES}),
        *blocked,
        *decided,
        *others,
        *outages,
    )
    doubts, drawn, milestones, *rest = found
    down = rest[10] if outages else []
    return Material(
        decisions=_latest(rest[2:6]),
        blockers=_latest(rest[:2]),
        milestones=_latest([milestones]),
        memories=_latest(rest[6:10]),
        doubts=[Doubt(row["id"], row["at"], row["older"], row["newer"]) for row in doubts],
        outages=[Outage(row["id"], row["opened_at"], row["name"], row["reason"]) for row in down],
        edges=edges.read(drawn),
    )
