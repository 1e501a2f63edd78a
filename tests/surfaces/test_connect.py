"""Connecting clients: in a home of its own, every client, there and back again."""

import tomllib
from pathlib import Path

import pytest

from keepsake.core.errors import Misconfigured
from keepsake.surfaces.connect import files
from tests.surfaces.helpers import Terminal, keepsake, serving
from tests.surfaces.homes import EVERY, before, config, entry, held, home

__all__ = ["home", "keepsake"]


# --- there and back again --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_a_client_is_connected_twice_and_disconnected_without_a_trace(
    keepsake: Terminal, home: Path, name: str
) -> None:
    empty = held(home)

    first = keepsake("connect", name, "--write", "--hooks", "--json")
    once = held(home)
    second = keepsake("connect", name, "--write", "--hooks", "--json")

    assert first.json["clients"][0]["error"] is None
    assert held(home) == once != empty
    assert {file["action"] for file in second.json["clients"][0]["files"]} == {"keep"}
    assert keepsake("disconnect", name).code == 0
    assert held(home) == empty


@pytest.mark.parametrize("name", EVERY)
def test_what_a_user_had_stays_and_is_byte_for_byte_as_it_was_after(keepsake: Terminal, home: Path, name: str) -> None:
    before(home, name)
    own = held(home)

    ran = keepsake("connect", name, "--write", "--hooks", "--json")
    assert ran.json["clients"][0]["error"] is None
    connected = held(home)
    keepsake("connect", name, "--bank", "work", "--write", "--hooks")

    assert keepsake("disconnect", name, "--json").json["clients"][0]["backups"] == []
    assert held(home) == own
    for path, (content, mode) in own.items():
        assert connected[path + files.BACKUP] == (content, mode)
        assert connected[path] != (content, mode) and connected[path][1] == mode


def test_opencode_is_told_not_to_wait_long_for_npm_and_keeps_what_the_user_told_it(
    keepsake: Terminal, home: Path
) -> None:
    file, own = home / ".config/opencode/.npmrc", "registry=https://npm.example/\n"
    file.parent.mkdir(parents=True)
    file.write_text(own)

    keepsake("connect", "opencode", "--write", "--hooks")
    told = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    keepsake("disconnect", "opencode")

    assert told == [own.strip(), "fetch-retries=0", "fetch-timeout=30000"]
    assert file.read_text() == own


@pytest.mark.parametrize("name", EVERY)
def test_without_write_it_is_only_shown(keepsake: Terminal, home: Path, name: str) -> None:
    shown = keepsake("connect", name)

    assert shown.code == 0
    assert str(config(home, name)) in shown.out
    assert "stdio" in shown.out
    assert shown.out.endswith("Nothing is written yet; the same with --write does it.\n")
    assert held(home) == {}


@pytest.mark.parametrize("name", EVERY)
def test_what_others_changed_meanwhile_stays(keepsake: Terminal, home: Path, name: str) -> None:
    before(home, name)
    keepsake("connect", name, "--write")
    path = config(home, name)
    comment = "# later\n" if path.suffix == ".toml" else "\n"
    path.write_text(path.read_text().replace("dark", "light").replace('"x"', '"z"', 1) + comment)

    done = keepsake("disconnect", name, "--json").json["clients"][0]

    text = path.read_text()
    assert "keepsake" not in text and ("light" in text or '"z"' in text) and text.endswith(comment)
    assert done["backups"] == [f"{path}{files.BACKUP}"]
    if path.suffix == ".toml":
        assert tomllib.loads(text) == {"model": "z", "mcp_servers": {"other": {"command": "y"}}}


def test_a_client_never_connected_has_nothing_to_remove(keepsake: Terminal, home: Path) -> None:
    before(home, "claude-code")
    own = held(home)

    ran = keepsake("disconnect", "claude-code")

    assert (ran.code, ran.out) == (0, "Claude Code: nothing of Keepsake's is there.\n")
    assert held(home) == own


