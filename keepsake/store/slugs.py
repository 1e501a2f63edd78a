"""Readable names of memories."""

from keepsake.core import ids, slug
from keepsake.store.engine import Tx

#: Numbers behind a name that are looked at together.
TRIED = 50


async def fresh(tx: Tx, org: int, bank: int, told: str) -> str:
    """A name that no memory of the bank has; whoever asks holds the bank's sequence, so nobody else takes it."""
    made, start = slug.made(told), 1
    while True:
        names = [made if n == 1 else f"{made}-{n}" for n in range(start, start + TRIED)]
        rows = await tx.all(
            "SELECT slug FROM memories WHERE org = :org AND bank = :bank AND slug = ANY_TEXT(:names) AND slug <> ''",
            org=org,
            bank=bank,
            names=names,
        )
        taken = {row["slug"] for row in rows}
        if free := next((name for name in names if name not in taken), None):
            return free
        start += TRIED


async def named(tx: Tx, org: int, bank: int, name: str) -> int | None:
    """The memory of a name: the one that holds now, else the last that had it."""
    row = await tx.one(
        "SELECT id FROM memories WHERE org = :org AND bank = :bank AND slug = :name AND slug <> ''"
        " ORDER BY CASE WHEN state = 'live' AND superseded_at IS NULL THEN 0 ELSE 1 END, id DESC LIMIT 1",
        org=org,
        bank=bank,
        name=name,
    )
    return int(row["id"]) if row else None


async def meant(tx: Tx, org: int, bank: int, told: str) -> int | None:
    """The memory that an id, a name, or a name that was made up to be shown means."""
    if found := ids.parse(told):
        return found
    return await named(tx, org, bank, told) or ids.parse(slug.id_in(told))
