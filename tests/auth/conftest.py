"""Real HTTP within the test's own process, over a real store."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from pydantic import BaseModel

from keepsake import context, dispatch, settings
from keepsake.context import App
from keepsake.core.principal import Principal, local_owner
from keepsake.surfaces import serve
from keepsake.surfaces.http import Site
from tests.conftest import prepared

Json = dict[str, Any]


class Server(serve.Server):
    """The product's server, which tells when it listens."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config, site)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@dataclass(frozen=True)
class Served:
    """A server and the application behind it."""

    app: App
    http: httpx.AsyncClient

    async def operation(self, id: str, key: str | None = None, **arguments: object) -> httpx.Response:
        """Ask over REST."""
        return await self.http.post(f"/v1/operations/{id}", json=arguments, headers=bearer(key))

    async def mcp(self, method: str, key: str | None = None, path: str = "/mcp", **params: object) -> httpx.Response:
        """Ask over MCP, without a session."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.http.post(path, json=message, headers={"Accept": "application/json", **bearer(key)})


def bearer(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key}"}


async def as_(app: App, principal: Principal, operation: str, **arguments: object) -> BaseModel:
    """Run an operation as someone."""
    return await dispatch.call(app.ctx(principal), operation, arguments)


async def made(app: App, name: str, **arguments: object) -> Json:
    """A new key of the local owner's making."""
    return (await as_(app, local_owner(), "key.create", name=name, **arguments)).model_dump()


def at(app: App, moment: int) -> App:
    """The same application at another time."""
    return replace(app, now=lambda: moment)


@asynccontextmanager
async def opened(folder: Path, **environment: str) -> AsyncIterator[App]:
    """An application over a store, without a server."""
    async with context.open(settings.load(environment, data_dir=prepared(folder), worker=False)) as app:
        yield app


@asynccontextmanager
async def served(folder: Path, **environment: str) -> AsyncIterator[Served]:
    """A server on a free port of loopback."""
    async with opened(folder, **environment) as app, running(Site(app)) as server:
        yield server


@asynccontextmanager
async def running(site: Site) -> AsyncIterator[Served]:
    """Everything of a site over HTTP."""
    config = serve.configured(site)
    config.port = 0
    server = Server(config, site)
    running = asyncio.create_task(server.serve())
    await server.ready.wait()
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as http:
            yield Served(site.app, http)
    finally:
        server.should_exit = True
        await running
