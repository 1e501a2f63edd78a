"""Prompts and resources over MCP: listed, read and completed by the same door as tools."""

import base64
import binascii
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel

from keepsake import dispatch
from keepsake.context import Ctx
from keepsake.core.errors import KeepsakeError, NotFound, UnknownResource, UnknownTool
from keepsake.dispatch import Arguments, Door
from keepsake.ops import suggesting
from keepsake.surfaces import choosing
from keepsake.surfaces.asking import Client, InputNeeded
from keepsake.tools.dialect import Listed, Prompt, Resource, Text, Tool, schema

CtxOf = Callable[[Any], Awaitable[Ctx]]
MARKDOWN = "text/markdown"
#: Resources on a page of the list, and how many of each kind are listed at all: clients turn every page.
PAGE, MOST = 50, 200
#: What the revisions with a handshake say where nothing is at an address.
_NO_RESOURCE = -32002


@dataclass(frozen=True, slots=True)
class Reading:
    """The handlers of a dialect that has prompts and resources."""

    door: Door
    ctx_of: CtxOf

    async def list_prompts(self, incoming: Any, params: Any) -> types.ListPromptsResult:
        """Every prompt that this principal may ask for."""
        _only_page(params)
        ctx = await self._ctx(incoming)
        return types.ListPromptsResult(prompts=[_prompt(one) for one in self.door.prompts(ctx)])

    async def get_prompt(
        self, incoming: Any, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """A prompt, filled in."""
        ctx = await self._ctx(incoming)
        try:
            prompt = self.door.prompt(ctx, params.name)
            client = Client(incoming, params.input_responses)
            told = await run(ctx, self.door, prompt.tool, dict(params.arguments or {}), client)
        except InputNeeded as needed:
            return types.InputRequiredResult(input_requests=needed.requests)
        except KeepsakeError as error:
            raise failed(error) from error
        content = types.TextContent(type="text", text=_text(told))
        message = types.PromptMessage(role="user", content=content)
        return types.GetPromptResult(description=prompt.tool.description, messages=[message])

    async def list_resources(self, incoming: Any, params: Any) -> types.ListResourcesResult:
        """What is at known addresses, then the newest of each kind; unbound, only the former."""
        ctx = await self._ctx(incoming)
        kinds = self.door.resources(ctx)
        kind, offset = _place(params, len(kinds))
        found = [_one(one) for one in kinds if one.is_one] if (kind, offset) == (0, 0) else []
        if self.door.is_unbound(ctx):
            return types.ListResourcesResult(resources=found)
        while kind < len(kinds) and len(found) < PAGE:
            more = await self._newest(ctx, kinds[kind], offset, PAGE - len(found))
            found += more
            offset += len(more)
            if len(found) < PAGE or offset >= MOST:
                kind, offset = kind + 1, 0
        cursor = _cursor(kind, offset) if any(one.lists for one in kinds[kind:]) else None
        return types.ListResourcesResult(resources=found, next_cursor=cursor)

    async def _newest(self, ctx: Ctx, kind: Resource, offset: int, limit: int) -> list[types.Resource]:
        if kind.lists is None or offset >= MOST:
            return []
        page = {"limit": min(limit, MOST - offset), "offset": offset}
        try:
            told = await dispatch.run_tool(ctx, self.door, kind.lists, page)
        except KeepsakeError as error:
            raise failed(error) from error
        assert isinstance(told, Listed)
        return [
            types.Resource(uri=kind.at(argument), name=name, description=about, mime_type=MARKDOWN)
            for argument, name, about in told.entries
        ]

    async def list_templates(self, incoming: Any, params: Any) -> types.ListResourceTemplatesResult:
        """The addresses that have something to be filled in."""
        _only_page(params)
        kinds = self.door.resources(await self._ctx(incoming))
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=one.address,
                    name=one.tool.name,
                    title=one.title,
                    description=one.tool.description,
                    mime_type=MARKDOWN,
                )
                for one in kinds
                if "{" in one.address
            ]
        )

    async def read_resource(
        self, incoming: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """What is at an address."""
        ctx, uri = await self._ctx(incoming), str(params.uri)
        try:
            kind, arguments = self.door.resource(ctx, uri)
            client = Client(incoming, params.input_responses)
            told = await run(ctx, self.door, kind.tool, _typed(kind.tool, arguments), client)
        except InputNeeded as needed:
            return types.InputRequiredResult(input_requests=needed.requests)
        except (UnknownResource, NotFound) as error:
            is_old = incoming.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
            code = _NO_RESOURCE if is_old else types.INVALID_PARAMS
            raise MCPError(code, str(error), {"uri": uri}) from error
        except KeepsakeError as error:
            raise failed(error) from error
        contents = types.TextResourceContents(uri=uri, mime_type=MARKDOWN, text=_text(told))
        return types.ReadResourceResult(contents=[contents])

    async def complete(self, incoming: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
        """What an argument may be, as far as it is typed."""
        ctx, argument = await self._ctx(incoming), params.argument
        try:
            wanted = self._suggests(ctx, params.ref).get(argument.name)
            if wanted is None or self.door.is_unbound(ctx):
                return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))
            asked = {"what": wanted, "start": argument.value[:200]}
            found = await dispatch.run_tool(ctx, self.door, SUGGEST, asked)
        except KeepsakeError as error:
            raise failed(error) from error
        assert isinstance(found, suggesting.Suggestions)
        return types.CompleteResult(completion=types.Completion(values=found.values, has_more=found.has_more))

    def _suggests(self, ctx: Ctx, ref: types.PromptReference | types.ResourceTemplateReference) -> dict[str, str]:
        if isinstance(ref, types.PromptReference):
            return dict(self.door.prompt(ctx, ref.name).suggests)
        found = next((one for one in self.door.resources(ctx) if ref.uri in (one.address, one.plain)), None)
        if found is None:
            raise UnknownTool("Unknown resource template. Use resources/templates/list to see them.")
        return dict(found.suggests)

    async def _ctx(self, incoming: Any) -> Ctx:
        try:
            return await self.ctx_of(incoming)
        except KeepsakeError as error:
            raise failed(error) from error


