"""What is written into a client's files: the server, the hooks and the rules, in that client's own shape."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import keepsake
from keepsake.core.bank_name import HERE
from keepsake.core.errors import BadInput, Misconfigured
from keepsake.surfaces.connect.clients import KEY_VARIABLE, NAME, Client
from keepsake.surfaces.connect.jsontext import Json

#: Where each dialect is served; hindsight takes the bank in its path, the others in a header.
PATHS = {
    "keepsake": "/keepsake/mcp",
    "hindsight": "/mcp",
    "kiro": "/kiro/mcp",
    "keystone": "/api/mcp",
    "checkstack": "/api/ai/mcp",
    "xerotier": "/v1/mcp",
}
#: Seconds that a client waits for a hook; each ends by itself within two.
_PATIENCE = 10
#: Codex gives the end of a session no more.
_PATIENCE_AT_END = 3
#: Clients go on without waiting for these.
_BEHIND = frozenset({"tool", "stop", "compact"})
#: opencode fetches a package of its own before it loads any plugin, and starts only then: it shall not try for minutes.
NPM = "fetch-retries=0\nfetch-timeout=30000"
_PLUGIN = Path(keepsake.__file__).parent / "hooks" / "opencode.js"
#: What stands for our command in the plugin.
_COMMAND_MARK = "__KEEPSAKE_COMMAND__"


@dataclass(frozen=True, slots=True)
class Target:
    """What a client is connected to."""

    #: The words that start Keepsake on this machine.
    command: tuple[str, ...]
    dialect: str
    #: Whether the dialect is the product's own choice, which later versions may change.
    is_default: bool
    bank: str | None = None
    #: Address of a server, instead of one that the client starts.
    url: str = ""
    has_key: bool = False
    #: Where the memories are, when that is not the usual place.
    data_dir: str = ""
    #: The key itself, only where it shall stand in a file.
    secret: str = ""
    #: The bank and its org as xerotier's headers and addresses know them.
    workspace: str = ""
    project: str = ""
    #: What the server is called in the file.
    name: str = NAME

    def only(self, client: Client) -> str | None:
        """The bank that a client reaches alone: the one that was named, else that of the project it works in."""
        return self.bank or (HERE if client.is_in_project and not self.url else None)

    def stdio(self, client: Client) -> list[str]:
        """The words that serve one client."""
        dialect = () if self.is_default else ("--dialect", self.dialect)
        return [*self.command, "stdio", *dialect, *self._places(self.only(client))]

    @property
    def hooks(self) -> tuple[str, ...]:
        """Options of every hook, which finds its project by itself."""
        return self._places(self.bank)

    def hook(self, event: str, client: str) -> list[str]:
        """The words that take one event."""
        return [*self.command, "hook", event, "--client", client, *self.hooks]

    def _places(self, bank: str | None) -> tuple[str, ...]:
        named = () if bank is None else ("--bank", bank)
        return (*named, *(("--data-dir", self.data_dir) if self.data_dir else ()))

    @property
    def address(self) -> str:
        """Where the dialect is served, for the bank that was named."""
        project = f"/{self.project}" if self.project and self.dialect == "xerotier" else ""
        base = self.url.rstrip("/") + project + PATHS[self.dialect]
        return f"{base}/{quote(self.bank, safe='')}/" if self.bank and self.dialect == "hindsight" else base

    def headers(self, client: Client) -> dict[str, Json]:
        """What is sent along; the key as the name of a variable, unless it shall stand in the file."""
        if self.secret:
            return {"Authorization": f"Bearer {self.secret}", **self.place}
        if not self.has_key or not client.variable:
            return {**self.place}
        return {"Authorization": f"Bearer {client.variable.format(KEY_VARIABLE)}", **self.place}

    @property
    def place(self) -> dict[str, Json]:
        """The header that names the bank, where the address does not."""
        if self.dialect == "xerotier":
            return {"X-Xerotier-Workspace": self.workspace} if self.workspace else {}
        return {"X-Bank-Id": self.bank} if self.bank and self.dialect != "hindsight" else {}


def command() -> tuple[str, ...]:
    """The words that start this Keepsake, with whole paths: a client may know no PATH."""
    beside = Path(sys.executable).parent / ("keepsake.exe" if os.name == "nt" else "keepsake")
    if beside.exists():
        return (str(beside),)
    found = shutil.which("keepsake")
    return (os.path.abspath(found),) if found else (sys.executable, "-m", "keepsake")


def server(client: Client, target: Target) -> dict[str, Json]:
    """The entry of the server in a client's JSON."""
    if target.url:
        if not client.url_key:
            raise BadInput(
                f"{client.title} starts its servers itself: connect it without --url and KEEPSAKE_URL, or add"
                f" {target.address} under its Settings, Connectors."
            )
        headers = target.headers(client)
        told: dict[str, Json] = {**_json(client.remote), client.url_key: target.address}
        return {**told, "headers": headers} if headers else told
    first, *rest = target.stdio(client)
    words: dict[str, Json] = {"command": [first, *rest]} if client.is_listed else {"command": first, "args": [*rest]}
    return {**_json(client.local), **words}


