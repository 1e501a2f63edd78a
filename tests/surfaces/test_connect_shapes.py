"""What connect writes, in each client's own shape."""

import json
import os
from pathlib import Path

import pytest

from keepsake.surfaces.connect import clients, entries
from keepsake.tools import catalog
from tests.surfaces.helpers import Terminal, keepsake
from tests.surfaces.homes import EVERY, MARKDOWN, entry, held, home

__all__ = ["home", "keepsake"]


def test_each_client_starts_the_server_by_its_whole_path(keepsake: Terminal, home: Path) -> None:
    for name in EVERY:
        keepsake("connect", name, "--bank", "work", "--write")
        told = entry(home, name)
        words = told["command"] if name == "opencode" else [told["command"], *told["args"]]  # type: ignore[misc]  # JSON
        assert isinstance(words, list)
        assert os.access(words[0], os.X_OK) and os.path.isabs(words[0])
        assert words[1:] == ["stdio", "--bank", "work", "--data-dir", str(keepsake.folder)]


def test_clients_that_start_servers_in_a_project_reach_its_bank(keepsake: Terminal, home: Path) -> None:
    reached = {}
    for name in EVERY:
        keepsake("connect", name, "--hooks", "--write")
        told = entry(home, name)
        words = told["command"] if name == "opencode" else told["args"]
        assert isinstance(words, list)
        reached[name] = words[words.index("--bank") + 1] if "--bank" in words else "default"
    hooks = [text for path, (text, _) in held(home).items() if "hook" in path.lower() or "plugins" in path]

    assert [name for name, bank in reached.items() if bank == "."] == [
        "claude-code",
        "codex",
        "cursor",
        "vscode",
        "kiro",
        "gemini",
        "opencode",
    ]
    assert {bank for name, bank in reached.items() if bank != "."} == {"default"}
    # Hooks find their project by themselves.
    assert hooks and not any(b"--bank" in text for text in hooks)


def test_a_client_of_one_bank_is_told_no_banks_to_name(keepsake: Terminal, home: Path) -> None:
    keepsake("connect", "claude-code", "--write")
    bound = (home / ".claude/CLAUDE.md").read_text()
    keepsake("connect", "claude-code", "--url", "http://127.0.0.1:1", "--write")

    assert catalog.BOUND["keepsake"].instructions in bound and "names the banks" not in bound
    assert catalog.DIALECTS["keepsake"].instructions in (home / ".claude/CLAUDE.md").read_text()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("claude-code", {"type": "http", "url": "URL"}),
        ("codex", {"url": "URL", "startup_timeout_sec": 30}),
        ("cursor", {"url": "URL"}),
        ("vscode", {"type": "http", "url": "URL"}),
        ("kiro", {"disabled": False, "url": "URL"}),
        ("gemini", {"httpUrl": "URL"}),
        ("windsurf", {"serverUrl": "URL"}),
        ("devin", {"transport": "http", "url": "URL"}),
        ("cline", {"type": "streamableHttp", "disabled": False, "url": "URL"}),
        ("opencode", {"type": "remote", "enabled": True, "timeout": 30_000, "oauth": False, "url": "URL"}),
        ("zed", {"url": "URL"}),
    ],
)
def test_each_client_finds_a_server_by_its_own_words(
    keepsake: Terminal, home: Path, name: str, told: dict[str, object]
) -> None:
    keepsake("connect", name, "--url", "http://127.0.0.1:1/", "--dialect", "hindsight", "--bank", "a b", "--write")

    address = "http://127.0.0.1:1/mcp/a%20b/"
    assert entry(home, name) == {key: address if value == "URL" else value for key, value in told.items()}


def test_a_client_without_addresses_says_so(keepsake: Terminal, home: Path) -> None:
    ran = keepsake("connect", "claude-desktop", "--url", "http://127.0.0.1:1", "--write")

    assert ran.code == 1 and "starts its servers itself" in ran.out
    assert held(home) == {}


def test_claude_codes_hooks_need_no_shell_and_hold_nobody_up(keepsake: Terminal, home: Path) -> None:
    keepsake("connect", "claude-code", "--hooks", "--write")

    hooks = json.loads((home / ".claude/settings.json").read_text())["hooks"]

    start, tool = hooks["SessionStart"][0]["hooks"][0], hooks["PostToolUse"][0]["hooks"][0]
    options = ["--client", "claude-code", "--data-dir", str(keepsake.folder)]
    assert start["args"] == ["hook", "session-start", *options]
    assert "async" not in start and tool["async"] is True
    assert hooks["PostToolUse"][0]["matcher"] == "*"
    assert set(hooks) == set(clients.CLIENTS["claude-code"].hooks.events)  # type: ignore[union-attr]  # it has hooks


