"""Where a command does its work: on the store itself, or through a running server."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from keepsake import context, dispatch
from keepsake.context import App, Ctx
from keepsake.core.errors import ALL, BadInput, KeepsakeError, Unavailable
from keepsake.core.lazy import lazy
from keepsake.core.models import Given
from keepsake.core.operation import AnyOperation, Operation
from keepsake.core.principal import local_owner
from keepsake.settings import Settings
from keepsake.tools.dialect import Dialect, Tool

if TYPE_CHECKING:
    import httpx

    from keepsake.surfaces import bearer
else:
    bearer = lazy("keepsake.surfaces.bearer")
    httpx = lazy("httpx")

G = TypeVar("G", bound=Given)
R = TypeVar("R", bound=BaseModel)
Arguments = Mapping[str, object]
#: Long enough for the first question, which loads the models.
PATIENCE_S = 120


class Reach(Protocol):
    """Runs operations and tools, wherever the memories are."""

    async def call(self, operation: AnyOperation, arguments: Arguments) -> BaseModel: ...

    async def call_tool(self, dialect: Dialect, tool: Tool, arguments: Arguments) -> BaseModel: ...


@dataclass(frozen=True, slots=True)
class Here:
    """The store of this machine, as its owner."""

    app: App
    bank: str | None

    @property
    def ctx(self) -> Ctx:
        """One request of the owner, who stays within the bank that was named."""
        banks = None if self.bank is None else frozenset({self.bank})
        return self.app.ctx(local_owner().narrowed(banks=banks), self.bank, surface="cli")

    async def call(self, operation: AnyOperation, arguments: Arguments) -> BaseModel:
        return await dispatch.call(self.ctx, operation.id, arguments)

    async def call_tool(self, dialect: Dialect, tool: Tool, arguments: Arguments) -> BaseModel:
        return await dispatch.call_tool(self.ctx, dispatch.Door(dialect), tool.name, arguments)


@dataclass(frozen=True, slots=True)
class There:
    """A running server, asked over REST."""

    client: "httpx.AsyncClient"

    async def call(self, operation: AnyOperation, arguments: Arguments) -> BaseModel:
        given = dispatch.validated(operation.given, arguments, operation.id)
        text = await self._sent(operation.id, given)
        try:
            result: BaseModel = operation.result.model_validate_json(text)
        except ValidationError as error:
            raise _stranger(self.client.base_url) from error
        return result

    async def call_tool(self, dialect: Dialect, tool: Tool, arguments: Arguments) -> BaseModel:
        given = tool.to_core(dispatch.validated(tool.arguments, arguments, tool.name))
        return tool.from_core(await self.call(tool.operation, given.model_dump(exclude_none=True)))

    async def _sent(self, operation: str, given: Given) -> str:
        arguments = given.model_dump(mode="json", exclude_none=True)
        try:
            response = await self.client.post(f"/v1/operations/{operation}", json=arguments)
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise Unavailable(
                f"No Keepsake answers at {self.client.base_url} ({reason}). Start it with `keepsake serve`, or unset"
                " KEEPSAKE_URL to use the store of this machine."
            ) from error
        if response.is_success:
            return response.text
        raise _refusal(response)


def _refusal(response: "httpx.Response") -> KeepsakeError:
    """The server's own words; wrong arguments stay wrong usage."""
    try:
        told = json.loads(response.text)["error"]
        code, message = str(told["code"]), str(told["message"])
    except (ValueError, KeyError, TypeError):
        return _stranger(response.url)
    refused = KeepsakeError(message) if code != BadInput.code else BadInput(message)
    return refused if code in {error.code for error in ALL} else Unavailable(message)


def _stranger(url: "httpx.URL") -> Unavailable:
    return Unavailable(f"Something answers at {url}, but not as this version of Keepsake does. Check KEEPSAKE_URL.")


def is_remote(settings: Settings) -> bool:
    """Whether a server is asked; a store that was named on the command line comes first."""
    return bool(settings.url) and "flag" not in (settings.origins["data_dir"], settings.origins["database_url"])


@asynccontextmanager
async def connected(settings: Settings, bank: str | None = None) -> "AsyncIterator[httpx.AsyncClient]":
    """A client of the server that KEEPSAKE_URL names, with its key and bank."""
    headers: dict[str, str] = {}
    if settings.api_key:
        headers["Authorization"] = f"Bearer {settings.api_key}"
    if bank is not None:
        headers["X-Bank-Id"] = bank
    try:
        parts = urlsplit(settings.url)
        host, is_http = parts.hostname or "", parts.scheme in ("http", "https")
    except ValueError:
        is_http = False
    if not is_http:
        raise BadInput("KEEPSAKE_URL must begin with http:// or https://, such as http://127.0.0.1:8888.")
    # A proxy has no business between a command and a server on the same machine.
    direct = bearer.is_loopback(host)
    async with httpx.AsyncClient(
        base_url=settings.url.rstrip("/"), headers=headers, timeout=PATIENCE_S, trust_env=not direct
    ) as client:
        yield client


@asynccontextmanager
async def reached(settings: Settings, bank: str | None = None) -> AsyncIterator[Reach]:
    """Open whatever the settings name."""
    if is_remote(settings):
        async with connected(settings, bank) as client:
            yield There(client)
    else:
        async with context.open(settings) as app:
            yield Here(app, bank)


def ask(settings: Settings, operation: Operation[Ctx, G, R], **arguments: object) -> R:
    """Run one operation and give its result; what is None is left out."""
    return ask_in(settings, None, operation, **arguments)


def ask_in(settings: Settings, bank: str | None, operation: Operation[Ctx, G, R], /, **arguments: object) -> R:
    """The same within a bank, which its first write makes."""

    async def asked() -> BaseModel:
        async with reached(settings, bank) as reach:
            return await reach.call(operation, {name: value for name, value in arguments.items() if value is not None})

    result = asyncio.run(asked())
    assert isinstance(result, operation.result)
    return result


def ask_tool(settings: Settings, dialect: Dialect, tool: Tool, arguments: Arguments, bank: str | None) -> BaseModel:
    """Run one tool and give its result."""

    async def asked() -> BaseModel:
        async with reached(settings, bank) as reach:
            return await reach.call_tool(dialect, tool, arguments)

    return asyncio.run(asked())
