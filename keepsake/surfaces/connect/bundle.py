"""A client's bundle: its configuration, its rules and what to mind, as text for `keepsake connect` and the console."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from keepsake.ops import bundling
from keepsake.ops.bundling import Addressed, Granted
from keepsake.surfaces.connect import entries, marked
from keepsake.surfaces.connect.clients import KEY_VARIABLE, NAME, Client, Place
from keepsake.surfaces.connect.entries import Target
from keepsake.surfaces.connect.jsontext import Json
from keepsake.surfaces.connect.kinds import INPUT, JsonFile, Kind, MarkedFile, Part
from keepsake.tools import catalog

#: How the server is called in the files of those who know it under another name.
_NAMES = {"xerotier": "xerotier"}
#: The program that carries a client which starts its servers to one with an address.
_BRIDGE = ("npx", "-y", "mcp-remote")
#: What stands where a key is still to be put.
GAP = "<api_key>"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a bundle is to connect to, and how."""

    url: str
    dialect: str = catalog.DEFAULT
    #: Whether the key stands in the file, instead of the name of a variable.
    has_key_inside: bool = False


@dataclass(frozen=True, slots=True)
class Paper:
    """One file of a bundle."""

    #: From the top of a project, or from the user's home where it begins with `~`.
    path: str
    text: str
    #: Whether there may be a file already, into which it has to be merged.
    is_merged: bool = False
    holds_key: bool = False


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a client needs, ready to be saved."""

    client: str
    title: str
    key_name: str
    files: tuple[Paper, ...]
    #: Lines for a project's .gitignore.
    ignore: tuple[str, ...]
    advice: tuple[str, ...]


def made(client: Client, asked: Asked, granted: Granted) -> Bundle:
    """The bundle of a client, with the key that was made for it."""
    target = Target(
        command=(),
        dialect=asked.dialect,
        is_default=asked.dialect == catalog.DEFAULT,
        bank=granted.bank,
        url=asked.url,
        has_key=True,
        secret=_secret(client, asked, granted),
        workspace=granted.workspace or "",
        project=granted.project,
        name=_NAMES.get(asked.dialect, NAME),
    )
    files = (replace(_config(client, target), holds_key=asked.has_key_inside), *_rules(client, target))
    ignore = tuple(paper.path for paper in files if paper.holds_key and not paper.path.startswith("~"))
    return Bundle(
        client.name, client.title, granted.name, files, ignore, tuple(_advice(client, target, granted, ignore))
    )


def _secret(client: Client, asked: Asked, granted: Granted) -> str:
    """What stands in the file for the key: itself where that is wanted, a gap where a variable cannot name it."""
    if asked.has_key_inside:
        return granted.secret
    return "" if client.reads_variables else GAP


def _config(client: Client, target: Target) -> Paper:
    path = client.project or _shown(client.files[0])
    if path.endswith(".toml"):
        return Paper(path, f"{entries.table(client, target)}\n", not client.project)
    kind: Kind = JsonFile(client.key)
    server = entries.server(client, target) if client.url_key else _bridged(target)
    inputs: list[Json] = []
    if f"input:{INPUT}" in str(server):
        inputs = [{"type": "promptString", "id": INPUT, "description": "Key for Keepsake", "password": True}]
    text = kind.shown(Part(server, inputs=inputs)).replace(f'"{NAME}": {{', f'"{target.name}": {{', 1)
    return Paper(path, f"{text}\n", not client.project)


def _bridged(target: Target) -> dict[str, Json]:
    """The entry of a client that knows no addresses; the key is in the environment, where a blank does no harm."""
    headers = [word for name, value in target.place.items() for word in ("--header", f"{name}:{value}")]
    words: list[Json] = [*_BRIDGE[1:], target.address, "--header", "Authorization:${AUTHORIZATION}", *headers]
    return {"command": _BRIDGE[0], "args": words, "env": {"AUTHORIZATION": f"Bearer {target.secret}"}}


def _shown(file: str) -> str:
    """A user's file as people write it."""
    return str(Place(Path("~"), environment={}, platform="linux").at(file))


def _rules(client: Client, target: Target) -> Iterator[Paper]:
    path = client.rules.bundled or client.rules.project
    if not path or not client.project:
        path = _shown(client.rules.file) if client.rules.file else ""
    if not path:
        return
    bound = None if target.bank is None else catalog.BOUND.get(target.dialect)
    text = entries.rules((bound or catalog.DIALECTS[target.dialect]).instructions, target.name)
    if client.rules.is_own_file:
        yield Paper(path.replace(NAME, target.name), f"{client.rules.front}{text}\n")
    else:
        yield Paper(path, MarkedFile(marked.MARKDOWN).shown(Part(text=text)) + "\n", is_merged=True)


def _advice(client: Client, target: Target, granted: Granted, ignore: tuple[str, ...]) -> Iterator[str]:
    if ignore:
        yield f"Add {' and '.join(ignore)} to .gitignore: the key is in it."
    elif target.secret == GAP:
        yield f"{client.title} reads no variable here: put the key in place of {GAP}, and keep the file to yourself."
    elif target.secret:
        yield "The key is in this file: keep it to yourself."
    elif client.name == "vscode":
        yield "VS Code asks for the key when it starts the server."
    else:
        yield f"Set {KEY_VARIABLE} to the key in the environment that starts {client.title}."
    if not client.url_key:
        yield f"{client.title} reaches an address through `mcp-remote`, which npx fetches from npm: it needs Node."
    if granted.closed_door:
        yield "The first key closes the open door: requests without a key are refused from now on."
    if granted.transport == "legacy" and target.dialect == "xerotier":
        yield (
            "This server is set to the legacy transport: it answers plain JSON only, streams no progress, and"
            " answers a GET with 405."
        )
    yield f"A new bundle of {client.title} for this bank revokes the key {granted.name}, and no other."
    yield from client.todo


def preview(client: Client, asked: Asked, place: Addressed) -> Bundle:
    """The same before there is a key, to be looked at and saved."""
    name = bundling.key_name(client.name, place.bank)
    return made(client, asked, Granted(**place.model_dump(), name=name, secret=GAP, closed_door=False))
