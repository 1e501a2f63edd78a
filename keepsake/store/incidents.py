"""Incidents: when a check was down, what people said of it, and which memory tells it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from keepsake.store.engine import Row, Tx, Value

State = Literal["open", "resolved"]


@dataclass(frozen=True, slots=True)
class Incident:
    """One incident as stored."""

    org: int
    bank: int
    id: int
    check_id: int
    name: str
    target: str
    reason: str
    opened_at: int
    updated_at: int
    resolved_at: int | None = None
    flaps: int = 0
    acknowledged_at: int | None = None
    acknowledged_by: str = ""
    memory: int | None = None
    #: Earlier incidents like it.
    earlier: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """What someone said of an incident."""

    org: int
    bank: int
    incident: int
    id: int
    at: int
    author: str
    text: str
    #: Whether the incident's memory tells it too.
    told: bool


_NAMES = tuple(Incident.__dataclass_fields__)
_COLUMNS = ", ".join(_NAMES)
_OF = "org = :org AND bank = :bank AND id = :id"


def _incident(row: Row) -> Incident:
    return Incident(**{name: row[name] for name in _NAMES} | {"earlier": tuple(json.loads(row["earlier"]))})


async def put(tx: Tx, incident: Incident) -> None:
    """Write an incident, whole."""
    values: dict[str, Value] = {name: getattr(incident, name) for name in _NAMES}
    values["earlier"] = json.dumps(incident.earlier)
    kept = ", ".join(f"{name} = excluded.{name}" for name in _NAMES if name not in ("org", "bank", "id"))
    await tx.run(
        f"INSERT INTO incidents ({_COLUMNS}) VALUES ({', '.join(':' + name for name in _NAMES)})"
        f" ON CONFLICT (org, bank, id) DO UPDATE SET {kept}",
        **values,
    )


async def get(tx: Tx, org: int, bank: int, id: int) -> Incident | None:
    """One incident of a bank."""
    row = await tx.one(f"SELECT {_COLUMNS} FROM incidents WHERE {_OF}", org=org, bank=bank, id=id)
    return _incident(row) if row else None


async def several(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> dict[int, Incident]:
    """Incidents of a bank by id; unknown ids are left out."""
    if not ids:
        return {}
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM incidents WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(ids),
    )
    return {row["id"]: _incident(row) for row in rows}


async def latest(tx: Tx, org: int, bank: int, check: int) -> Incident | None:
    """The newest incident of a check."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM incidents WHERE org = :org AND bank = :bank AND check_id = :check_id"
        " ORDER BY opened_at DESC, id DESC LIMIT 1",
        org=org,
        bank=bank,
        check_id=check,
    )
    return _incident(row) if row else None


async def of_memories(tx: Tx, org: int, bank: int, memories: Sequence[int]) -> dict[int, int]:
    """Which incidents that are over these memories tell, by memory."""
    rows = await tx.all(
        "SELECT id, memory FROM incidents WHERE org = :org AND bank = :bank AND memory = ANY_INT(:memories)"
        " AND resolved_at IS NOT NULL",
        org=org,
        bank=bank,
        memories=list(memories),
    )
    return {row["memory"]: row["id"] for row in rows}


@dataclass(frozen=True, slots=True)
class Page:
    """Which incidents of a bank, newest first."""

    org: int
    bank: int
    limit: int
    state: State | None = None
    #: The check's name as it was then.
    name: str | None = None
    offset: int = 0


async def listed(tx: Tx, page: Page) -> tuple[list[Incident], int]:
    """A page of incidents, newest first, and how many there are."""
    values: dict[str, Value] = {"org": page.org, "bank": page.bank}
    where = "org = :org AND bank = :bank"
    if page.state is not None:
        where += " AND resolved_at IS NULL" if page.state == "open" else " AND resolved_at IS NOT NULL"
    if page.name is not None:
        where += " AND name = :name"
        values["name"] = page.name
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM incidents WHERE {where} ORDER BY opened_at DESC, id DESC LIMIT :limit OFFSET :offset",
        **values,
        limit=page.limit,
        offset=page.offset,
    )
    counted = await tx.one(f"SELECT count(*) AS held FROM incidents WHERE {where}", **values)
    return [_incident(row) for row in rows], int(counted["held"]) if counted else 0


async def open_of(tx: Tx, org: int, bank: int, checks: Sequence[int]) -> dict[int, int]:
    """The open incidents of some checks."""
    rows = await tx.all(
        "SELECT id, check_id FROM incidents WHERE org = :org AND bank = :bank AND check_id = ANY_INT(:checks)"
        " AND resolved_at IS NULL",
        org=org,
        bank=bank,
        checks=list(checks),
    )
    return {row["check_id"]: row["id"] for row in rows}


async def note(tx: Tx, note: Note) -> None:
    """Add a note."""
    await tx.run(
        "INSERT INTO incident_notes (org, bank, incident, id, at, author, text, told)"
        " VALUES (:org, :bank, :incident, :id, :at, :author, :text, :told)",
        org=note.org,
        bank=note.bank,
        incident=note.incident,
        id=note.id,
        at=note.at,
        author=note.author,
        text=note.text,
        told=int(note.told),
    )


async def notes(tx: Tx, org: int, bank: int, incidents: Sequence[int]) -> dict[int, list[Note]]:
    """The notes of some incidents, oldest first."""
    rows = await tx.all(
        "SELECT org, bank, incident, id, at, author, text, told FROM incident_notes"
        " WHERE org = :org AND bank = :bank AND incident = ANY_INT(:incidents) ORDER BY incident, id",
        org=org,
        bank=bank,
        incidents=list(incidents),
    )
    found: dict[int, list[Note]] = {}
    for row in rows:
        found.setdefault(row["incident"], []).append(Note(**{**row, "told": bool(row["told"])}))
    return found
