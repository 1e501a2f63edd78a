"""Bundles: what a client is given to save, with a key of its own, in its own shape."""

import json
import tomllib
from pathlib import Path

import pytest

from keepsake.auth import policy
from keepsake.core.errors import Forbidden
from keepsake.core.principal import DEFAULT_SCOPES, Principal
from keepsake.ops.bundling import Granted
from keepsake.ops.everything import REGISTRY
from keepsake.surfaces import docs
from keepsake.surfaces.connect import bundle, capabilities
from keepsake.surfaces.connect.bundle import Asked, Bundle
from keepsake.surfaces.connect.clients import CLIENTS
from keepsake.tools import catalog
from tests.surfaces.helpers import Terminal, keepsake
from tests.surfaces.homes import EVERY, config, entry, held, home

__all__ = ["home", "keepsake"]
URL = "https://memory.example"
SECRET = "ks_live_" + "a" * 64
GRANTED = Granted(
    name="x@work",
    secret=SECRET,
    closed_door=False,
    bank="work",
    workspace="ws_0a1b",
    project="proj_12",
    transport="streamable",
)
ADDRESS = f"{URL}/proj_12/v1/mcp"
HEADERS = {"Authorization": f"Bearer {SECRET}", "X-Xerotier-Workspace": "ws_0a1b"}
#: As the seed shows them.
SHAPES = {
    "claude-code": (".mcp.json", "mcpServers", {"type": "http", "url": ADDRESS, "headers": HEADERS}),
    "cursor": (".cursor/mcp.json", "mcpServers", {"url": ADDRESS, "headers": HEADERS}),
    "opencode": (
        "opencode.json",
        "mcp",
        {"type": "remote", "url": ADDRESS, "enabled": True, "oauth": False, "timeout": 30000, "headers": HEADERS},
    ),
    "vscode": (".vscode/mcp.json", "servers", {"type": "http", "url": ADDRESS, "headers": HEADERS}),
    "codex": (
        ".codex/config.toml",
        "mcp_servers",
        {
            "url": ADDRESS,
            "enabled": True,
            "startup_timeout_sec": 30,
            "tool_timeout_sec": 60,
            "http_headers": HEADERS,
        },
    ),
}


def made(name: str, dialect: str = "xerotier", inside: bool = True, **granted: object) -> Bundle:
    return bundle.made(CLIENTS[name], Asked(URL, dialect, inside), GRANTED.model_copy(update=granted))


def parsed(told: Bundle) -> dict[str, object]:
    config = told.files[0]
    return tomllib.loads(config.text) if config.path.endswith(".toml") else json.loads(config.text)


@pytest.mark.parametrize("name", SHAPES)
def test_a_bundle_of_xerotier_is_what_its_seed_shows(name: str) -> None:
    told = made(name)

    path, key, server = SHAPES[name]
    assert told.files[0].path == path and told.ignore == (path,)
    assert parsed(told) == {key: {"xerotier": server}}
    assert told.advice[0] == f"Add {path} to .gitignore: the key is in it."


def test_every_client_has_a_bundle_and_none_holds_a_key_unless_asked_to() -> None:
    for name in EVERY:
        for dialect in ("keepsake", "xerotier", "hindsight"):
            without, with_it = made(name, dialect, inside=False), made(name, dialect)

            assert not any(SECRET in paper.text or paper.holds_key for paper in without.files), name
            assert without.ignore == ()
            assert SECRET in with_it.files[0].text and with_it.files[0].holds_key, name
            assert all(SECRET not in line for told in (without, with_it) for line in told.advice)
            variable = "KEEPSAKE_API_KEY" in without.files[0].text or "input:keepsake-key" in without.files[0].text
            assert variable == CLIENTS[name].reads_variables
            assert variable or bundle.GAP in without.files[0].text


def test_the_rules_stand_at_the_clients_own_path_and_name_its_server() -> None:
    rules = {name: made(name).files[1:] for name in EVERY}

    assert {name: paper.path for name, papers in rules.items() for paper in papers} == {
        "claude-code": ".claude/CLAUDE.md",
        "codex": "AGENTS.md",
        "cursor": ".cursor/rules/xerotier.mdc",
        "vscode": ".github/copilot-instructions.md",
        "kiro": ".kiro/steering/xerotier.md",
        "gemini": "GEMINI.md",
        "windsurf": "~/.codeium/windsurf/memories/global_rules.md",
        "devin": "~/.config/devin/AGENTS.md",
        "cline": "~/Documents/Cline/Rules/xerotier.md",
        "opencode": "AGENTS.md",
        "zed": "AGENTS.md",
    }
    assert all("MCP server `xerotier`" in paper.text for papers in rules.values() for paper in papers)
    assert "alwaysApply: true" in rules["cursor"][0].text
    assert catalog.BOUND["keepsake"].instructions in made("cursor", "keepsake").files[1].text


def test_the_default_bundle_names_the_bank_in_a_header() -> None:
    told = parsed(made("cursor", "keepsake", inside=False))

    headers = {"Authorization": "Bearer ${env:KEEPSAKE_API_KEY}", "X-Bank-Id": "work"}
    assert told == {"mcpServers": {"keepsake": {"url": f"{URL}/keepsake/mcp", "headers": headers}}}


