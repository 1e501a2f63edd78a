"""Enrolled tools: what an operator lets agents ask for."""

from dataclasses import dataclass

from keepsake.core import enrolment
from keepsake.core.enrolment import Enrolment
from keepsake.store.engine import Row, Tx


@dataclass(frozen=True, slots=True)
class ExecTool:
    """One enrolled tool as stored."""

    org: int
    definition: Enrolment
    version: str
    enrolled_by: str
    enrolled_at: int


def _tool(row: Row) -> ExecTool:
    return ExecTool(
        org=row["org"],
        definition=enrolment.parsed(row["definition"]),
        version=row["version"],
        enrolled_by=row["enrolled_by"],
        enrolled_at=row["enrolled_at"],
    )


_COLUMNS = "org, version, definition, enrolled_by, enrolled_at"


async def put(tx: Tx, tool: ExecTool) -> None:
    """Enrol a tool, or change one; one that says nothing new keeps who enrolled it and when."""
    await tx.run(
        "INSERT INTO exec_tools (org, name, version, definition, enrolled_by, enrolled_at, claims)"
        " VALUES (:org, :name, :version, :definition, :by, :at, 0) ON CONFLICT (org, name) DO UPDATE"
        " SET version = excluded.version, definition = excluded.definition, enrolled_by = excluded.enrolled_by,"
        " enrolled_at = excluded.enrolled_at WHERE exec_tools.version <> excluded.version",
        org=tool.org,
        name=tool.definition.name,
        version=tool.version,
        definition=tool.definition.stored,
        by=tool.enrolled_by,
        at=tool.enrolled_at,
    )


async def named(tx: Tx, org: int, name: str) -> ExecTool | None:
    """A tool by name."""
    row = await tx.one(f"SELECT {_COLUMNS} FROM exec_tools WHERE org = :org AND name = :name", org=org, name=name)
    return _tool(row) if row else None


async def listed(tx: Tx, org: int) -> list[ExecTool]:
    """Every tool of an org, by name."""
    return [
        _tool(row) for row in await tx.all(f"SELECT {_COLUMNS} FROM exec_tools WHERE org = :org ORDER BY name", org=org)
    ]


async def remove(tx: Tx, org: int, name: str) -> bool:
    """Strike a tool off; False when there is none."""
    return await tx.run("DELETE FROM exec_tools WHERE org = :org AND name = :name", org=org, name=name) == 1


async def hold(tx: Tx, org: int, name: str) -> ExecTool | None:
    """A tool, which nobody else starts or changes until the end of the transaction."""
    await tx.run("UPDATE exec_tools SET claims = claims + 1 WHERE org = :org AND name = :name", org=org, name=name)
    return await named(tx, org, name)
