"""What starting a stdio server costs, beside a bare echo server of the SDK in the same run."""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.speed import rss

ECHO = """
import anyio, mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def list_tools(ctx, params):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return types.ListToolsResult(tools=[types.Tool(name="echo", description="Echo.", input_schema=schema)])

async def call_tool(ctx, params):
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(params.arguments))])

async def main():
    server = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""
OPENING = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


def started(
    command: list[str], environment: dict[str, str], then: tuple[dict[str, object], ...] = ()
) -> tuple[float, int]:
    """CPU seconds of a whole life up to the answered tools/list (and what follows), and resident megabytes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    for message in (*OPENING, *then):
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        if "id" in message:
            process.stdout.readline()
    held = rss(process.pid)
    process.kill()
    process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, held


def measured(rounds: int = 7) -> dict[str, float]:
    """The medians of both, taken in turns, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "KEEPSAKE_DATA_DIR": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        echo = Path(folder) / "echo.py"
        echo.write_text(ECHO)
        ours = [sys.executable, "-m", "keepsake", "stdio"]
        bare = [sys.executable, str(echo)]
        started(ours, environment)
        started(bare, environment)
        pairs = [(started(ours, environment), started(bare, environment)) for _ in range(rounds)]
        call = {"name": "recall", "arguments": {"query": "what does the user prefer"}}
        store = {"name": "remember", "arguments": {"content": "The user prefers tea."}}
        used = started(
            ours,
            environment,
            (
                {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": store},
                {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": call},
            ),
        )[1]
    mine = statistics.median(pair[0][0] for pair in pairs)
    echoed = statistics.median(pair[1][0] for pair in pairs)
    return {
        "start s CPU": mine,
        "bare SDK s CPU": echoed,
        "ratio": mine / echoed,
        "RSS MB idle": statistics.median(pair[0][1] for pair in pairs),
        "RSS MB after use": used,
    }
