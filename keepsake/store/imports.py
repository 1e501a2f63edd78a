"""Imports: what was taken over from other tools, known again by the key it has there."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from keepsake.store import sources
from keepsake.store.engine import Tx

KIND = "import"
_MEMORY = "memory:"


@dataclass(frozen=True, slots=True)
class Known:
    """A record that was met before."""

    source: int
    #: Whether the memory that it became is still there.
    is_held: bool


async def known(tx: Tx, org: int, bank: int, keys: Sequence[str]) -> dict[str, Known]:
    """Which of these records a bank has met before."""
    rows = await tx.all(
        "SELECT key, id, uri FROM sources WHERE org = :org AND bank = :bank AND kind = :kind AND key = ANY_TEXT(:keys)",
        org=org,
        bank=bank,
        kind=KIND,
        keys=list(keys),
    )
    became = {row["key"]: int(row["uri"].removeprefix(_MEMORY) or 0) for row in rows}
    held = await tx.all(
        "SELECT id FROM memories WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=sorted(set(became.values())),
    )
    there = {row["id"] for row in held}
    return {row["key"]: Known(row["id"], became[row["key"]] in there) for row in rows}


async def note(tx: Tx, org: int, bank: int, key: str, memory: int, known: Known | None, source: int, now: int) -> None:
    """Note what a record became; its text stands in the memory, which alone must go when it is forgotten."""
    if known is None:
        made = sources.Source(org, bank, source, KIND, key, "", "", now, uri=f"{_MEMORY}{memory}")
        await sources.insert(tx, made)
        return
    await tx.run(
        "UPDATE sources SET uri = :uri WHERE org = :org AND bank = :bank AND id = :id",
        uri=f"{_MEMORY}{memory}",
        org=org,
        bank=bank,
        id=known.source,
    )


@dataclass(frozen=True, slots=True)
class Session:
    """How far the transcripts of a session were read; events forget their keys, this does not."""

    source: int
    #: Until when the session was captured while it ran; 0 when it was not.
    live_until: int = 0
    #: Bytes that were read of each of its transcripts.
    files: dict[str, int] = field(default_factory=dict)


async def session(tx: Tx, org: int, bank: int, key: str) -> Session | None:
    """How far a session was read; None when it never was."""
    row = await sources.current(tx, org, bank, KIND, key)
    if row is None:
        return None
    files = row.meta.get("files")
    known = {str(name): int(end) for name, end in files.items()} if isinstance(files, dict) else {}
    return Session(row.id, int(str(row.meta.get("live_until", 0))), known)


async def begin(tx: Tx, org: int, bank: int, key: str, begun: Session, now: int) -> None:
    """Note that a session's transcripts are being read."""
    meta: dict[str, object] = {"live_until": begun.live_until, "files": begun.files}
    await sources.insert(tx, sources.Source(org, bank, begun.source, KIND, key, "", "", now, meta=meta))


async def reach(tx: Tx, org: int, bank: int, reached: Session) -> None:
    """Note how far they were read."""
    await tx.run(
        "UPDATE sources SET meta = :meta WHERE org = :org AND bank = :bank AND id = :id",
        meta=json.dumps({"live_until": reached.live_until, "files": reached.files}),
        org=org,
        bank=bank,
        id=reached.source,
    )


@dataclass(frozen=True, slots=True)
class Told:
    """An event that hooks have told, or an import."""

    key: str
    event: str
    at: int


async def told(tx: Tx, org: int, session: str) -> list[Told]:
    """The events of a session that are still remembered."""
    rows = await tx.all(
        "SELECT key, event, at FROM events WHERE org = :org AND session = :session", org=org, session=session
    )
    return [Told(row["key"], row["event"], row["at"]) for row in rows]
