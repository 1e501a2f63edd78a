"""The plugin for Claude Code is what the table of clients makes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from keepsake.surfaces.connect import plugin
from keepsake.surfaces.connect.clients import CLIENTS

ROOT = Path(__file__).parents[2]
CLAUDE = ROOT / ".cache/clients/node_modules/@anthropic-ai/claude-code-linux-x64/claude"


def test_the_plugin_is_what_the_table_makes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "keepsake.surfaces.connect.plugin", str(tmp_path)], check=True, cwd=ROOT)

    made = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    folders = [ROOT / ".claude-plugin", ROOT / plugin.FOLDER]
    written = [path for folder in folders for path in folder.rglob("*") if path.is_file()]

    assert {str(path.relative_to(ROOT)): path.read_text() for path in written} == made, "run `make plugin`"


def test_it_hooks_every_event_of_the_table_with_a_command_from_the_path() -> None:
    hooks = json.loads(plugin.made()[f"{plugin.FOLDER}/hooks/hooks.json"])["hooks"]
    table = CLIENTS["claude-code"].hooks

    assert table is not None
    assert {name: items[0]["hooks"][0]["args"][1] for name, items in hooks.items()} == dict(table.events)
    assert {items[0]["hooks"][0]["command"] for items in hooks.values()} == {"keepsake"}


def test_its_server_reaches_the_bank_that_its_hooks_write_to() -> None:
    server = json.loads(plugin.made()[f"{plugin.FOLDER}/.mcp.json"])["mcpServers"]["keepsake"]

    assert server["args"] == ["stdio", "--bank", "."]


@pytest.mark.skipif(not CLAUDE.exists(), reason="`make clients` installs Claude Code")
@pytest.mark.parametrize("folder", [".", plugin.FOLDER])
def test_claude_code_accepts_it(folder: str, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1"}

    ran = subprocess.run(
        [CLAUDE, "plugin", "validate", "--strict", folder],
        check=False,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