SUGGEST = Tool("complete", suggesting.suggest)


async def run(ctx: Ctx, door: Door, tool: Tool, arguments: Arguments, client: Client) -> BaseModel:
    """Run a tool; where its client has yet to choose a workspace, the client's user may be asked for one."""
    if tool.needs_bank and door.is_unbound(ctx):
        door.admit(ctx, tool, arguments)
        ctx = await choosing.placed(ctx, client)
    return await dispatch.run_tool(replace(ctx, asker=client), door, tool, arguments)


def failed(error: KeepsakeError) -> MCPError:
    """A refusal where no result could tell it."""
    return MCPError(error.rpc or types.INVALID_PARAMS, str(error))


def _text(told: BaseModel) -> str:
    assert isinstance(told, Text)
    return told.told()


def _prompt(one: Prompt) -> types.Prompt:
    model = one.tool.arguments
    required = schema(model).get("required") or []
    assert isinstance(required, list)
    arguments = [
        types.PromptArgument(name=name, description=field.description, required=name in required)
        for name, field in model.model_fields.items()
    ]
    return types.Prompt(name=one.tool.name, description=one.tool.description, arguments=arguments)


def _one(one: Resource) -> types.Resource:
    about = one.tool.description
    return types.Resource(uri=one.plain, name=one.tool.name, title=one.title, description=about, mime_type=MARKDOWN)


def _typed(tool: Tool, arguments: Arguments) -> Arguments:
    """What an address says, with numbers as numbers; what is none stays as it is, to be refused."""
    properties = schema(tool.arguments).get("properties") or {}
    assert isinstance(properties, dict)
    numbers = {name for name, told in properties.items() if told.get("type") == "integer"}
    short = {name: str(value) for name, value in arguments.items() if name in numbers and len(str(value)) < 10}
    return {**arguments, **{name: int(value) for name, value in short.items() if value.isdecimal()}}


def _only_page(params: types.PaginatedRequestParams | None) -> None:
    if params is not None and params.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "Unknown cursor. All are on the first page: leave `cursor` out.")


def _cursor(kind: int, offset: int) -> str:
    return base64.urlsafe_b64encode(f"{kind}:{offset}".encode()).decode()


def _place(params: types.PaginatedRequestParams | None, kinds: int) -> tuple[int, int]:
    """Where a page begins: which kind of resource, and after how many of them."""
    if params is None or params.cursor is None:
        return 0, 0
    try:
        kind, offset = (int(part) for part in base64.urlsafe_b64decode(params.cursor.encode()).decode().split(":"))
        if not (0 <= kind < kinds and 0 <= offset < MOST):
            raise ValueError
    except (ValueError, binascii.Error) as error:
        raise MCPError(types.INVALID_PARAMS, "Unknown cursor. Begin again without one.") from error
    return kind, offset