def test_codex_must_be_told_to_trust_its_hooks(keepsake: Terminal, home: Path) -> None:
    assert "Run `/hooks` in Codex and trust the new hooks" in keepsake("connect", "codex", "--hooks", "--write").out
    assert "/hooks" not in keepsake("connect", "codex", "--write").out


def test_connecting_again_without_hooks_leaves_the_hooks(keepsake: Terminal, home: Path) -> None:
    keepsake("connect", "gemini", "--hooks", "--write")
    with_hooks = (home / ".gemini/settings.json").read_text()
    keepsake("connect", "gemini", "--write")

    assert (home / ".gemini/settings.json").read_text() == with_hooks
    assert json.loads(with_hooks)["hooks"]["AfterTool"][0]["hooks"][0]["timeout"] == 10_000


def test_a_project_gets_its_own_files_only_when_asked(keepsake: Terminal, home: Path) -> None:
    project = home / "src"
    project.mkdir()
    os.chdir(project)
    (project / "CLAUDE.md").write_text(MARKDOWN)
    own = held(project)

    keepsake("connect", "claude-code", "--hooks", "--project", "--write")

    assert set(held(project)) == {".mcp.json", ".claude/settings.json", "CLAUDE.md"}
    assert keepsake("disconnect", "claude-code", "--project").code == 0
    assert held(project) == own
    assert "reads no servers from a project" in keepsake("connect", "windsurf", "--project").out


def test_cline_runs_programs_of_ours(keepsake: Terminal, home: Path) -> None:
    keepsake("connect", "cline", "--hooks", "--write")

    script = home / "Documents/Cline/Hooks/PostToolUse"
    assert script.stat().st_mode & 0o777 == 0o700
    assert (
        script.read_text().splitlines()[-1].endswith(f"keepsake hook tool --client cline --data-dir {keepsake.folder}")
    )


def test_opencodes_plugin_runs_our_command_for_our_bank(keepsake: Terminal, home: Path) -> None:
    keepsake("connect", "opencode", "--hooks", "--bank", "work", "--write")

    words = [entries.command()[0], "hook", "--bank", "work", "--data-dir", str(keepsake.folder)]
    assert f"const COMMAND = {json.dumps(words)}\n" in (home / ".config/opencode/plugins/keepsake.js").read_text()


@pytest.mark.parametrize("name", EVERY)
def test_the_guide_names_every_client_and_its_file(name: str) -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/connect.md").read_text()
    client = clients.CLIENTS[name]
    place = clients.Place(Path("~"), environment={}, platform="linux")

    rows = [line for line in guide.splitlines() if line.startswith(f"| `{name}` | {client.title} |")]

    assert len(rows) == 1
    assert all(f"`{place.at(file)}`" in rows[0] for file in client.files)
    assert rows[0].split(" | ")[4] == ("project's" if client.is_in_project else "all")
    assert client.hooks is None or f"`{place.at(client.hooks.file)}`" in rows[0]
    assert not client.rules.file or f"`{place.at(client.rules.file)}`" in rows[0]


@pytest.mark.parametrize(
    ("platform", "path"),
    [
        ("darwin", "/h/Library/Application Support/Claude/claude_desktop_config.json"),
        ("win32", "/r/Claude/claude_desktop_config.json"),
        ("linux", "/h/.config/Claude/claude_desktop_config.json"),
    ],
)
def test_files_are_where_the_system_has_them(platform: str, path: str) -> None:
    place = clients.Place(Path("/h"), environment={"APPDATA": "/r"}, platform=platform)

    assert place.config(clients.CLIENTS["claude-desktop"]) == Path(path)


def test_variables_of_the_clients_move_their_files() -> None:
    moved = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "XDG_CONFIG_HOME": "/g"}
    place = clients.Place(Path("/h"), environment=moved, platform="linux")

    assert [place.config(clients.CLIENTS[name]) for name in ("claude-code", "codex", "opencode")] == [
        Path("/c/.claude.json"),
        Path("/x/config.toml"),
        Path("/g/opencode/opencode.json"),
    ]