def test_a_client_without_addresses_goes_over_a_bridge_with_the_key_in_the_environment() -> None:
    told = parsed(made("claude-desktop"))["mcpServers"]["xerotier"]  # type: ignore[index]  # JSON

    assert told["args"][:3] == ["-y", "mcp-remote", ADDRESS] and SECRET not in str(told["args"])
    assert told["env"] == {"AUTHORIZATION": f"Bearer {SECRET}"}


def test_the_legacy_transport_and_the_closed_door_are_told() -> None:
    told = " ".join(made("cursor", transport="legacy", closed_door=True).advice)

    assert "legacy transport" in told and "closes the open door" in told
    assert "legacy" not in " ".join(made("cursor").advice + made("cursor", "keepsake", transport="legacy").advice)


def test_a_new_key_of_a_client_revokes_its_own_and_no_neighbours(keepsake: Terminal, home: Path) -> None:
    connect = ("--url", "http://127.0.0.1:1", "--dialect", "xerotier", "--bank", "work", "--write", "--json")
    first = keepsake("connect", "cursor", "--tier", "core", *connect).json["key"]
    keepsake("connect", "vscode", "--key", *connect)
    second = keepsake("connect", "cursor", "--tier", "intel", *connect).json["key"]

    keys = keepsake("key", "list", "--json").json["keys"]
    assert sorted((key["name"], key["tier"], key["banks"]) for key in keys) == [
        ("cursor@work", "intel", ["work"]),
        ("vscode@work", "all", ["work"]),
    ]
    assert first["secret"] != second["secret"]
    told = entry(home, "cursor")
    assert str(told["url"]).startswith("http://127.0.0.1:1/proj_") and str(told["url"]).endswith("/v1/mcp")
    workspace = keepsake("bank", "list", "--json").json["banks"][0]["workspace"]
    assert told["headers"] == {
        "Authorization": "Bearer ${env:KEEPSAKE_API_KEY}",
        "X-Xerotier-Workspace": workspace,
    }


def test_a_tier_means_xerotier_and_a_key_of_all_clients_is_no_single_ones(keepsake: Terminal, home: Path) -> None:
    for folder in (".codex", ".cursor"):
        (home / folder).mkdir()
    words = ("--tier", "core", "--url", "http://127.0.0.1:1", "--bank", "work", "--write", "--json")

    every = keepsake("connect", "all", *words).json["key"]
    one = keepsake("connect", "cursor", *words).json["key"]

    assert (every["name"], one["name"]) == ("all@work", "cursor@work")
    assert len(keepsake("key", "list", "--json").json["keys"]) == 2
    assert str(entry(home, "cursor")["url"]).endswith("/v1/mcp")


def test_a_client_that_cannot_be_connected_costs_nobody_a_key(keepsake: Terminal, home: Path) -> None:
    words = ("--key", "--url", "http://127.0.0.1:1", "--bank", "work", "--write")
    keepsake("connect", "cursor", *words)
    (home / ".cursor" / "mcp.json").write_text("{ broken")

    refused = keepsake("connect", "cursor", *words), keepsake("connect", "claude-desktop", *words)

    assert [(one.code, "ks_live_" in one.out) for one in refused] == [(1, False), (1, False)]
    keys = keepsake("key", "list", "--json").json["keys"]
    assert [(key["name"], key["revoked_at"]) for key in keys] == [("cursor@work", None)]


def test_a_key_goes_into_a_file_only_where_no_variable_can_be_named_and_it_was_asked_for(
    keepsake: Terminal, home: Path
) -> None:
    words = ("--url", "http://127.0.0.1:1", "--bank", "work", "--write")
    cursor, zed = keepsake("connect", "cursor", "--key", *words), keepsake("connect", "zed", "--key", *words)

    assert (cursor.code, zed.code) == (0, 0)
    assert [path for path, (text, _) in held(home).items() if b"ks_live_" in text] == [".config/zed/settings.json"]
    assert config(home, "zed").stat().st_mode & 0o777 == 0o600
    assert "keep that to yourself, and out of version control" in zed.out
    keepsake("disconnect", "zed")
    assert not any(b"ks_live_" in text for text, _ in held(home).values())


def test_every_client_is_in_the_table_of_capabilities_and_on_its_page() -> None:
    assert list(capabilities.CAPABLE) == list(CLIENTS)
    page = docs.pages()["clients.md"]
    assert "| Claude Code | yes | yes | yes | no | yes | yes | `/mcp__xerotier__brief` |" in page
    assert all(f"| {client.title} | yes |" in page for client in CLIENTS.values())


def test_only_a_manager_makes_bundles() -> None:
    agent = Principal(org=1, name="agent", scopes=DEFAULT_SCOPES)
    with pytest.raises(Forbidden):
        policy.check_scopes(agent, REGISTRY["client.bundle"])
    assert not policy.may_propose(agent, REGISTRY["client.bundle"])