def table(client: Client, target: Target) -> str:
    """The entry of the server in a client's TOML."""
    first, *rest = target.stdio(client)
    lines: dict[str, Json] = {"command": first, "args": [*rest]}
    if target.url:
        lines = {"url": target.address}
    if target.has_key and not target.secret:
        # Codex hands a server only the variables that it is told to.
        lines |= {"bearer_token_env_var": KEY_VARIABLE} if target.url else {"env_vars": [KEY_VARIABLE]}
    lines |= _json(client.remote if target.url else client.local)
    if target.dialect == "xerotier":
        # Its governed commands may take longer than Codex waits.
        lines = {"enabled": True, **lines, "tool_timeout_sec": 60}
    told = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in lines.items()]
    if target.url and (headers := target.headers(client)):
        pairs = (f"{json.dumps(name)} = {json.dumps(value, ensure_ascii=False)}" for name, value in headers.items())
        told.append(f"http_headers = {{ {', '.join(pairs)} }}")
    return "\n".join([f"[{client.key}.{target.name}]", *told])


def _json(given: Mapping[str, object]) -> dict[str, Json]:
    told: dict[str, Json] = json.loads(json.dumps(dict(given)))
    return told


def shell(words: Sequence[str]) -> str:
    """Words as a shell takes them."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def hook(client: Client, target: Target, name: str) -> Json:
    """One event's hook, as an item of that event's list."""
    assert client.hooks is not None
    event = client.hooks.events[name]
    words = target.hook(event, client.name)
    patience = _PATIENCE_AT_END if event == "session-end" else _PATIENCE
    if client.hooks.shape == "flat":
        return {"command": shell(words), "timeout": patience}
    if client.hooks.shape == "vscode":
        return {"type": "command", "command": shell(words), "timeout": patience}
    if client.hooks.shape == "windsurf":
        return {"command": shell(words), "show_output": False}
    if client.hooks.shape == "kiro":
        action: Json = {"type": "command", "command": shell(words)}
        return {"name": f"{NAME}-{event}", "trigger": name, "action": action, "timeout": patience, "enabled": True}
    matcher: dict[str, Json] = {"matcher": "*"} if event == "tool" and client.hooks.shape != "nested" else {}
    return {**matcher, "hooks": [_command(client, words, event, patience)]}


def _command(client: Client, words: list[str], event: str, patience: int) -> Json:
    assert client.hooks is not None
    if client.hooks.shape == "gemini":
        # Gemini counts in milliseconds.
        return {"type": "command", "name": f"{NAME}-{event}", "command": shell(words), "timeout": patience * 1000}
    if client.hooks.shape == "nested":
        return {"type": "command", "command": shell(words), "timeout": patience}
    # Without a shell between: no quoting, and the same on every system.
    told: dict[str, Json] = {"type": "command", "command": words[0], "args": [*words[1:]], "timeout": patience}
    return {**told, "async": True} if event in _BEHIND else told


def hooks(client: Client, target: Target) -> dict[str, list[Json]]:
    """Every event's hooks."""
    assert client.hooks is not None
    return {name: [hook(client, target, name)] for name in client.hooks.events}


def hook_files(client: Client, target: Target, place: Path) -> dict[Path, str]:
    """The files that are ours alone, with what stands in them."""
    assert client.hooks is not None
    if client.hooks.shape == "scripts":
        return {place / name: _script(client, target, event) for name, event in client.hooks.events.items()}
    if client.hooks.shape == "plugin":
        return {place: plugin(target), place.parent.parent / ".npmrc": NPM}
    told = hooks(client, target)
    if client.hooks.shape == "kiro":
        return {place: _document({"version": "v1", "hooks": [item for items in told.values() for item in items]})}
    listed: Json = {name: [*items] for name, items in told.items()}
    return {place: _document({"version": 1, "hooks": listed})}


def _document(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _script(client: Client, target: Target, event: str) -> str:
    line = shell(target.hook(event, client.name))
    return f"#!/bin/sh\n# `keepsake connect` wrote this; `keepsake disconnect {client.name}` removes it.\nexec {line}\n"


def plugin(target: Target) -> str:
    """Our plugin for opencode, with the command that it is to run."""
    try:
        text = _PLUGIN.read_text(encoding="utf-8")
    except OSError as error:
        raise Misconfigured("This installation lacks the plugin for opencode. Install Keepsake again.") from error
    if _COMMAND_MARK not in text:
        raise Misconfigured("The plugin for opencode is not the one of this version. Install Keepsake again.")
    return text.replace(_COMMAND_MARK, json.dumps([*target.command, "hook", *target.hooks])[1:-1])


def rules(instructions: str, name: str = NAME) -> str:
    """What a client is told in every session."""
    return f"## Memory\n\n{instructions} These are tools of the MCP server `{name}`."
