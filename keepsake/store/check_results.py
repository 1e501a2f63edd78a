"""What checks found: samples for days, roll-ups by the hour for months."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keepsake.core.anomaly import ENOUGH, Hour, Sample
from keepsake.core.clock import DAY, HOUR
from keepsake.store.engine import Row, Tx, Value

#: How long samples and hours are kept.
SAMPLES_FOR, HOURS_FOR = 3 * DAY, 180 * DAY
#: Checks that are rolled up in one transaction.
BATCH = 50


@dataclass(frozen=True, slots=True)
class Behind:
    """A check whose samples are to be rolled up."""

    org: int
    bank: int
    id: int
    rolled_to: int
    removed_at: int | None


async def behind(tx: Tx, hour: int) -> list[Behind]:
    """Checks of any org that are not rolled up to the beginning of this hour."""
    rows = await tx.all(
        "SELECT org, bank, id, rolled_to, removed_at FROM checks WHERE rolled_to < :hour ORDER BY org, bank, id",
        hour=hour,
    )
    return [Behind(**row) for row in rows]


async def since(tx: Tx, org: int, bank: int, ids: Sequence[int], at: int) -> dict[int, list[Sample]]:
    """The samples of some checks from a moment on, oldest first."""
    rows = await tx.all(
        "SELECT check_id, at, ok, latency FROM check_results WHERE org = :org AND bank = :bank"
        " AND check_id = ANY_INT(:ids) AND at >= :at ORDER BY check_id, at",
        org=org,
        bank=bank,
        ids=list(ids),
        at=at,
    )
    found: dict[int, list[Sample]] = {}
    for row in rows:
        found.setdefault(row["check_id"], []).append(Sample(row["at"], bool(row["ok"]), row["latency"]))
    return found


async def roll(tx: Tx, org: int, bank: int, hours: Mapping[int, Sequence[Hour]], hour: int) -> None:
    """Keep the hours of some checks, up to this one; drop what is too old."""
    rows: list[dict[str, Value]] = [
        {
            "org": org,
            "bank": bank,
            "id": id,
            "hour": one.hour,
            "runs": one.runs,
            "failures": one.failures,
            "latency": -1 if one.latency is None else one.latency,
            "spread": one.spread,
        }
        for id, of_check in hours.items()
        for one in of_check
    ]
    await tx.many(
        "INSERT INTO check_hours (org, bank, check_id, hour, runs, failures, latency, spread)"
        " VALUES (:org, :bank, :id, :hour, :runs, :failures, :latency, :spread)"
        " ON CONFLICT (org, bank, check_id, hour) DO UPDATE SET runs = excluded.runs, failures = excluded.failures,"
        " latency = excluded.latency, spread = excluded.spread",
        rows,
    )
    ids = list(hours)
    await _older(tx, "check_results", "at", org, bank, ids, hour - SAMPLES_FOR)
    await _older(tx, "check_hours", "hour", org, bank, ids, hour - HOURS_FOR)
    await tx.run(
        "UPDATE checks SET rolled_to = :hour WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=ids,
        hour=hour,
    )


async def _older(tx: Tx, table: str, column: str, org: int, bank: int, ids: Sequence[int], before: int) -> None:
    await tx.run(
        f"DELETE FROM {table} WHERE org = :org AND bank = :bank AND check_id = ANY_INT(:ids) AND {column} < :before",
        org=org,
        bank=bank,
        ids=list(ids),
        before=before,
    )


async def drop(tx: Tx, org: int, bank: int, ids: Sequence[int]) -> None:
    """Let go of checks that were removed so long ago that nothing of them is kept."""
    for table, column in (("check_results", "check_id"), ("check_hours", "check_id"), ("checks", "id")):
        await tx.run(
            f"DELETE FROM {table} WHERE org = :org AND bank = :bank AND {column} = ANY_INT(:ids)",
            org=org,
            bank=bank,
            ids=list(ids),
        )


def _hour(row: Row) -> Hour:
    latency = row["latency"] if row["latency"] >= 0 else None
    return Hour(row["hour"], row["runs"], row["failures"], latency, row["spread"])


async def history(tx: Tx, org: int, bank: int, id: int, at: int, reach: int) -> list[Hour]:
    """The hours of a check at the same time of day; where those are few, every hour of the last days."""
    of = "FROM check_hours WHERE org = :org AND bank = :bank AND check_id = :id"
    told = "SELECT hour, runs, failures, latency, spread"
    rows = await tx.all(
        f"{told} {of} AND hour >= :first AND hour < :now AND (:hour - hour / {HOUR}) % 24 = 0 ORDER BY hour",
        org=org,
        bank=bank,
        id=id,
        first=at - reach,
        now=at // HOUR * HOUR,
        hour=at // HOUR,
    )
    if len(rows) < ENOUGH["hour of day"]:
        rows = await tx.all(
            f"{told} {of} AND hour >= :first AND hour < :now ORDER BY hour",
            org=org,
            bank=bank,
            id=id,
            first=at - 7 * DAY,
            now=at // HOUR * HOUR,
        )
    return [_hour(row) for row in rows]


async def shares(
    tx: Tx, org: int, bank: int, ids: Sequence[int], at: int, reach: int = DAY
) -> dict[int, tuple[int, int]]:
    """Runs and failures of some checks in the last 24 hours, or in another time."""
    values: dict[str, Value] = {"org": org, "bank": bank, "ids": list(ids), "first": at // HOUR * HOUR - reach}
    of = "org = :org AND bank = :bank AND check_id = ANY_INT(:ids)"
    rolled = await tx.all(
        "SELECT check_id, sum(runs) AS runs, sum(failures) AS failures FROM check_hours"
        f" WHERE {of} AND hour >= :first GROUP BY check_id",
        **values,
    )
    found = {row["check_id"]: (int(row["runs"]), int(row["failures"])) for row in rolled}
    # What is not rolled up yet is counted one by one; that is an hour or two.
    fresh = await tx.all(
        "SELECT r.check_id AS check_id, count(*) AS runs, sum(1 - r.ok) AS failures FROM check_results r"
        " JOIN checks c ON c.org = r.org AND c.bank = r.bank AND c.id = r.check_id AND r.at >= c.rolled_to"
        " WHERE r.org = :org AND r.bank = :bank AND r.check_id = ANY_INT(:ids) AND r.at >= :first GROUP BY r.check_id",
        **values,
    )
    for row in fresh:
        runs, failures = found.get(row["check_id"], (0, 0))
        found[row["check_id"]] = (runs + int(row["runs"]), failures + int(row["failures"]))
    return found


async def hours(tx: Tx, org: int, bank: int, ids: Sequence[int], first: int) -> dict[int, list[Hour]]:
    """The hours of some checks from one on, oldest first; those that are not rolled up yet by the mean latency."""
    values: dict[str, Value] = {"org": org, "bank": bank, "ids": list(ids), "first": first}
    rolled = await tx.all(
        "SELECT check_id, hour, runs, failures, latency, spread FROM check_hours WHERE org = :org AND bank = :bank"
        " AND check_id = ANY_INT(:ids) AND hour >= :first ORDER BY check_id, hour",
        **values,
    )
    fresh = await tx.all(
        f"SELECT r.check_id AS check_id, r.at / {HOUR} * {HOUR} AS hour, count(*) AS runs, sum(1 - r.ok) AS failures,"
        " sum(r.ok * r.latency) AS took FROM check_results r"
        " JOIN checks c ON c.org = r.org AND c.bank = r.bank AND c.id = r.check_id AND r.at >= c.rolled_to"
        " WHERE r.org = :org AND r.bank = :bank AND r.check_id = ANY_INT(:ids) AND r.at >= :first"
        f" GROUP BY r.check_id, r.at / {HOUR} ORDER BY r.check_id, hour",
        **values,
    )
    found: dict[int, list[Hour]] = {}
    for row in rolled:
        found.setdefault(row["check_id"], []).append(_hour(row))
    for row in fresh:
        found.setdefault(row["check_id"], []).append(_unrolled(row))
    return found


def _unrolled(row: Row) -> Hour:
    runs, failures = int(row["runs"]), int(row["failures"])
    latency = int(row["took"]) // (runs - failures) if runs > failures else None
    return Hour(int(row["hour"]), runs, failures, latency, 0)
