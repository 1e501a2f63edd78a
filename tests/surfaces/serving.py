"""Servers in processes of their own, and clients that speak to them over the real wire."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx

ROOT = Path(__file__).parents[2]
BOTH = "application/json, text/event-stream"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
Json = dict[str, Any]


def environment(folder: Path, **settings: object) -> dict[str, str]:
    """An environment in which nothing but these settings counts."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KEEPSAKE_", "HINDSIGHT_"))}
    wanted = {"data_dir": folder, "port": 0, "worker": "false", **settings}
    return kept | {f"KEEPSAKE_{name.upper()}": str(value) for name, value in wanted.items()}


@contextmanager
def serving(folder: Path, **settings: object) -> Iterator[str]:
    """A server with the product and the probes; gives its address."""
    with process(folder, **settings) as (server, address):
        yield address
        server.terminate()
        assert server.wait(20) == 0


@contextmanager
def process(folder: Path, **settings: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The same as a process to do things to."""
    command = [sys.executable, "-m", "tests.surfaces.server", "http"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(folder, **settings), stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield server, server.stdout.readline().strip()
        finally:
            server.kill()


def made_key(folder: Path, name: str, *options: str) -> str:
    """A new key, made by the command line."""
    secret: str = json.loads(keepsake(folder, "key", "create", "--json", "--name", name, *options))["secret"]
    return secret


def until(holds: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for something that happens in another process."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "It did not happen in time."
        time.sleep(0.01)


def marked(folder: Path, mark: str) -> str:
    """How far a lingering call came."""
    file = folder / mark
    return file.read_text() if file.exists() else ""


def request(method: str, params: Json | None = None, id: object = 1) -> Json:
    """A JSON-RPC request."""
    message: Json = {"jsonrpc": "2.0", "id": id, "method": method}
    return message if params is None else {**message, "params": params}


def notification(method: str, params: Json | None = None) -> Json:
    """A JSON-RPC notification."""
    message: Json = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


def called(tool: str, arguments: Json | None = None, id: object = 1, **meta: object) -> Json:
    """A call of a tool."""
    params: Json = {"name": tool, "arguments": arguments or {}}
    return request("tools/call", params | ({"_meta": meta} if meta else {}), id)


def initialize(version: str = "2025-11-25", id: object = 1) -> Json:
    """The first message of a 2025 client."""
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return request("initialize", params, id)


@dataclass(slots=True)
class Client:
    """One endpoint as a client sees it."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)

    def post(self, message: object, **headers: str) -> httpx.Response:
        """Send a message, or bytes as they are."""
        content = message if isinstance(message, bytes) else json.dumps(message).encode()
        given = {"Accept": BOTH, "Content-Type": "application/json"} | self.headers
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        as_bytes = {name.encode(): value.encode() for name, value in given.items()}
        return httpx.post(self.url, content=content, headers=as_bytes, timeout=30)

    def modern(self, message: Json, **meta: object) -> httpx.Response:
        """Send a message as the 2026 era does."""
        params = message.get("params") or {}
        message = message | {"params": params | {"_meta": META | params.get("_meta", {}) | meta}}
        names = {"Mcp_Name": params["name"]} if "name" in params else {}
        return self.post(message, MCP_Protocol_Version="2026-07-28", Mcp_Method=message["method"], **names)

    def session(self, version: str = "2025-11-25", accept: str = BOTH) -> "Client":
        """Begin a session, and give a client that uses it."""
        begun = self.post(initialize(version), Accept=accept)
        assert begun.status_code == 200, begun.text
        answer = messages(begun)[0]["result"]
        used = {
            "Accept": accept,
            "Mcp-Session-Id": begun.headers["mcp-session-id"],
            "MCP-Protocol-Version": answer["protocolVersion"],
        }
        return Client(self.url, self.headers | used)

    def call(self, tool: str, arguments: Json | None = None, **headers: str) -> Json:
        """The result of a tool called without a session."""
        told: Json = self.post(called(tool, arguments), Accept="application/json", **headers).json()
        return told


def modern_post(client: httpx.Client, url: str, call: Json, meta: Json) -> httpx.Response:
    """A call of the 2026 era by a client of the caller's own making."""
    params = call["params"]
    headers = {
        "Accept": BOTH,
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": call["method"],
        "Mcp-Name": params["name"],
    }
    return client.post(url, json=call | {"params": params | {"_meta": META | meta}}, headers=headers)


@contextmanager
def background(work: Callable[[], httpx.Response]) -> Iterator[Future[httpx.Response]]:
    """Run something beside the test."""
    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(work)


def messages(response: httpx.Response) -> list[Json]:
    """Every message of an answer, streamed or not."""
    if not response.headers["content-type"].startswith("text/event-stream"):
        return [response.json()]
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line]


@dataclass(slots=True)
class Pipe:
    """A stdio server as its client sees it."""

    process: subprocess.Popen[bytes]

    def send(self, message: object) -> None:
        """Send a message, or bytes as they are."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        stdin = _open(self.process.stdin)
        stdin.write(line)
        stdin.flush()

    def receive(self) -> Any:
        """The next message of the server."""
        return json.loads(_open(self.process.stdout).readline())

    def ask(self, message: object) -> Any:
        """Send, and wait for what comes back."""
        self.send(message)
        return self.receive()

    def ended(self) -> int:
        """Close our end, and tell how the server left."""
        _open(self.process.stdin).close()
        return self.process.wait(20)


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


@contextmanager
def piped(folder: Path, *command: str, cwd: Path = ROOT, **settings: object) -> Iterator[Pipe]:
    """A stdio server: the probes, or the command given."""
    arguments: Sequence[str] = command or ("-m", "tests.surfaces.server", "stdio")
    with subprocess.Popen(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment(folder, **settings),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as started:
        try:
            yield Pipe(started)
        finally:
            started.kill()


def keepsake(folder: Path, *arguments: str) -> str:
    """What a command of ours prints."""
    command = [sys.executable, "-m", "keepsake", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment(folder), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def within_a_minute(work: Callable[[], list[httpx.Response]]) -> list[httpx.Response]:
    """Do something that must not straddle two minutes of the rate limit."""
    until(lambda: time.time() % 60 < 50, 15)
    return work()
