"""CPU per call over real HTTP, and acknowledged durable writes a second."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from bench import corpus, load

TICK = os.sysconf("SC_CLK_TCK")


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rss(pid: int) -> int:
    """Resident megabytes of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) // 1024


@contextmanager
def server(data_dir: Path, url: str = "", worker: bool = False) -> Iterator[tuple[str, int]]:
    """A real server in a process of its own: its address and pid."""
    environment = {
        **os.environ,
        "KEEPSAKE_DATA_DIR": str(data_dir),
        "KEEPSAKE_DATABASE_URL": url,
        "KEEPSAKE_PORT": "0",
        "KEEPSAKE_WORKER": str(worker).lower(),
    }
    script = (
        "from keepsake import settings\nfrom keepsake.surfaces import serve\n"
        "serve.main(settings.load(), lambda app, url: print(url, flush=True))"
    )
    process = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.terminate()
        process.wait(30)


class Client:
    """A client with a session that takes its answers as JSON."""

    def __init__(self, url: str, bank: str = "bench", path: str = "") -> None:
        self.path = path or f"/mcp/{bank}/"
        self.http = httpx.Client(base_url=url, headers={"Accept": "application/json"}, timeout=60)
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        opened = self.http.post(self.path, json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.http.headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
        self.http.post(self.path, json={"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, name: str, arguments: dict[str, object]) -> dict[str, object]:
        """One tool call."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        reply = self.http.post(self.path, json=body).json()
        if "error" in reply or reply["result"]["isError"]:
            raise RuntimeError(json.dumps(reply)[:300])
        content: dict[str, object] = reply["result"]["structuredContent"]
        return content


def per_call(client: Client, spent: Callable[[], float], name: str, arguments: list[dict[str, object]]) -> float:
    """Milliseconds of CPU a call, all processes together, and those that come meanwhile; the quietest of four parts."""
    for warm in arguments[:5]:
        client.call(name, warm)
    part = len(arguments) // 4
    taken = []
    for start in range(0, 4 * part, part):
        before = spent()
        for given in arguments[start : start + part]:
            client.call(name, given)
        taken.append(1000 * (spent() - before) / part)
    return min(taken)


def spent(pid: int, url: str) -> Callable[[], float]:
    """Seconds of CPU that a server has used until now, with the processes of PostgreSQL that answer it."""
    return lambda: sum(cpu(each) for each in [pid, *backends(url)])


def backends(url: str) -> list[int]:
    """The processes of PostgreSQL that answer this server; not autovacuum, which still works on what was loaded."""
    if not url:
        return []
    found = subprocess.run(
        ["pgrep", "-f", r"postgres: .*keepsake_bench \[local\]"], capture_output=True, text=True, check=False
    )
    return [int(line) for line in found.stdout.split()]


def measured(count: int, url: str = "") -> dict[str, float]:
    """Fill a bank with so many memories and measure both calls."""
    bank = f"bench{count}"
    with tempfile.TemporaryDirectory() as folder:
        load.main(Path(folder), url, bank, count)
        texts = corpus.memories(400, seed=99)
        asked = corpus.questions(400, corpus.memories(count))
        with server(Path(folder), url) as (address, pid):
            client = Client(address, bank)
            client.call("recall", {"query": asked[0]})
            client.call("retain", {"content": "warm"})
            recall = per_call(client, spent(pid, url), "recall", [{"query": query} for query in asked])
            retain = per_call(client, spent(pid, url), "retain", [{"content": text} for text in texts])
            return {"recall ms CPU": recall, "retain ms CPU": retain, "RSS MB": rss(pid)}


async def _writers(url: str, clients: int, seconds: float) -> tuple[int, float]:
    acknowledged = 0
    end = time.monotonic() + seconds

    async def write(n: int) -> None:
        nonlocal acknowledged
        async with httpx.AsyncClient() as client:
            while time.monotonic() < end:
                content = f"Writer {n} notes number {acknowledged}"
                body = {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": {"name": "retain", "arguments": {"content": content}},
                }
                reply = await client.post(f"{url}/mcp/bench/", json=body, headers={"Accept": "application/json"})
                acknowledged += reply.json()["result"]["isError"] is False

    started = time.monotonic()
    await asyncio.gather(*(write(n) for n in range(clients)))
    return acknowledged, time.monotonic() - started


def writers(clients: int = 8, seconds: float = 5) -> dict[str, float]:
    """Durable writes a second from several clients over HTTP, and how many of them are missing afterwards."""
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as (address, _):
        Client(address).call("retain", {"content": "warm"})
        acknowledged, took = asyncio.run(_writers(address, clients, seconds))
        total = Client(address).call("list_memories", {"limit": 1})["total"]
        assert isinstance(total, int)
        return {"writes/s": acknowledged / took, "lost": acknowledged + 1 - total}
