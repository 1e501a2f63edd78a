"""Orgs, and the ids that the world knows them by."""

import secrets

from keepsake.store.engine import Tx


async def external(tx: Tx, org: int) -> str | None:
    """The id of an org, where it has one."""
    row = await tx.one("SELECT external FROM orgs WHERE org = :org", org=org)
    return row["external"] if row else None


async def named(tx: Tx, org: int) -> str | None:
    """The id of an org, made now if it had none."""
    await tx.run(
        "UPDATE orgs SET external = :made WHERE org = :org AND external IS NULL",
        made=f"proj_{secrets.token_hex(8)}",
        org=org,
    )
    return await external(tx, org)
