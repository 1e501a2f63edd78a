"""What tells that something has changed, without reading all of it."""

from collections.abc import Sequence

from keepsake.store.engine import Tx, Value

#: As far as whatever is compared reaches back.
NEWEST = 50


async def _told(tx: Tx, sql: str, org: int, bank: int, **values: Value) -> str:
    rows = await tx.all(sql, org=org, bank=bank, **values)
    return "\n".join(" ".join(str(value) for value in dict(row).values()) for row in rows)


async def newest(tx: Tx, org: int, bank: int) -> str:
    """The newest memories and artifacts."""
    held = await _told(
        tx,
        "SELECT id FROM memories WHERE org = :org AND bank = :bank AND state = 'live' AND superseded_at IS NULL"
        " ORDER BY id DESC LIMIT :limit",
        org,
        bank,
        limit=NEWEST,
    )
    made = await _told(
        tx,
        "SELECT id FROM artifacts WHERE org = :org AND bank = :bank ORDER BY id DESC LIMIT :limit",
        org,
        bank,
        limit=NEWEST,
    )
    return f"{held}/{made}"


async def of_kinds(tx: Tx, org: int, bank: int, kinds: Sequence[str]) -> str:
    """Memories of some kinds."""
    return await _told(
        tx,
        "SELECT count(*) AS held, max(id) AS last, max(superseded_at) AS replaced FROM memories"
        " WHERE org = :org AND bank = :bank AND state = 'live' AND kind = ANY_TEXT(:kinds)",
        org,
        bank,
        kinds=list(kinds),
    )


async def of_memory(tx: Tx, org: int, bank: int, id: int) -> str:
    """One memory."""
    return await _told(
        tx,
        "SELECT id, kind, title, text_hash, state, superseded_at FROM memories"
        " WHERE org = :org AND bank = :bank AND id = :id",
        org,
        bank,
        id=id,
    )


async def of_artifact(tx: Tx, org: int, bank: int, told: str) -> str:
    """One artifact, by its id or identifier."""
    return await _told(
        tx,
        "SELECT id, version, updated_at FROM artifacts"
        " WHERE org = :org AND bank = :bank AND (CAST(id AS TEXT) = :told OR identifier = :told)",
        org,
        bank,
        told=told,
    )
