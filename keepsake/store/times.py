"""Times: which memories were told in a stretch of time, or speak of one within it."""

from keepsake.store.engine import Tx
from keepsake.store.filters import HELD, SAID_AT, Filter


async def within(tx: Tx, given: Filter, start: int, end: int, limit: int) -> list[int]:
    """Some memories of a stretch of time that held at the filter's moment, the latest first."""
    narrowed = f"m.org = :org AND m.bank = :bank AND {HELD}"
    rows = await tx.all(
        f"SELECT id FROM (SELECT m.id AS id FROM memories m WHERE {narrowed} AND {SAID_AT} >= :start"
        f" AND {SAID_AT} < :end ORDER BY {SAID_AT} DESC LIMIT :limit) AS said"
        f" UNION SELECT id FROM (SELECT m.id AS id FROM memories m WHERE {narrowed} AND happened_to IS NOT NULL"
        " AND happened_from >= :start AND happened_from < :end AND happened_to <= :end"
        " ORDER BY happened_from DESC LIMIT :limit) AS happened",
        org=given.org,
        bank=given.bank,
        at=given.at,
        start=start,
        end=end,
        limit=limit,
    )
    return [row["id"] for row in rows]