def test_every_client_that_is_there_is_connected_by_all(keepsake: Terminal, home: Path) -> None:
    for folder in (".claude", ".codex", ".cursor"):
        (home / folder).mkdir()

    done = keepsake("connect", "all", "--write", "--json").json["clients"]

    assert [one["client"] for one in done] == ["claude-code", "codex", "cursor"]
    assert keepsake("disconnect", "all").code == 0
    assert held(home) == {}
    for folder in (".claude", ".codex", ".cursor"):
        (home / folder).rmdir()
    assert keepsake("connect", "all").code == 2


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['{"mcpServers": ', "[]", '{"mcpServers": []}', "\ufffe{}"])
def test_a_broken_file_stays_as_it_is(keepsake: Terminal, home: Path, text: str) -> None:
    (home / ".claude.json").write_text(text)
    own = held(home)

    ran = keepsake("connect", "claude-code", "--write")

    assert ran.code == 1
    assert f"{home}/.claude.json stays as it is: " in ran.out
    assert "by hand" in ran.out and "Traceback" not in ran.err
    assert held(home) == own


@pytest.mark.parametrize(
    "text", ["a = ", '[mcp_servers.keepsake]\ncommand = "mine"\n', 'mcp_servers = { a = { command = "x" } }\n']
)
def test_a_toml_that_cannot_take_it_stays_as_it_is(keepsake: Terminal, home: Path, text: str) -> None:
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text(text)
    own = held(home)

    ran = keepsake("connect", "codex", "--write")

    assert ran.code == 1 and "config.toml stays as it is" in ran.out
    assert held(home) == own


def test_an_empty_file_is_as_good_as_none(keepsake: Terminal, home: Path) -> None:
    (home / ".claude.json").write_text("")

    assert keepsake("connect", "claude-code", "--write").code == 0
    assert entry(home, "claude-code")["type"] == "stdio"
    keepsake("disconnect", "claude-code")
    assert (home / ".claude.json").read_bytes() == b""


def test_bytes_that_are_no_text_stay_as_they_are(keepsake: Terminal, home: Path) -> None:
    (home / ".claude.json").write_bytes(b'{"a": "\xff"}')

    assert "is not UTF-8 text" in keepsake("connect", "claude-code", "--write").out
    assert (home / ".claude.json").read_bytes() == b'{"a": "\xff"}'


def test_a_link_within_the_home_is_followed_and_stays_a_link(keepsake: Terminal, home: Path) -> None:
    (home / "dotfiles").mkdir()
    (home / "dotfiles/claude.json").write_text("{}")
    (home / ".claude.json").symlink_to(home / "dotfiles/claude.json")

    keepsake("connect", "claude-code", "--write")

    assert (home / ".claude.json").is_symlink()
    assert "keepsake" in (home / "dotfiles/claude.json").read_text()


def test_a_link_out_of_the_home_is_not_followed(keepsake: Terminal, home: Path, tmp_path: Path) -> None:
    (tmp_path / "shared.json").write_text("{}")
    (home / ".claude.json").symlink_to(tmp_path / "shared.json")

    ran = keepsake("connect", "claude-code", "--write")

    assert ran.code == 1 and f"leads to {tmp_path}/shared.json" in ran.out
    assert (tmp_path / "shared.json").read_text() == "{}"


def test_a_program_that_is_not_ours_is_left_alone(keepsake: Terminal, home: Path) -> None:
    hooks = home / "Documents/Cline/Hooks"
    hooks.mkdir(parents=True)
    (hooks / "PostToolUse").write_text("#!/bin/sh\nmine\n")

    ran = keepsake("connect", "cline", "--hooks", "--write")

    assert ran.code == 1 and "not from Keepsake" in ran.out
    assert (hooks / "PostToolUse").read_text() == "#!/bin/sh\nmine\n"
    assert keepsake("disconnect", "cline").code == 0


def test_a_folder_that_cannot_be_written_is_told(keepsake: Terminal, home: Path) -> None:
    (home / ".cursor").write_text("a file where a folder should be")

    ran = keepsake("connect", "cursor", "--write")

    assert ran.code == 1 and "Cannot " in ran.out


