"""Real processes for stories: servers that listen, stdio servers that answer, and how they die."""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

OPENING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "story", "version": "1"},
}


def environment(data_dir: Path, url: str = "") -> dict[str, str]:
    """The surroundings of a process: this store and nothing of the developer's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KEEPSAKE_", "HINDSIGHT_"))}
    return {**kept, "KEEPSAKE_DATA_DIR": str(data_dir), "KEEPSAKE_DATABASE_URL": url}


class Worker:
    """A worker of a story in a process of its own."""

    def __init__(self, module: str, data_dir: Path, url: str, since: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, str(since)],
            env=environment(data_dir, url),
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            text=True,
        )

    async def ready(self) -> None:
        """Wait until it works."""
        assert self.process.stdout is not None
        assert await asyncio.to_thread(self.process.stdout.readline) == "ready\n"

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Server:
    """`keepsake serve` in a process of its own."""

    def __init__(self, data_dir: Path, url: str = "", **settings: str) -> None:
        command = [sys.executable, "-m", "keepsake", "serve", "--port", "0"]
        surroundings = environment(data_dir, url) | {f"KEEPSAKE_{name.upper()}": set for name, set in settings.items()}
        # It lives as long as the process.
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, stderr=self._said, text=True)
        self.url = self._announced()

    def _announced(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                return found[0]
        self.process.wait(30)
        self._said.seek(0)
        raise AssertionError(f"The server ended before it listened: {self._said.read()[-2_000:]}")

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self._ended()

    def _ended(self) -> int:
        assert self.process.stdout is not None
        code = self.process.wait(30)
        self.process.stdout.close()
        self._said.close()
        return code

    def stop(self) -> int:
        """End it as an operator would."""
        self.process.terminate()
        return self._ended()


@contextmanager
def serving(data_dir: Path, url: str = "", **settings: str) -> Iterator[Server]:
    """A server that is gone afterwards."""
    server = Server(data_dir, url, **settings)
    try:
        yield server
    finally:
        server.kill()


class Stdio:
    """`keepsake stdio` with its client's end."""

    def __init__(self, data_dir: Path, *flags: str) -> None:
        command = [sys.executable, "-m", "keepsake", "stdio", "--dialect", "hindsight", *flags]
        self.process = subprocess.Popen(
            command,
            env=environment(data_dir),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._id = 0
        self.request("initialize", OPENING)
        self.notify("notifications/initialized")

    def notify(self, method: str) -> None:
        """Send what needs no answer."""
        self._write({"jsonrpc": "2.0", "method": method})

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._id += 1
        self._write({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool and return what it gives."""
        result = self.request("tools/call", {"name": name, "arguments": arguments})["result"]
        assert result["isError"] is False, result
        given: dict[str, Any] = result["structuredContent"]
        return given

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def end(self) -> str:
        """Close the client's end; returns what the process said on stderr."""
        assert self.process.stdin is not None and self.process.stderr is not None
        self.process.stdin.close()
        self.process.wait(30)
        with self.process:
            return self.process.stderr.read().decode()


def tool(client: httpx.Client, url: str, name: str, arguments: dict[str, Any], bank: str = "story") -> dict[str, Any]:
    """Call a tool over HTTP as curl would, and return what it gives."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    reply = client.post(f"{url}/mcp/{bank}/", json=body, headers={"Accept": "application/json"}).json()
    result = reply.get("result")
    assert result is not None and result["isError"] is False, reply
    given: dict[str, Any] = result["structuredContent"]
    return given
