"""An assistant that lives with Keepsake: MCP over HTTP in process, a clock that is set, nights for the worker."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import httpx
from starlette.applications import Starlette

from keepsake import settings, worker
from keepsake.context import App
from keepsake.core import clock, text
from keepsake.surfaces.http import Site
from tests.conftest import Database
from tests.surfaces.serving import BOTH, called

Json = dict[str, Any]


@dataclass(slots=True)
class Assistant:
    """Someone who calls tools, day after day."""

    database: Database
    folder: Path
    #: The morning of the first day.
    first: int
    at: int = field(init=False)
    environment: dict[str, str] = field(default_factory=dict)
    _app: App = field(init=False)
    _http: httpx.AsyncClient = field(init=False)
    _stack: AsyncExitStack = field(init=False)

    def __post_init__(self) -> None:
        self.at = self.first

    async def start(self) -> None:
        """Start the server."""
        given = settings.load({"KEEPSAKE_WORKER": "false"} | self.environment, data_dir=self.folder)
        self._app = App(given, await self.database.open(), now=lambda: self.at)
        site = Site(self._app)
        self._stack = AsyncExitStack()
        self._stack.push_async_callback(self._app.store.close)
        self._stack.callback(self._app.embedding.close)
        await self._stack.enter_async_context(site.running(Starlette()))
        there = httpx.AsyncClient(transport=httpx.ASGITransport(site.asgi()), base_url="http://127.0.0.1", timeout=30)
        self._http = await self._stack.enter_async_context(there)

    async def stop(self) -> None:
        """Stop it; whatever was only in memory is gone."""
        await self._stack.aclose()

    async def restart(self, **environment: str) -> None:
        """Stop the server and start it anew, with other settings."""
        await self.stop()
        self.environment = environment
        await self.start()

    async def call(self, tool: str, /, **arguments: Any) -> Json:
        """The result of a tool, which must succeed."""
        answer = await self._http.post("/mcp", json=called(tool, arguments), headers={"Accept": BOTH})
        result = answer.json()["result"]
        assert not result.get("isError"), result
        told: Json = result["structuredContent"]
        assert json.loads(result["content"][0]["text"]) == told
        return told

    async def refusal(self, tool: str, /, **arguments: Any) -> str:
        """What a tool says that must refuse."""
        answer = await self._http.post("/mcp", json=called(tool, arguments), headers={"Accept": BOTH})
        result = answer.json()["result"]
        assert result.get("isError"), result
        said: str = result["content"][0]["text"]
        return said

    async def operation(self, id: str, /, **arguments: Any) -> Json:
        """The result of an operation that has no tool."""
        answer = await self._http.post(f"/v1/operations/{id}", json=arguments)
        assert answer.status_code == 200, answer.text
        told: Json = answer.json()
        return told

    async def day(self, number: int) -> None:
        """Let the worker do all that waits, and wake up on the morning of a day, counted from 1."""
        while await worker.step(self._app):
            pass
        assert self.at <= self.morning(number)
        self.at = self.morning(number)

    def morning(self, number: int) -> int:
        """When a day begins."""
        return self.first + (number - 1) * clock.DAY

    async def tell(self, content: str, **more: Any) -> str:
        """Retain something a minute later, and give its id."""
        self.at += clock.MINUTE
        told: str = (await self.call("retain", content=content, **more))["memory_id"]
        return told

    async def ask(self, query: str, day: int | None = None, **more: Any) -> list[str]:
        """The texts that recall gives, now or as of the evening of a day; never more than was asked for."""
        when = {} if day is None else {"query_timestamp": clock.iso(self.morning(day) + 12 * clock.HOUR)}
        most = more.setdefault("max_tokens", 500)
        told = await self.call("recall", query=query, **when, **more)
        assert text.cost(json.dumps(told, ensure_ascii=False)) <= most
        return [fact["text"] for fact in told["results"]]


@asynccontextmanager
async def living(database: Database, folder: Path, first: str) -> AsyncIterator[Assistant]:
    """An assistant from its first morning on."""
    made = Assistant(database, folder, clock.parse(first))
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


async def stored(database: Database) -> str:
    """Every row of every table, as text."""
    if database.engine == "sqlite":
        folder = Path(database.place).parent
        return "\n".join(_rows(file) for file in sorted(folder.glob("*.db")))
    connection = await asyncpg.connect(database.place)
    tables = await connection.fetch("SELECT relid::regclass::text AS name FROM pg_stat_user_tables")
    rows = [row for table in tables for row in await connection.fetch(f"SELECT t::text FROM {table['name']} t")]
    await connection.close()
    return "\n".join(row[0] for row in rows)


def _rows(file: Path) -> str:
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    rows = [row for table in tables for row in connection.execute(f'SELECT * FROM "{table}"')]
    connection.close()
    return "\n".join(str(row) for row in rows)
