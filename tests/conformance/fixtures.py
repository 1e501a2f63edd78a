"""The tools that the official conformance suite calls, answering as its descriptions ask."""

import asyncio
import base64
import json
import struct
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError

Call = Callable[[Any, types.CallToolRequestParams], Awaitable[types.CallToolResult | types.InputRequiredResult]]
Schema = dict[str, Any]

BUS = InMemorySubscriptionBus()
NOTHING: Schema = {"type": "object", "properties": {}}


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _png() -> str:
    """One red pixel."""
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    pixel = _chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00"))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + header + pixel + _chunk(b"IEND", b"")).decode()


def _wav() -> str:
    """One silent sample."""
    sound = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16) + b"data" + struct.pack("<IH", 2, 0)
    return base64.b64encode(b"RIFF" + struct.pack("<I", 4 + len(sound)) + b"WAVE" + sound).decode()


PNG, WAV = _png(), _wav()


def text(words: str) -> types.TextContent:
    """Text as content."""
    return types.TextContent(type="text", text=words)


def image() -> types.ImageContent:
    """A picture as content."""
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri: str, words: str, mime: str = "text/plain") -> types.EmbeddedResource:
    """A resource as content."""
    resource = types.TextResourceContents(uri=uri, mime_type=mime, text=words)
    return types.EmbeddedResource(type="resource", resource=resource)


def result(*content: types.ContentBlock) -> types.CallToolResult:
    """A tool's result."""
    return types.CallToolResult(content=list(content))


def always(*content: types.ContentBlock) -> Call:
    """A tool that answers the same to everyone."""

    async def call(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return result(*content)

    return call


async def failing(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Always fails, as a tool does."""
    words = text("This tool intentionally returns an error for testing")
    return types.CallToolResult(content=[words], is_error=True)


async def logging(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Logs three times while it works."""
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", words, related_request_id=ctx.request_id)
        await asyncio.sleep(0.02)
    return result(text("Logged three times."))


async def progressing(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Reports progress three times while it works."""
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"{done} of 100")
        await asyncio.sleep(0.02)
    return result(text("Reported three times."))


async def sampling(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Asks the client's model."""
    prompt = str((params.arguments or {}).get("prompt", ""))
    asked = types.SamplingMessage(role="user", content=text(prompt))
    told = await ctx.session.create_message([asked], max_tokens=100, related_request_id=ctx.request_id)
    return result(text(f"LLM response: {getattr(told.content, 'text', told.content)}"))


def eliciting(properties: Schema, required: list[str], begin: str) -> Call:
    """A tool that asks the client's user."""

    async def call(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        message = str((params.arguments or {}).get("message", "Please fill this in"))
        wanted = {"type": "object", "properties": properties, "required": required}
        told = await ctx.session.elicit_form(message, wanted, ctx.request_id)
        return result(text(f"{begin}: action={told.action}, content={json.dumps(told.content)}"))

    return call


async def reconnecting(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Closes its own stream on the way, where there is a way to come back to it."""
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await asyncio.sleep(0.1)
    return result(text("Reconnection test completed."))


async def needing_sampling(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Refuses a client that did not declare sampling."""
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs the sampling capability.", needed)
    return result(text("The client declared sampling."))


async def changing_tools(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Tells listeners that the tools changed."""
    await BUS.publish(ToolsListChanged())
    return result(text("Told."))


async def changing_prompts(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Tells listeners that the prompts changed."""
    await BUS.publish(PromptsListChanged())
    return result(text("Told."))


OPTIONS = ["option1", "option2", "option3"]
DEFAULTS: Schema = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}


def _titled(kind: str) -> list[Schema]:
    return [{"const": f"value{n}", "title": f"{word} {kind}"} for n, word in enumerate(("First", "Second", "Third"), 1)]


ENUMS: Schema = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": _titled("Option")},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": _titled("Choice")}},
}
USER: Schema = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}


def one(name: str) -> Schema:
    """A schema with one required text."""
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


SCHEMA_2020_12: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADER_SCHEMA: Schema = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
}

TOOLS: dict[str, tuple[Schema, Call]] = {
    "test_simple_text": (NOTHING, always(text("This is a simple text response for testing."))),
    "test_image_content": (NOTHING, always(image())),
    "test_audio_content": (NOTHING, always(types.AudioContent(type="audio", data=WAV, mime_type="audio/wav"))),
    "test_embedded_resource": (
        NOTHING,
        always(embedded("test://embedded-resource", "This is an embedded resource content.")),
    ),
    "test_multiple_content_types": (
        NOTHING,
        always(
            text("Multiple content types test:"),
            image(),
            embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
        ),
    ),
    "test_tool_with_logging": (NOTHING, logging),
    "test_logging_tool": (NOTHING, logging),
    "test_tool_with_progress": (NOTHING, progressing),
    "test_error_handling": (NOTHING, failing),
    "test_sampling": (one("prompt"), sampling),
    "test_elicitation": (one("message"), eliciting(USER, ["username", "email"], "User response")),
    "test_elicitation_sep1034_defaults": (NOTHING, eliciting(DEFAULTS, [], "Elicitation completed")),
    "test_elicitation_sep1330_enums": (NOTHING, eliciting(ENUMS, [], "Elicitation completed")),
    "test_reconnection": (NOTHING, reconnecting),
    "json_schema_2020_12_tool": (SCHEMA_2020_12, always(text("Valid."))),
    "test_x_mcp_header": (HEADER_SCHEMA, always(text("The header agrees."))),
    "test_missing_capability": (NOTHING, needing_sampling),
    "test_trigger_tool_change": (NOTHING, changing_tools),
    "test_trigger_prompt_change": (NOTHING, changing_prompts),
    "test_streaming_elicitation": (NOTHING, progressing),
}
