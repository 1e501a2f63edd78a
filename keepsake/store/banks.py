"""Banks and their names."""

import json
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepsake.core import clock
from keepsake.core.lazy import lazy
from keepsake.store.engine import Row, Tx
from keepsake.store.store import Store

if TYPE_CHECKING:
    from keepsake.store import invocations, proposals
else:
    invocations = lazy("keepsake.store.invocations")
    proposals = lazy("keepsake.store.proposals")

#: Skepticism, literalism and empathy, 1 to 5, as the hindsight seed's banks carry them.
DISPOSITION = {"skepticism": 3, "literalism": 3, "empathy": 3}


@dataclass(frozen=True, slots=True)
class Bank:
    """One bank as stored."""

    org: int
    id: int
    name: str
    title: str
    mission: str
    disposition: dict[str, int]
    uuid: str
    ws_hex: str
    created_at: int
    updated_at: int


_COLUMNS = "org, bank, name, title, mission, disposition, uuid, ws_hex, created_at, updated_at"


def _bank(row: Row) -> Bank:
    return Bank(
        org=row["org"],
        id=row["bank"],
        name=row["name"],
        title=row["title"],
        mission=row["mission"],
        disposition=json.loads(row["disposition"]),
        uuid=row["uuid"],
        ws_hex=row["ws_hex"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


async def named(tx: Tx, org: int, name: str) -> Bank | None:
    """Find a bank by its name or an alias."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM banks WHERE org = :org"
        " AND bank = (SELECT bank FROM bank_names WHERE org = :org AND name = :name)",
        org=org,
        name=name,
    )
    return _bank(row) if row else None


async def of_workspace(tx: Tx, org: int, uuid: str, ws_hex: str) -> Bank | None:
    """Find a bank by one of the ids that xerotier knows it by."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM banks WHERE org = :org AND (uuid = :uuid OR ws_hex = :ws_hex)",
        org=org,
        uuid=uuid,
        ws_hex=ws_hex,
    )
    return _bank(row) if row else None


async def sequences(tx: Tx, org: int, banks: Sequence[int]) -> dict[int, int]:
    """How many writes each of these banks has seen."""
    rows = await tx.all(
        "SELECT bank, seq FROM bank_seq WHERE org = :org AND bank = ANY_INT(:banks)", org=org, banks=list(banks)
    )
    return {row["bank"]: row["seq"] for row in rows}


async def of_id(tx: Tx, org: int, bank: int) -> Bank | None:
    """Find a bank by its id."""
    row = await tx.one(f"SELECT {_COLUMNS} FROM banks WHERE org = :org AND bank = :bank", org=org, bank=bank)
    return _bank(row) if row else None


async def listed(tx: Tx, org: int) -> list[Bank]:
    """Every bank of an org, by name."""
    rows = await tx.all(f"SELECT {_COLUMNS} FROM banks WHERE org = :org ORDER BY name", org=org)
    return [_bank(row) for row in rows]


async def create(tx: Tx, store: Store, org: int, name: str, title: str = "", mission: str = "") -> Bank | None:
    """Make a bank; None when the name was taken a moment ago."""
    id, now = store.new_id(), clock.now()
    if not await tx.one(
        "INSERT INTO bank_names (org, name, bank) VALUES (:org, :name, :bank)"
        " ON CONFLICT (org, name) DO NOTHING RETURNING bank",
        org=org,
        name=name,
        bank=id,
    ):
        return None
    bank = Bank(org, id, name, title, mission, DISPOSITION, str(uuid.uuid4()), secrets.token_hex(8), now, now)
    await tx.run(
        f"INSERT INTO banks ({_COLUMNS}, repo) VALUES (:org, :bank, :name, :title, :mission, :disposition, :uuid,"
        " :ws_hex, :created_at, :updated_at, '')",
        org=org,
        bank=id,
        name=name,
        title=title,
        mission=mission,
        disposition=json.dumps(bank.disposition),
        uuid=bank.uuid,
        ws_hex=bank.ws_hex,
        created_at=now,
        updated_at=now,
    )
    await tx.run("INSERT INTO bank_seq (org, bank, seq, purges) VALUES (:org, :bank, 0, 0)", org=org, bank=id)
    return bank


async def update(tx: Tx, bank: Bank, title: str, mission: str) -> None:
    """Change what a bank is called and what it is for."""
    await tx.run(
        "UPDATE banks SET title = :title, mission = :mission, updated_at = :now WHERE org = :org AND bank = :bank",
        title=title,
        mission=mission,
        now=clock.now(),
        org=bank.org,
        bank=bank.id,
    )


async def rename(tx: Tx, bank: Bank, name: str) -> None:
    """Show a bank under another of its names."""
    await tx.run(
        "UPDATE banks SET name = :name, updated_at = :now WHERE org = :org AND bank = :bank",
        name=name,
        now=clock.now(),
        org=bank.org,
        bank=bank.id,
    )


async def learns_from(tx: Tx, org: int, bank: int, repo: str) -> None:
    """Note what GitHub calls the repository of a bank."""
    await tx.run(
        "UPDATE banks SET repo = :repo WHERE org = :org AND bank = :bank AND repo <> :repo",
        repo=repo,
        org=org,
        bank=bank,
    )


async def step(tx: Tx, org: int, bank: int) -> int:
    """Raise the bank's sequence; taken first by every write, it orders the writers of a bank."""
    row = await tx.one(
        "UPDATE bank_seq SET seq = seq + 1 WHERE org = :org AND bank = :bank RETURNING seq", org=org, bank=bank
    )
    if row is None:
        raise RuntimeError("A bank without its sequence.")
    return int(row["seq"])


async def purged(tx: Tx, org: int, bank: int) -> int:
    """Raise the sequence after a deletion, so that caches drop what is gone."""
    await tx.run("UPDATE bank_seq SET purges = purges + 1 WHERE org = :org AND bank = :bank", org=org, bank=bank)
    return await step(tx, org, bank)


#: What belongs to a bank besides its memories; its audit chain, receipts and usage stay.
_OWN = (
    "bank_names",
    "sources",
    "terms",
    "suppressions",
    "entities",
    "memory_entities",
    "relations",
    "conflicts",
    "mental_models",
    "model_versions",
    "directives",
    "sessions",
    "jobs",
    "members",
    "invitations",
    "repos",
    "repo_files",
    "checks",
    "check_results",
    "check_hours",
    "incidents",
    "incident_notes",
    "anomalies",
    "artifacts",
    "artifact_versions",
    "chats",
    "chat_messages",
    "chat_evidence",
    "bank_seq",
    "banks",
)


async def delete(tx: Tx, org: int, bank: int) -> None:
    """Remove a bank that has no memories left."""
    for table in _OWN:
        await tx.run(f"DELETE FROM {table} WHERE org = :org AND bank = :bank", org=org, bank=bank)
    await proposals.bank_gone(tx, org, bank)
    await invocations.bank_gone(tx, org, bank)