@pytest.mark.parametrize(
    "words",
    [
        "connect nobody",
        "connect",
        "connect cursor --dialect klingon",
        "connect cursor --bank a/b",
        "connect cursor --url x",
    ],
)
def test_wrong_usage_is_told_and_touches_nothing(keepsake: Terminal, home: Path, words: str) -> None:
    assert keepsake(*words.split()).code == 2
    assert held(home) == {}


# --- keys ------------------------------------------------------------------------------------------------------------


def test_a_key_is_made_when_asked_and_no_file_holds_it(keepsake: Terminal, home: Path) -> None:
    first = keepsake("connect", "claude-code", "--bank", "work", "--key", "--write", "--json").json["key"]
    second = keepsake("connect", "claude-code", "--bank", "work", "--key", "--write")

    assert first["name"] == "claude-code@work" and first["closed_door"] is True
    assert "export KEEPSAKE_API_KEY=ks_live_" in second.out and first["secret"] not in second.out
    keys = keepsake("key", "list", "--json").json["keys"]
    assert [(key["name"], key["banks"]) for key in keys] == [("claude-code@work", ["work"])]
    assert not any(b"ks_live_" in content for content, _ in held(home).values())


def test_a_key_is_not_made_before_anything_is_written(keepsake: Terminal, home: Path) -> None:
    ran = keepsake("connect", "claude-code", "--key")

    assert "A key is made with --write" in ran.out
    assert keepsake("key", "list", "--json").json["keys"] == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("claude-code", '"Authorization": "Bearer ${KEEPSAKE_API_KEY}"'),
        ("cursor", '"Authorization": "Bearer ${env:KEEPSAKE_API_KEY}"'),
        ("opencode", '"Authorization": "Bearer {env:KEEPSAKE_API_KEY}"'),
        ("vscode", '"Authorization": "Bearer ${input:keepsake-key}"'),
        ("codex", 'bearer_token_env_var = "KEEPSAKE_API_KEY"'),
    ],
)
def test_a_server_that_asks_for_a_key_gets_one_by_reference(
    keepsake: Terminal, home: Path, name: str, told: str
) -> None:
    keepsake("key", "create", "--name", "owner")
    with serving(keepsake.folder, KEEPSAKE_PORT=0) as server:
        ran = keepsake("connect", name, "--url", server.url, "--write")

    assert "ks_live_" in ran.out
    assert told in config(home, name).read_text()
    keepsake("disconnect", name)
    assert held(home) == {}


def test_a_server_that_the_user_had_under_our_name_comes_back(keepsake: Terminal, home: Path) -> None:
    own = '{"mcpServers": {"keepsake": {"command": "mine"}, "b": {}}}'
    (home / ".claude.json").write_text(own)

    keepsake("connect", "claude-code", "--write")
    keepsake("connect", "claude-code", "--bank", "work", "--write")

    assert entry(home, "claude-code")["type"] == "stdio"
    keepsake("disconnect", "claude-code")
    assert (home / ".claude.json").read_text() == own


def test_a_file_that_another_program_changed_meanwhile_is_not_overwritten(home: Path) -> None:
    (home / "a.json").write_text("{}")
    read = files.read(home / "a.json", home)
    (home / "a.json").write_text('{"theirs": 1}')

    with pytest.raises(Misconfigured, match="changed by another program"):
        files.write(read, "{ours}", 0o600)

    assert [path.name for path in home.iterdir()] == ["a.json"]
    assert (home / "a.json").read_text() == '{"theirs": 1}'


def test_the_address_of_a_database_stays_out_of_files(keepsake: Terminal, home: Path) -> None:
    keepsake.set(KEEPSAKE_DATABASE_URL="postgresql://me:pa55@db/keepsake")

    ran = keepsake("connect", "claude-code", "--hooks", "--write")

    assert "Set KEEPSAKE_DATABASE_URL in the environment that starts Claude Code." in ran.out
    assert "pa55" not in ran.out and not any(b"pa55" in content for content, _ in held(home).values())
