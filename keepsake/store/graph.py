"""The knowledge graph of a bank as it is drawn: memories and artifacts in outline."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.store.engine import Ask, Row, Value
from keepsake.store.filters import SAID_AT

_OUTLINE = (
    "id, kind, title, substr(text, 1, 200) AS start, CASE WHEN kind IN ('decision', 'constraint', 'heuristic',"
    f" 'rejected') THEN parts ELSE '{{}}' END AS parts, {SAID_AT} AS at, superseded_by,"
    " CASE WHEN superseded_at IS NULL THEN 0 ELSE 1 END AS is_superseded"
)


@dataclass(frozen=True, slots=True)
class Outline:
    """A memory as a node."""

    id: int
    kind: str
    title: str
    at: int
    #: How a decision stands is among its parts.
    parts: dict[str, object]
    is_superseded: bool
    superseded_by: int | None


def _outline(row: Row) -> Outline:
    parts = json.loads(row["parts"]) if row["parts"] != "{}" else {}
    is_superseded = bool(row["is_superseded"])
    return Outline(
        row["id"], row["kind"], row["title"] or row["start"], row["at"], parts, is_superseded, row["superseded_by"]
    )


def outlines(org: int, bank: int, ids: Sequence[int]) -> Ask[dict[int, Outline]]:
    """Memories by id, whatever their state; unknown ids are left out."""
    return Ask(
        f"SELECT {_OUTLINE} FROM memories WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        {"org": org, "bank": bank, "ids": list(ids)},
        lambda rows: {row["id"]: _outline(row) for row in rows},
    )


@dataclass(frozen=True, slots=True)
class Point:
    """A memory as a node that may be left out: without its words."""

    id: int
    kind: str
    at: int
    is_superseded: bool


_POINT = f"id, kind, {SAID_AT} AS at, CASE WHEN superseded_at IS NULL THEN 0 ELSE 1 END AS is_superseded"


def _points(rows: list[Row]) -> list[Point]:
    return [Point(row["id"], row["kind"], row["at"], bool(row["is_superseded"])) for row in rows]


def points(org: int, bank: int, ids: Sequence[int]) -> Ask[list[Point]]:
    """Memories by id, whatever their state; unknown ids are left out."""
    return Ask(
        f"SELECT {_POINT} FROM memories WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        {"org": org, "bank": bank, "ids": list(ids)},
        _points,
    )


def newest_points(org: int, bank: int, kind: str, limit: int) -> Ask[list[Point]]:
    """The latest memories of a kind, what was superseded among them."""
    return Ask(
        f"SELECT {_POINT} FROM memories WHERE org = :org AND bank = :bank AND kind = :kind AND state = 'live'"
        f" ORDER BY {SAID_AT} DESC LIMIT :limit",
        {"org": org, "bank": bank, "kind": kind, "limit": limit},
        _points,
    )


def newest(org: int, bank: int, kind: str, limit: int) -> Ask[list[Outline]]:
    """The latest memories of a kind, what was superseded among them."""
    values: dict[str, Value] = {"org": org, "bank": bank, "kind": kind, "limit": limit}
    return Ask(
        f"SELECT {_OUTLINE} FROM memories WHERE org = :org AND bank = :bank AND kind = :kind AND state = 'live'"
        f" ORDER BY {SAID_AT} DESC LIMIT :limit",
        values,
        lambda rows: [_outline(row) for row in rows],
    )


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact as a node."""

    id: int
    title: str
    at: int


_ARTIFACT = "SELECT id, title, identifier, updated_at FROM artifacts WHERE org = :org AND bank = :bank"


def _artifacts(rows: list[Row]) -> list[Artifact]:
    return [Artifact(row["id"], row["title"] or row["identifier"], row["updated_at"]) for row in rows]


def artifacts(org: int, bank: int, ids: Sequence[int]) -> Ask[list[Artifact]]:
    """Artifacts by id; unknown ids are left out."""
    return Ask(f"{_ARTIFACT} AND id = ANY_INT(:ids)", {"org": org, "bank": bank, "ids": list(ids)}, _artifacts)


def newest_artifacts(org: int, bank: int, limit: int) -> Ask[list[Artifact]]:
    """The artifacts that were changed last."""
    values: dict[str, Value] = {"org": org, "bank": bank, "limit": limit}
    return Ask(f"{_ARTIFACT} ORDER BY updated_at DESC, id DESC LIMIT :limit", values, _artifacts)
