"""What the doctor looks at in each connected client: its files, the server it would start, the hooks it would run."""

import asyncio
import json
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from keepsake.core.errors import BadInput, KeepsakeError
from keepsake.core.lazy import lazy
from keepsake.ops.doctor import Finding, note, ok, problem
from keepsake.surfaces.connect import files, marked, plan
from keepsake.surfaces.connect.clients import CLIENTS, KEY_VARIABLE, NAME, Client, Place
from keepsake.surfaces.connect.jsontext import Json
from keepsake.surfaces.connect.kinds import JsonFile, MarkedFile, OwnFile, Part

if TYPE_CHECKING:
    import httpx

    from keepsake.surfaces import bearer
else:
    bearer = lazy("keepsake.surfaces.bearer")
    httpx = lazy("httpx")

#: Seconds that a client gives a server before it gives up; the fastest to lose patience we know.
PATIENCE_S = 30
_ASKED = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    '"clientInfo":{"name":"keepsake doctor","version":"1"}}}\n'
    '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    '{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
)
_PLUGIN = re.compile(r"^const COMMAND = (\[.*\])$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Registered:
    """What a client's files say of us."""

    server: Mapping[str, Json] | None
    hooks: Sequence[Sequence[str]]
    events: frozenset[str]


async def clients(place: Place) -> list[Finding]:
    """Every client that is connected for this user, from its file to the answer of its server."""
    found = []
    for client in CLIENTS.values():
        mend = f"`keepsake connect {client.name} --write` writes it anew."
        try:
            registered = _registered(client, place)
        except KeepsakeError as error:
            found.append(problem(client.name, str(error), f"Mend the file, then {mend}"))
            continue
        if registered.server is not None:
            found.append(await _server(client, registered.server, mend))
        if registered.hooks:
            found.append(await _hooks(client, registered))
        found += _reminders(client, place, registered)
    return found


def _registered(client: Client, place: Place) -> Registered:
    server, hooks, events = None, [], set()
    for spot in plan.spots(client, place):
        file = files.read(spot.path, place.within)
        if file.text is None or NAME not in file.text or spot.path == place.rules(client):
            continue
        try:
            part = spot.kind.held(file.text)
        except BadInput as error:
            if isinstance(spot.kind, OwnFile):
                continue
            raise BadInput(f"{spot.path}: {error}") from error
        server = _entry(client, part, spot.kind) or server
        told = part.hooks if isinstance(spot.kind, JsonFile) else {}
        if isinstance(spot.kind, OwnFile):
            told = {spot.path.name: [_own(part.text)]}
        for name, items in told.items():
            hooks += [words for item in items for words in _words(item)]
            events.add(name)
    return Registered(server, hooks, frozenset(events))


def _entry(client: Client, part: Part, kind: object) -> Mapping[str, Json] | None:
    if isinstance(kind, MarkedFile) and kind.marks is marked.TOML and part.text:
        told = tomllib.loads(part.text)[client.key][NAME]
        return dict(told)
    return part.server if isinstance(part.server, dict) else None


def _own(text: str) -> Json:
    """A file of ours as JSON; of a program, the command that it runs."""
    if found := _PLUGIN.search(text):
        first, *rest = json.loads(found[1])
        at = rest.index("hook") + 1
        return {"command": first, "args": [*rest[:at], "plugin", "--client", "opencode", *rest[at:]]}
    if text.startswith("#!"):
        return {"command": text.strip().rpartition("exec ")[2]}
    try:
        told: Json = json.loads(text)
    except ValueError:
        return None
    return told


def _words(item: Json) -> Iterable[list[str]]:
    """Every command of ours within an item, as words."""
    if isinstance(item, list):
        for part in item:
            yield from _words(part)
    if not isinstance(item, dict):
        return
    command, rest = item.get("command"), item.get("args")
    if isinstance(command, str):
        words = [command, *map(str, rest)] if isinstance(rest, list) else shlex.split(command)
        if "hook" in words[:-1]:
            yield words
        return
    for part in item.values():
        yield from _words(part)


async def _server(client: Client, server: Mapping[str, Json], mend: str) -> Finding:
    address = server.get(client.url_key)
    if isinstance(address, str):
        return await _asked(client, address)
    told = server.get("command")
    rest = server.get("args")
    words = (
        [*map(str, told)] if isinstance(told, list) else [str(told), *map(str, rest if isinstance(rest, list) else [])]
    )
    if shutil.which(words[0]) is None:
        return problem(client.name, f"{words[0]} is no program that can be run.", mend)
    listed = await _listed(words)
    if isinstance(listed, str):
        return problem(client.name, f"`{shlex.join(words)}` does not serve: {listed}", mend)
    return ok(client.name, f"`{shlex.join(words)}` starts and lists {listed} tools")


async def _listed(words: Sequence[str]) -> int | str:
    """How many tools a command serves, else why it does not."""
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            answered, told = await process.communicate(_ASKED.encode())
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"no answer within {PATIENCE_S} s"
    for line in answered.splitlines():
        if (count := _tools(line)) is not None:
            return count
    said = told.decode(errors="replace").strip().splitlines()
    return said[-1][:200] if said else "it ended without an answer"


def _tools(line: bytes | str) -> int | None:
    try:
        return len(json.loads(line)["result"]["tools"])
    except (ValueError, KeyError, TypeError):
        return None


async def _asked(client: Client, address: str) -> Finding:
    """Whether a server answers at the address in the client's file."""
    key = os.environ.get(KEY_VARIABLE)
    headers = {"Accept": "application/json, text/event-stream"} | ({"Authorization": f"Bearer {key}"} if key else {})
    asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    mend = f"Start it with `keepsake serve`, check {KEY_VARIABLE}, or connect the client again."
    try:
        near = bearer.is_loopback(httpx.URL(address).host)
        async with httpx.AsyncClient(timeout=PATIENCE_S, trust_env=not near) as asking:
            answer = await asking.post(address, json=asked, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return problem(client.name, f"Nothing answers at {address} ({str(error) or type(error).__name__}).", mend)
    lines = [answer.text, *(line.removeprefix("data:") for line in answer.text.splitlines())]
    count = next((found for line in lines if (found := _tools(line)) is not None), None)
    if count is None:
        return problem(client.name, f"{address} answers {answer.status_code}, and lists no tools.", mend)
    return ok(client.name, f"{address} answers and lists {count} tools")


async def _hooks(client: Client, registered: Registered) -> Finding:
    check, mend = f"{client.name} hooks", f"`keepsake connect {client.name} --hooks --write` writes them anew."
    for words in {tuple(_dry(words)) for words in registered.hooks}:
        if shutil.which(words[0]) is None:
            return problem(check, f"{words[0]} is no program that can be run.", mend)
        if failed := await _ran(words):
            return problem(check, f"`{shlex.join(words)}` fails: {failed}", mend)
    assert client.hooks is not None
    missing = [name for name in client.hooks.events if name not in registered.events]
    if missing and client.hooks.shape not in ("kiro", "vscode", "plugin"):
        return note(check, f"{', '.join(missing)} is not hooked.", mend)
    return ok(check, f"{len(registered.hooks)} found, and all run")


def _dry(words: Sequence[str]) -> list[str]:
    """The same command for an event that nobody keeps."""
    at = words.index("hook")
    return [*words[: at + 1], "doctor", *words[at + 2 :]]


async def _ran(words: Sequence[str]) -> str:
    """Why a hook fails; empty when it does not."""
    process = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            _, told = await process.communicate(b"{}")
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"not done within {PATIENCE_S} s"
    said = told.decode(errors="replace").strip().splitlines()
    return "" if process.returncode == 0 else (said[-1][:200] if said else f"exit code {process.returncode}")


def _reminders(client: Client, place: Place, registered: Registered) -> list[Finding]:
    if client.name == "codex" and len(registered.hooks) > _trusted(place):
        told = "Codex runs hooks only after you have trusted them."
        return [note("codex trust", told, "Run `/hooks` in Codex and trust those of Keepsake.")]
    if client.name == "claude-code" and (registered.server or registered.hooks) and _has_plugin(place):
        told = "Keepsake is connected twice: by the plugin and by your own configuration."
        return [note("claude-code twice", told, "`keepsake disconnect claude-code`, or uninstall the plugin.")]
    return []


def _trusted(place: Place) -> int:
    """How many of our hooks Codex has noted trust in; it keeps that by the file's name."""
    hooks = place.hooks(CLIENTS["codex"])
    try:
        state = tomllib.loads(place.at("{codex}/config.toml").read_text(encoding="utf-8"))["hooks"]["state"]
        return sum(name.startswith(f"{hooks}:") and "trusted_hash" in told for name, told in state.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0


def _has_plugin(place: Place) -> bool:
    path: Path = place.at("{claude}/plugins/installed_plugins.json")
    try:
        installed = json.loads(path.read_text(encoding="utf-8"))["plugins"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return any(str(name).partition("@")[0] == NAME for name in installed)
