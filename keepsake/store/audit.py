"""The audit log: one hash chain per bank, written in the transaction of the change."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from keepsake.store.engine import Asked, Row, Tx, Value

GENESIS = "0" * 64


@dataclass(frozen=True, slots=True)
class Entry:
    """A change, as it will stand in the chain: ids and digests, never text."""

    org: int
    #: 0 stands for the org itself.
    bank: int
    at: int
    principal: str
    operation: str
    targets: Sequence[int]
    digest: str = ""


def _hash(previous: str, n: int, entry: Entry) -> str:
    row = [previous, entry.org, entry.bank, n, entry.at, entry.principal, entry.operation, list(entry.targets)]
    return hashlib.sha256(json.dumps([*row, entry.digest]).encode()).hexdigest()


async def append(tx: Tx, entry: Entry) -> None:
    """Add to the chain; its head is locked, so call this last."""
    head = await tx.lock_audit(entry.org, entry.bank)
    n, previous = (int(head["n"]) + 1, str(head["hash"])) if head else (1, GENESIS)
    hash = _hash(previous, n, entry)
    await tx.run(
        "INSERT INTO audit (org, bank, n, at, principal, operation, targets, digest, hash)"
        " VALUES (:org, :bank, :n, :at, :principal, :operation, :targets, :digest, :hash)",
        org=entry.org,
        bank=entry.bank,
        n=n,
        at=entry.at,
        principal=entry.principal,
        operation=entry.operation,
        targets=json.dumps(list(entry.targets)),
        digest=entry.digest,
        hash=hash,
    )
    await tx.run(
        "INSERT INTO audit_heads (org, bank, n, hash) VALUES (:org, :bank, :n, :hash)"
        " ON CONFLICT (org, bank) DO UPDATE SET n = excluded.n, hash = excluded.hash",
        org=entry.org,
        bank=entry.bank,
        n=n,
        hash=hash,
    )


@dataclass(frozen=True, slots=True)
class Chain:
    """The outcome of checking one chain."""

    bank: int
    entries: int
    #: The first entry that does not fit; None when the chain holds.
    broken_at: int | None


@dataclass(frozen=True, slots=True)
class Head:
    """The end of one chain."""

    bank: int
    n: int
    hash: str


async def heads(tx: Tx, org: int) -> list[Head]:
    """The end of every chain of an org."""
    rows = await tx.all("SELECT bank, n, hash FROM audit_heads WHERE org = :org ORDER BY bank", org=org)
    return [Head(**row) for row in rows]


async def hash_at(tx: Tx, org: int, bank: int, n: int) -> str | None:
    """The hash of one entry; None where the chain does not reach so far."""
    row = await tx.one("SELECT hash FROM audit WHERE org = :org AND bank = :bank AND n = :n", org=org, bank=bank, n=n)
    return str(row["hash"]) if row else None


async def verify(tx: Tx, org: int) -> list[Chain]:
    """Check every chain of an org from its first entry to its head."""
    heads = await tx.all("SELECT bank, n, hash FROM audit_heads WHERE org = :org ORDER BY bank", org=org)
    loose = await tx.all(
        "SELECT DISTINCT bank FROM audit WHERE org = :org AND bank NOT IN"
        " (SELECT bank FROM audit_heads WHERE org = :org)",
        org=org,
    )
    return [await _verified(tx, org, head) for head in heads] + [Chain(row["bank"], 0, 1) for row in loose]


async def _verified(tx: Tx, org: int, head: Row) -> Chain:
    previous, n = GENESIS, 0
    while True:
        rows = await tx.all(
            "SELECT n, at, principal, operation, targets, digest, hash FROM audit"
            " WHERE org = :org AND bank = :bank AND n > :n ORDER BY n LIMIT 1000",
            org=org,
            bank=head["bank"],
            n=n,
        )
        if not rows:
            break
        for row in rows:
            n += 1
            if row["n"] != n or not _fits(previous, org, head["bank"], row):
                return Chain(head["bank"], n, n)
            previous = row["hash"]
    whole = n == head["n"] and previous == head["hash"]
    return Chain(head["bank"], n, None if whole else n + 1)


def _fits(previous: str, org: int, bank: int, row: Row) -> bool:
    try:
        return bool(row["hash"] == _hash(previous, row["n"], _entry(org, bank, row)))
    except (TypeError, ValueError):
        # Whoever changed the row left something in it that we never write.
        return False


@dataclass(frozen=True, slots=True)
class Written:
    """An entry with its place in the chain."""

    n: int
    hash: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries to show: of these chains or of all, by whom, and what was done, where that is said."""

    banks: Sequence[int] | None = None
    principal: str | None = None
    operation: str | None = None
    limit: int = 100
    offset: int = 0


#: Chains that are read each from its end; more of them are sorted together.
CHAINS = 50
_COLUMNS = "bank, n, at, principal, operation, targets, digest, hash"


async def newest(tx: Tx, org: int, wanted: Wanted) -> list[Written]:
    """The newest entries of those wanted; those of a chain in its own order."""
    chains = [head.bank for head in await heads(tx, org) if wanted.banks is None or head.bank in wanted.banks]
    narrowed, values = _narrowed(org, wanted)
    most = wanted.limit + wanted.offset
    if len(chains) > CHAINS:
        rows = await tx.all(
            f"SELECT {_COLUMNS} FROM audit WHERE {narrowed} AND bank = ANY_INT(:banks) ORDER BY at DESC, bank, n DESC"
            " LIMIT :most",
            **values,
            banks=chains,
            most=most,
        )
    else:
        ends = f"SELECT {_COLUMNS} FROM audit WHERE {narrowed} AND bank = :bank ORDER BY n DESC LIMIT :most"
        asked: list[Asked] = [(ends, values | {"bank": bank, "most": most}) for bank in chains]
        rows = _merged(await tx.gather(*asked) if asked else [])
    return [Written(row["n"], row["hash"], _entry(org, row["bank"], row)) for row in rows[wanted.offset : most]]


def _narrowed(org: int, wanted: Wanted) -> tuple[str, dict[str, Value]]:
    asked = {"principal": wanted.principal, "operation": wanted.operation}
    values: dict[str, Value] = {name: value for name, value in asked.items() if value is not None}
    return " AND ".join(["org = :org", *(f"{name} = :{name}" for name in values)]), {"org": org, **values}


def _merged(chains: Iterable[list[Row]]) -> list[Row]:
    """Chains as one, newest first; a time that stands out of order counts as its successor's."""
    placed: list[tuple[int, int, int, Row]] = []
    for rows in chains:
        now = rows[0]["at"] if rows else 0
        for place, row in enumerate(rows):
            now = min(now, row["at"])
            placed.append((-now, row["bank"], place, row))
    return [row for *_, row in sorted(placed, key=lambda one: one[:3])]


def _entry(org: int, bank: int, row: Row) -> Entry:
    targets: list[int] = json.loads(row["targets"])
    return Entry(org, bank, row["at"], row["principal"], row["operation"], targets, row["digest"])
