"""Names in a bank by how they begin."""

from dataclasses import dataclass

from keepsake.store.engine import Tx, Value


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which names: those of a bank that begin like this, in lower case."""

    org: int
    bank: int
    start: str
    limit: int

    @property
    def values(self) -> dict[str, Value]:
        """As statements take it."""
        size = len(self.start)
        return {"org": self.org, "bank": self.bank, "start": self.start, "size": size, "limit": self.limit}


async def _names(tx: Tx, wanted: Wanted, sql: str) -> list[str]:
    return [row["name"] for row in await tx.all(f"{sql} ORDER BY name LIMIT :limit", **wanted.values)]


async def entities(tx: Tx, wanted: Wanted) -> list[str]:
    """Who and what memories speak of."""
    return await _names(
        tx,
        wanted,
        "SELECT name FROM entities WHERE org = :org AND bank = :bank AND substr(lower(name), 1, :size) = :start",
    )


async def tags(tx: Tx, wanted: Wanted) -> list[str]:
    """Tags in use."""
    return await _names(
        tx,
        wanted,
        "SELECT DISTINCT tag AS name FROM memory_tags WHERE org = :org AND bank = :bank"
        " AND substr(lower(tag), 1, :size) = :start",
    )


async def slugs(tx: Tx, wanted: Wanted) -> list[str]:
    """Names of memories that were given one."""
    return await _names(
        tx,
        wanted,
        "SELECT DISTINCT slug AS name FROM memories WHERE org = :org AND bank = :bank AND slug <> ''"
        " AND substr(slug, 1, :size) = :start AND state = 'live' AND superseded_at IS NULL",
    )


async def artifacts(tx: Tx, wanted: Wanted) -> list[str]:
    """Ids of artifacts."""
    return await _names(
        tx,
        wanted,
        "SELECT CAST(id AS TEXT) AS name FROM artifacts WHERE org = :org AND bank = :bank"
        " AND (substr(CAST(id AS TEXT), 1, :size) = :start OR substr(lower(identifier), 1, :size) = :start)",
    )
