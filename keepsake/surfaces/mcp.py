"""MCP: a dialect becomes a server of the SDK; every call goes through dispatch."""

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from keepsake import __version__, dispatch
from keepsake.context import Ctx
from keepsake.core.errors import KeepsakeError
from keepsake.core.operation import Effect
from keepsake.surfaces import reading
from keepsake.surfaces.asking import Client, InputNeeded
from keepsake.surfaces.following import Following
from keepsake.surfaces.roots import Roots
from keepsake.tools.dialect import Dialect, Gives, Text, Tool, schema

#: What the SDK hands to a handler; on HTTP it carries this request.
Incoming = Any
CtxOf = Callable[[Incoming], Awaitable[Ctx]]


class Announcing(Server[Any]):
    """A server that tells when the list of resources changes, and says so at the handshake."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """What is told at the handshake."""
        told = notification_options or NotificationOptions(resources_changed=True)
        return super().create_initialization_options(told, experimental_capabilities, extensions)


def server(
    dialect: Dialect, ctx_of: CtxOf, roots: Roots | None = None, following: Following | None = None
) -> Server[Any]:
    """Build the SDK's server for a dialect.

    `ctx_of` finds our context of a request, `roots` the client's folder; `following` tells what changes.
    """
    door = dispatch.Door(dialect)

    async def list_tools(incoming: Incoming, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(types.INVALID_PARAMS, "Unknown cursor. All tools are on the first page: leave `cursor` out.")
        try:
            ctx = await ctx_of(incoming)
        except KeepsakeError as error:
            raise MCPError(error.rpc or -32603, str(error)) from error
        return types.ListToolsResult(tools=[await offered(tool, ctx) for tool in door.tools(ctx)])

    async def call_tool(
        incoming: Incoming, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        try:
            if roots is not None:
                await roots.learn(incoming.session)
            ctx, client = await ctx_of(incoming), Client(incoming, params.input_responses)
            result = await reading.run(ctx, door, door.tool(ctx, params.name), params.arguments or {}, client)
        except InputNeeded as needed:
            return types.InputRequiredResult(input_requests=needed.requests)
        except KeepsakeError as error:
            return failure(error)
        return success(result)

    def input_schema(name: str) -> Mapping[str, Any] | None:
        tool = dialect.tools.get(name)
        return schema(tool.arguments) if tool else None

    made = (Announcing if following else Server[Any])(
        dialect.name,
        version=__version__,
        title=dialect.title,
        instructions=dialect.instructions,
        get_tool_input_schema=input_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        **_read(dialect, reading.Reading(door, ctx_of), following),
    )
    # Spans cost a tenth of a call and go nowhere unless someone exports them.
    made.middleware.clear()
    if roots is not None:
        made.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, roots.moved)
    if following is not None:
        made.add_notification_handler("notifications/initialized", types.NotificationParams, following.begun)
    return made


def _read(dialect: Dialect, reads: reading.Reading, following: Following | None) -> dict[str, Any]:
    """The handlers for prompts and resources, of a dialect that has some."""
    made: dict[str, Any] = {}
    if dialect.prompts:
        made |= {"on_list_prompts": reads.list_prompts, "on_get_prompt": reads.get_prompt}
    if dialect.resources:
        made |= {"on_list_resources": reads.list_resources, "on_read_resource": reads.read_resource}
        made |= {"on_list_resource_templates": reads.list_templates}
    if dialect.prompts or dialect.resources:
        made |= {"on_completion": reads.complete}
    if following is not None:
        made |= {"on_subscribe_resource": following.subscribe, "on_unsubscribe_resource": following.unsubscribe}
        made |= {"on_subscriptions_listen": following.listen}
    return made


async def offered(tool: Tool, ctx: Ctx) -> types.Tool:
    """A tool as this principal sees it: what may be chosen is named where that depends on who asks."""
    told = listed(tool)
    if not tool.chooses:
        return told
    found = await tool.choices(ctx) if tool.choices else tool.offers(ctx.principal) if tool.offers else {}
    if not found:
        return told
    properties: dict[str, Any] = dict(told.input_schema["properties"])
    signatures = "; ".join(f"{name}({takes})" for name, takes in found.items())
    chosen = properties[tool.chooses]
    properties[tool.chooses] = {**chosen, "enum": list(found)}
    changed: dict[str, Any] = {"input_schema": {**told.input_schema, "properties": properties}}
    if tool.choices:
        changed["description"] = f"{told.description} You may run: {signatures}."
    else:
        properties[tool.chooses]["description"] = f"{chosen['description']} They take: {signatures}."
    return told.model_copy(update=changed)


@lru_cache(maxsize=512)
def listed(tool: Tool) -> types.Tool:
    """A tool as clients see it, its hints taken from the effect."""
    effect = tool.operation.effect
    return types.Tool(
        name=tool.name,
        title=tool.name.replace("_", " ").capitalize(),
        description=tool.description,
        input_schema=schema(tool.arguments),
        output_schema=schema(tool.results) if tool.tells_result and not issubclass(tool.results, Text) else None,
        annotations=types.ToolAnnotations(
            read_only_hint=effect is Effect.READ,
            destructive_hint=effect is Effect.DESTRUCTIVE,
            idempotent_hint=effect is Effect.READ,
            open_world_hint=tool.open_world,
        ),
    )


def success(result: BaseModel) -> types.CallToolResult:
    """A result as structure, and as the same in text for older clients; what is to be read is text alone."""
    told = result.told() if isinstance(result, Gives) else result.model_dump_json(exclude_none=True)
    structure = None if isinstance(result, Text) else result.model_dump(mode="json", exclude_none=True)
    return types.CallToolResult(content=[types.TextContent(type="text", text=told)], structured_content=structure)


def failure(error: KeepsakeError) -> types.CallToolResult:
    """A tool's failure is a result that the model can read; a protocol failure is an error."""
    if error.rpc is not None:
        raise MCPError(error.rpc, str(error)) from error
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(error))], is_error=True)
