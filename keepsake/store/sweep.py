"""What outlived its use: cleared away by the background, org by org."""

from keepsake.store.engine import Tx


async def orgs(tx: Tx) -> list[int]:
    """Every org there is."""
    return [int(row["org"]) for row in await tx.all("SELECT org FROM orgs ORDER BY org")]


async def handed_out(tx: Tx, org: int, now: int) -> int:
    """Drop what was handed out so long ago that no one will bring it back; tells how many."""
    return await tx.run("DELETE FROM handed_out WHERE org = :org AND expires_at <= :now", org=org, now=now)
