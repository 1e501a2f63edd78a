"""What governed execution costs, a command by itself and whole invocations over MCP."""

import asyncio
import json
import resource
import tempfile
import time
from pathlib import Path

import httpx

from bench.speed import TICK, server
from keepsake.core.enrolment import Sandbox
from keepsake.services import sandbox
from keepsake.services.sandbox import Program

#: Runs that are measured, and invocations at once with a stream of progress each.
RUNS, AT_ONCE = 30, 50
STEPS = "for n in 1 2 3 4 5; do echo step $n; sleep 0.5; done"


def spent() -> float:
    """Seconds of CPU of this process and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


async def run(walls: Sandbox) -> float:
    """Milliseconds of CPU of one `true`, by itself."""

    async def unheard(chunk: bytes) -> None:
        """It says nothing."""

    await sandbox.run(Program(["true"], "warm", sandbox=walls), unheard, asyncio.Event())
    began = spent()
    for n in range(RUNS):
        await sandbox.run(Program(["true"], f"bench-{n}", sandbox=walls), unheard, asyncio.Event())
    return 1_000 * (spent() - began) / RUNS


def tree(pid: int) -> float:
    """Seconds of CPU of a server and of what it started and waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / TICK


async def asked(client: httpx.AsyncClient, tool: str, text: str) -> list[dict[str, object]]:
    """Every message of a call that waits for its end."""
    given = {"tool_name": tool, "arguments": {"text": text}}
    params = {"name": "xerotier.exec.invoke_blocking", "arguments": given, "_meta": {"progressToken": text}}
    message = {"jsonrpc": "2.0", "id": text, "method": "tools/call", "params": params}
    found: list[dict[str, object]] = []
    async with client.stream("POST", "/v1/mcp", json=message) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: {"):
                found.append(json.loads(line.removeprefix("data: ")))
    return found


async def served(url: str, pid: int) -> dict[str, float]:
    """What a whole invocation costs a server, and how fifty at once fare."""
    headers = {"Accept": "application/json, text/event-stream"}
    limits = httpx.Limits(max_connections=AT_ONCE + 5)
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120, limits=limits, trust_env=False) as client:
        await _operation(client, "bank.create", name="bench")
        place = (await _operation(client, "bank.get", bank="bench"))["workspace"]
        client.headers["X-Xerotier-Workspace"] = str(place)
        schema = {"properties": {"text": {"type": "string"}}, "required": ["text"]}
        free = {"effect": "read", "approval": "none", "concurrency": 100, "parameters": schema}
        await _operation(client, "exec.enrol", name="true", argv=["true", "{text}"], **free)
        await _operation(client, "exec.enrol", name="steps", argv=["sh", "-c", STEPS, "{text}"], **free)
        await asked(client, "true", "warm")
        began = tree(pid)
        for n in range(RUNS):
            await asked(client, "true", f"n{n}")
        each = 1_000 * (tree(pid) - began) / RUNS
        began, at = tree(pid), time.monotonic()
        all_of_them = await asyncio.gather(*(asked(client, "steps", f"s{n}") for n in range(AT_ONCE)))
        passed, used = time.monotonic() - at, tree(pid) - began
    ended = [one[-1].get("result", {}) for one in all_of_them]
    states = [one.get("structuredContent", {}).get("status") for one in ended if isinstance(one, dict)]
    return {
        "invocation ms CPU": each,
        "succeeded": float(states.count("succeeded")),
        "messages": float(sum(len(one) - 1 for one in all_of_them)),
        "s until the last answer": passed,
        "s CPU": used,
    }


async def _operation(client: httpx.AsyncClient, id: str, **given: object) -> dict[str, object]:
    answer = await client.post(f"/v1/operations/{id}", json=given)
    answer.raise_for_status()
    made: dict[str, object] = answer.json()
    return made


def costs() -> tuple[float, float]:
    """Milliseconds of CPU of `true` in a sandbox and without one, server and children."""
    return asyncio.run(run(Sandbox())), asyncio.run(run(Sandbox(kind="none")))


def measured(url: str = "") -> dict[str, float]:
    """The figures of one store."""
    with tempfile.TemporaryDirectory() as folder, server(Path(folder), url, worker=True) as (address, pid):
        return asyncio.run(served(address, pid))
