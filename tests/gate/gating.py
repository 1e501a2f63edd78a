"""People and agents before the gate, over real HTTP and on both stores."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from pydantic import BaseModel

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.principal import local_owner
from tests.auth.conftest import Served, as_, bearer, made, served
from tests.conftest import Database

Json = dict[str, Any]


@dataclass
class Gate:
    """A server, and who stands before it."""

    server: Served
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def app(self) -> App:
        return self.server.app

    async def key(self, name: str, **options: object) -> str:
        """A new key."""
        self.keys[name] = str((await made(self.app, name, **options))["secret"])
        return self.keys[name]

    async def person(self, name: str, *roles: str) -> str:
        """A person with roles, and a key of theirs."""
        await as_(self.app, local_owner(), "user.add", name=name)
        for role in roles:
            await as_(self.app, local_owner(), "user.role", name=name, role=role)
        return await self.key(name, user=name)

    async def retained(self, text: str, bank: str = "default") -> str:
        """A memory, by its id."""
        told = await dispatch.call(self.app.ctx(local_owner(), bank), "memory.retain", {"content": text})
        return str(told.model_dump()["id"])

    async def texts(self, bank: str = "default") -> list[str]:
        """What a bank holds."""
        listed = await dispatch.call(self.app.ctx(local_owner(), bank), "memory.list", {})
        return sorted(memory["text"] for memory in listed.model_dump()["memories"])

    async def ask(self, operation: str, key: str | None, /, **arguments: object) -> httpx.Response:
        """Ask over REST."""
        return await self.server.http.post(f"/v1/operations/{operation}", json=arguments, headers=bearer(key))

    async def propose(self, key: str | None, operation: str, /, **arguments: object) -> httpx.Response:
        return await self.ask("proposal.create", key, operation=operation, arguments=arguments)

    async def proposed(self, key: str | None, operation: str, /, **arguments: object) -> Json:
        """A proposal that must be taken."""
        answer = await self.propose(key, operation, **arguments)
        assert answer.status_code == 200, answer.text
        told: Json = answer.json()
        return told

    async def apply(self, key: str | None, token: str) -> httpx.Response:
        return await self.ask("proposal.apply", key, token=token)

    async def state(self, id: str) -> Json:
        """How a proposal stands, as the owner at the machine sees it."""
        told: Json = (await at_the_machine(self.app, "proposal.get", id=id)).model_dump()
        return told

    async def audited(self) -> list[str]:
        """What the audit log says was done, oldest first; it must hold."""
        assert (await as_(self.app, local_owner(), "audit.verify")).model_dump()["ok"]
        entries = (await as_(self.app, local_owner(), "audit.list", limit=1_000)).model_dump()["entries"]
        return [entry["operation"] for entry in reversed(entries)]


async def at_the_machine(app: App, operation: str, /, **arguments: object) -> BaseModel:
    """Run an operation as the command line does."""
    return await dispatch.call(app.ctx(local_owner(), surface="cli"), operation, arguments)


async def as_owner(app: App, operation: str, /, **arguments: object) -> Json:
    """Run an operation as an agent of the local owner does."""
    told: Json = (await dispatch.call(app.ctx(local_owner()), operation, arguments)).model_dump()
    return told


def place(database: Database) -> tuple[Path, dict[str, str]]:
    """The data folder and the settings that open a database."""
    if database.engine == "sqlite":
        return Path(database.place).parent, {}
    return Path("/nonexistent"), {"KEEPSAKE_DATABASE_URL": database.place}


@asynccontextmanager
async def gate(database: Database) -> AsyncIterator[Gate]:
    """A server over a database, with more calls a minute than any test makes."""
    folder, environment = place(database)
    wanted = {"KEEPSAKE_RATE_LIMIT": "100000", **environment}
    async with served(folder, **wanted) as server:
        yield Gate(server)


def later(gate: Gate, by: int) -> App:
    """The same application, so much later."""
    now = gate.app.now
    return replace(gate.app, now=lambda: now() + by)


__all__ = ["Gate", "Json", "as_owner", "at_the_machine", "bearer", "gate", "later", "place"]
