"""Imports as the command does, and looks at what came of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.principal import local_owner
from keepsake.importers.catalog import SOURCES
from keepsake.store import memories
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory
from keepsake.surfaces.cli import importing
from keepsake.surfaces.cli.importing import Report
from keepsake.surfaces.cli.reach import Here


@dataclass(frozen=True)
class Taking:
    """One store."""

    app: App

    async def take(self, source: str, path: Path, bank: str | None = None, *, is_dry: bool = False) -> Report:
        return await importing.taken(Here(self.app, bank), SOURCES[source], path, is_dry=is_dry)

    async def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        result = await dispatch.call(self.app.ctx(local_owner()), operation, arguments)
        return result.model_dump(mode="json", exclude_none=True)

    async def held(self, bank: str) -> list[Memory]:
        """What a bank holds, in the order it came."""

        async def body(tx: Tx) -> list[Memory]:
            row = await tx.one("SELECT bank FROM bank_names WHERE org = 1 AND name = :name", name=bank)
            if row is None:
                return []
            ids = await memories.of_types(tx, 1, row["bank"], ())
            return sorted((await memories.fetched(tx, 1, row["bank"], ids)).values(), key=lambda one: one.id)

        return await self.app.store.read(1, body)

    async def count(self, table: str) -> int:
        async def body(tx: Tx) -> int:
            row = await tx.one(f"SELECT count(*) AS n FROM {table}")
            return int(row["n"]) if row else 0

        return await self.app.store.read(1, body)
