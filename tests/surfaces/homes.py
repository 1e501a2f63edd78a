"""A home of its own for someone who connects clients."""

import json
import stat
import tomllib
from pathlib import Path

import pytest

from keepsake.surfaces.connect import clients

EVERY = list(clients.CLIENTS)
HOOKED = [name for name, client in clients.CLIENTS.items() if client.hooks is not None]
#: What a user may have had before, in the odd form that users have.
JSON = '{\n\t"theme":"dark",   "mcpServers": {"other": {"command": "x", "env": {"TOKEN": "s3cret"}}},\n\t"n": 1e3\n}'
JSONC = '// mine\n{\n  "theme": "dark", // a comment\n  /* "mcpServers": {} */\n  "list": [1, 2,],\n}\n'
TOML = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y"'
MARKDOWN = "# My rules\n\n- Be brief.\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has nothing yet."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder)
    return folder


def held(home: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of a home, with its mode."""
    found = [path for path in home.rglob("*") if path.is_file()]
    return {str(path.relative_to(home)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) for path in found}


def before(home: Path, name: str) -> None:
    """Let a user have files of their own where ours are to go."""
    place, client = clients.Place(home), clients.CLIENTS[name]
    config, hooks, rules = place.config(client), place.hooks(client), place.rules(client)
    assert config is not None
    wanted = {config: TOML if config.suffix == ".toml" else JSONC if name == "zed" else JSON}
    if client.hooks is not None and hooks is not None and not client.hooks.is_own_file and hooks != config:
        wanted[hooks] = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}], "stop": []}}\n'
    if rules is not None and not client.rules.is_own_file:
        wanted[rules] = MARKDOWN
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(0o640)


def config(home: Path, name: str) -> Path:
    path = clients.Place(home).config(clients.CLIENTS[name])
    assert path is not None
    return path


def entry(home: Path, name: str) -> dict[str, object]:
    """The server as the client's own file has it."""
    path, client = config(home, name), clients.CLIENTS[name]
    text = path.read_text()
    told = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    found: dict[str, object] = told[client.key]["keepsake"]
    return found
