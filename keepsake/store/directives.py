"""Directives: instructions that a bank's answers follow."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.store.engine import Row, Tx


@dataclass(frozen=True, slots=True)
class Directive:
    """One instruction as stored."""

    org: int
    bank: int
    id: int
    name: str
    content: str
    priority: int
    is_active: bool
    tags: tuple[str, ...]
    #: How far its author is trusted: `owner` or `agent`.
    trust: str
    author: str
    created_at: int


_COLUMNS = "org, bank, id, name, content, priority, is_active, tags, trust, author, created_at"


def _directive(row: Row) -> Directive:
    return Directive(**{**row, "is_active": bool(row["is_active"]), "tags": tuple(json.loads(row["tags"]))})


async def insert(tx: Tx, directive: Directive) -> None:
    """Write a directive."""
    await tx.run(
        f"INSERT INTO directives ({_COLUMNS}) VALUES (:org, :bank, :id, :name, :content, :priority, :is_active,"
        " :tags, :trust, :author, :created_at)",
        org=directive.org,
        bank=directive.bank,
        id=directive.id,
        name=directive.name,
        content=directive.content,
        priority=directive.priority,
        is_active=int(directive.is_active),
        tags=json.dumps(directive.tags),
        trust=directive.trust,
        author=directive.author,
        created_at=directive.created_at,
    )


async def listed(tx: Tx, org: int, bank: int) -> list[Directive]:
    """Every directive of a bank, the most important first."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM directives WHERE org = :org AND bank = :bank ORDER BY priority DESC, id",
        org=org,
        bank=bank,
    )
    return [_directive(row) for row in rows]


async def active(tx: Tx, org: int, bank: int, tags: Sequence[str]) -> list[Directive]:
    """The directives that hold for a question with these tags, the most important first.

    One without tags always holds; one with tags holds only for questions that share one.
    """
    return [
        directive
        for directive in await listed(tx, org, bank)
        if directive.is_active and (not directive.tags or set(directive.tags) & set(tags))
    ]


async def delete(tx: Tx, org: int, bank: int, id: int) -> bool:
    """Remove a directive; False when there is none."""
    removed = await tx.run(
        "DELETE FROM directives WHERE org = :org AND bank = :bank AND id = :id", org=org, bank=bank, id=id
    )
    return removed == 1
