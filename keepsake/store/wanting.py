"""How work is asked for: one statement, light enough for a hook."""

from keepsake.store.engine import Tx

INSERT = (
    "INSERT INTO jobs (org, bank, id, kind, key, input, state, version, lease_until, holder, attempt, progress,"
    " not_before, ceiling, result, error, created_at, updated_at) VALUES (:org, :bank, :id, :kind, :key, :input,"
    " 'pending', 1, 0, '', 0, 0, :now, 0, '', '', :now, :now)"
)
_KEPT_WHILE_OPEN = ", ".join(
    f"{column} = CASE WHEN jobs.state IN ('pending', 'running') THEN jobs.{column} ELSE excluded.{column} END"
    for column in ("attempt", "progress", "not_before", "result", "error", "created_at")
)


async def ask(tx: Tx, org: int, bank: int, kind: str, id: int, now: int) -> None:
    """Ask for work of a kind on a bank; asking again while it waits or runs makes it look once more."""
    await tx.run(
        f"{INSERT} ON CONFLICT (org, bank, kind, key) DO UPDATE SET version = jobs.version + 1,"
        " state = CASE WHEN jobs.state = 'running' THEN jobs.state ELSE 'pending' END,"
        f" updated_at = excluded.updated_at, {_KEPT_WHILE_OPEN}",
        org=org,
        bank=bank,
        id=id,
        kind=kind,
        key="",
        input="",
        now=now,
    )
