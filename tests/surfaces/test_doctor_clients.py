"""The doctor looks at each connected client, from its file to the answer of its server."""

import json
from pathlib import Path

import pytest

from keepsake.surfaces.connect import clients, entries
from tests.surfaces.helpers import Terminal, keepsake, serving
from tests.surfaces.homes import EVERY, config, home

__all__ = ["home", "keepsake"]


def found(keepsake: Terminal) -> dict[str, tuple[str, str, str]]:
    """What the doctor finds about clients."""
    findings = json.loads(keepsake("doctor", "--json").out)["findings"]
    names = {*EVERY, *(f"{name} hooks" for name in EVERY), "codex trust", "claude-code twice"}
    return {one["check"]: (one["level"], one["found"], one["mend"]) for one in findings if one["check"] in names}


def test_a_user_without_clients_hears_nothing_of_them(keepsake: Terminal, home: Path) -> None:
    (home / ".claude.json").write_text("{broken")

    assert found(keepsake) == {}


def test_each_connected_client_is_asked_from_its_file_to_its_tools(keepsake: Terminal, home: Path) -> None:
    names = ("claude-code", "codex", "opencode")
    for name in names:
        keepsake("connect", name, "--write", "--bank", "work")

    told = found(keepsake)

    words = f"{entries.command()[0]} stdio --bank work --data-dir {keepsake.folder}"
    assert told == dict.fromkeys(names, ("ok", f"`{words}` starts and lists 10 tools", ""))


@pytest.mark.parametrize("name", [name for name, client in clients.CLIENTS.items() if client.hooks is not None])
def test_hooks_are_run_with_an_event_that_nobody_keeps(keepsake: Terminal, home: Path, name: str) -> None:
    keepsake("connect", name, "--write", "--hooks")
    before = keepsake("status", "--json").json

    level, text, _ = found(keepsake)[f"{name} hooks"]

    hooks = clients.CLIENTS[name].hooks
    assert hooks is not None
    assert (level, text) == ("ok", f"{len(hooks.events) or 1} found, and all run")
    assert keepsake("status", "--json").json["memories"] == before["memories"]
    assert not (keepsake.folder / "hook.log").exists()


def test_a_program_that_is_gone_is_a_problem(keepsake: Terminal, home: Path) -> None:
    keepsake("connect", "cursor", "--write", "--hooks")
    for file in (config(home, "cursor"), home / ".cursor/hooks.json"):
        file.write_text(file.read_text().replace(entries.command()[0], "/gone/keepsake"))

    told = found(keepsake)

    assert told["cursor"][:2] == ("problem", "/gone/keepsake is no program that can be run.")
    assert told["cursor hooks"][:2] == ("problem", "/gone/keepsake is no program that can be run.")
    assert told["cursor"][2] == "`keepsake connect cursor --write` writes it anew."


def test_a_server_that_does_not_start_is_a_problem(keepsake: Terminal, home: Path) -> None:
    keepsake("connect", "cursor", "--write")
    file = config(home, "cursor")
    file.write_text(file.read_text().replace('"stdio"', '"stdio", "--dialect", "klingon"'))

    level, text, _ = found(keepsake)["cursor"]

    assert level == "problem" and "There is no dialect 'klingon'" in text


def test_a_file_that_broke_after_connecting_is_a_problem(keepsake: Terminal, home: Path) -> None:
    keepsake("connect", "cursor", "--write")
    config(home, "cursor").write_text('{"mcpServers": {"keepsake": ')

    level, text, _ = found(keepsake)["cursor"]

    assert level == "problem" and "line 1 is not JSON" in text


def test_hooks_that_are_missing_are_told(keepsake: Terminal, home: Path) -> None:
    keepsake("connect", "gemini", "--write", "--hooks")
    told = json.loads(config(home, "gemini").read_text())
    del told["hooks"]["AfterTool"]
    config(home, "gemini").write_text(json.dumps(told))

    assert found(keepsake)["gemini hooks"][:2] == ("note", "AfterTool is not hooked.")


def test_codex_is_reminded_of_until_its_hooks_are_trusted(keepsake: Terminal, home: Path) -> None:
    keepsake("connect", "codex", "--write", "--hooks")
    before = found(keepsake)
    with config(home, "codex").open("a") as file:
        for event in ("session_start", "user_prompt_submit", "post_tool_use", "stop", "session_end"):
            file.write(f'\n[hooks.state."{home}/.codex/hooks.json:{event}:0:0"]\ntrusted_hash = "sha256:x"\n')

    assert before["codex trust"][0] == "note" and "`/hooks`" in before["codex trust"][2]
    assert "codex trust" not in found(keepsake)


def test_a_plugin_beside_the_configuration_is_one_too_many(keepsake: Terminal, home: Path) -> None:
    keepsake("connect", "claude-code", "--write")
    (home / ".claude/plugins").mkdir(parents=True)
    (home / ".claude/plugins/installed_plugins.json").write_text('{"version": 2, "plugins": {"keepsake@keepsake": []}}')

    assert found(keepsake)["claude-code twice"][0] == "note"


def test_a_server_elsewhere_is_asked_at_the_clients_address(keepsake: Terminal, home: Path) -> None:
    with serving(keepsake.folder, KEEPSAKE_PORT=0) as server:
        keepsake("connect", "cursor", "--write", "--url", server.url)
        alive = found(keepsake)["cursor"]
    dead = found(keepsake)["cursor"]

    assert alive == ("ok", f"{server.url}/keepsake/mcp answers and lists 10 tools", "")
    assert dead[0] == "problem" and f"Nothing answers at {server.url}/keepsake/mcp" in dead[1]
