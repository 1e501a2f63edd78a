"""Serves the suite's fixtures at /conformance beside the product, through the product's own front.

Run as `python -m tests.conformance.server`; prints the address it listens on.
"""

import asyncio
import json
import re
import signal
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from keepsake import settings
from keepsake.context import App
from keepsake.surfaces import serve
from keepsake.surfaces.front import Endpoint
from keepsake.surfaces.http import Site
from keepsake.tools.dialect import Dialect
from tests.conformance.asking import ASKING, accepted, asks, elicit
from tests.conformance.fixtures import BUS, PNG, TOOLS, embedded, image, text

ALL = {**TOOLS, **ASKING}
TEMPLATE = re.compile(r"test://template/([^/]+)/data")
ARGUMENT = types.PromptArgument


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    """Every fixture."""
    tools = [
        types.Tool(name=name, description=call.__doc__ or name, input_schema=schema)
        for name, (schema, call) in ALL.items()
    ]
    return types.ListToolsResult(tools=tools)


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
    """Run a fixture."""
    if params.name not in ALL:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await ALL[params.name][1](ctx, params)


PROMPTS: dict[str, list[str]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    """Every prompt."""
    prompts = [
        types.Prompt(name=name, description=name, arguments=[ARGUMENT(name=one, required=True) for one in arguments])
        for name, arguments in PROMPTS.items()
    ]
    return types.ListPromptsResult(prompts=prompts)


async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> Any:
    """One prompt."""
    given = params.arguments or {}
    context = accepted(params, "user_context", "context")
    if params.name == "test_input_required_result_prompt" and context is None:
        return asks({"user_context": elicit("What context should the prompt use?", "context")})
    uri = given.get("resourceUri", "test://none")
    contents: dict[str, list[Any]] = {
        "test_simple_prompt": [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [
            text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
        ],
        "test_prompt_with_embedded_resource": [
            embedded(uri, "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [image(), text("Please analyze the image above.")],
        "test_input_required_result_prompt": [text(f"In the context of {context}")],
    }
    if params.name not in contents:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    messages = [types.PromptMessage(role="user", content=content) for content in contents[params.name]]
    return types.GetPromptResult(messages=messages)


RESOURCES = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text", mime_type="text/plain", text="This is the content of the static text resource."
    ),
    "test://static-binary": types.BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=PNG),
    "test://watched-resource": types.TextResourceContents(
        uri="test://watched-resource", mime_type="text/plain", text="Watched."
    ),
}


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    """Every resource."""
    found = [types.Resource(uri=uri, name=uri, mime_type=content.mime_type) for uri, content in RESOURCES.items()]
    return types.ListResourcesResult(resources=found)


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    """The one template."""
    template, mime = "test://template/{id}/data", "application/json"
    made = types.ResourceTemplate(uri_template=template, name="template", mime_type=mime)
    return types.ListResourceTemplatesResult(resource_templates=[made])


async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    """One resource, or one made from the template."""
    uri = str(params.uri)
    if uri in RESOURCES:
        return types.ReadResourceResult(contents=[RESOURCES[uri]])
    if found := TEMPLATE.fullmatch(uri):
        body = json.dumps({"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"})
        made = types.TextResourceContents(uri=uri, mime_type="application/json", text=body)
        return types.ReadResourceResult(contents=[made])
    raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


async def subscribed(ctx: Any, params: Any) -> types.EmptyResult:
    """Subscriptions and log levels are taken note of by nobody."""
    return types.EmptyResult()


async def complete(ctx: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Words that begin as asked."""
    words = [word for word in ("paris", "park", "party") if word.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=words, total=len(words), has_more=False))


def fixtures() -> Server[Any]:
    """A server of the SDK with all of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made: Server[Any] = Server(
            "keepsake-conformance",
            version="1.0.0",
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            on_list_prompts=list_prompts,
            on_get_prompt=get_prompt,
            on_list_resources=list_resources,
            on_list_resource_templates=list_templates,
            on_read_resource=read_resource,
            on_subscribe_resource=subscribed,
            on_unsubscribe_resource=subscribed,
            on_set_logging_level=subscribed,
            on_subscriptions_listen=ListenHandler(BUS),
            on_completion=complete,
        )
    made.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="conformance"))
    return made


def extend(site: Site) -> None:
    """Add the fixtures to the product's paths."""
    dialect = Dialect("conformance", "Conformance", "", {})
    site.more.append(("/conformance", Endpoint(site.app, dialect, site.sessions, server=fixtures())))


def announce(app: App, address: str) -> None:
    """Say where it listens."""
    print(address, flush=True)


def ended(signum: int, frame: object) -> NoReturn:
    """Leave as from a success, as the command line does."""
    raise SystemExit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ended)
    warnings.simplefilter("ignore")
    with TemporaryDirectory() as folder:
        asyncio.run(serve.run(settings.load(port=0, data_dir=Path(folder), worker=False), announce, extend))
