"""Shapes that no client sends, and those that only some do."""

import random
from pathlib import Path

import pytest

from keepsake.core import clock, envelope, observation, stated
from keepsake.hooks import clients
from tests.hooks.replaying import client_of, folders, recorded

ODD: tuple[object, ...] = (
    *(None, True, 0, -1, 1.5, 1e308, "", "x", "\x00\ud800", "9" * 30, "<private>", [], {}, ["a"] * 100),
    *([1, "a", {"b": [None]}], {"a": {"b": {"c": [1, {"d": "e"}]}}}, {"path": ["x"]}),
    "*** Begin Patch\n*** Update File: \n+",
)


def spoiled(value: object, dice: random.Random) -> object:
    """A value with parts of it lost or exchanged."""
    if dice.random() < 0.15:
        return dice.choice(ODD)
    if isinstance(value, dict):
        return {key: spoiled(part, dice) for key, part in value.items() if dice.random() > 0.05}
    return [spoiled(part, dice) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("folder", folders())
def test_whatever_a_client_sends_is_read_or_left(folder: str, tmp_path: Path) -> None:
    dice = random.Random(7)
    told = recorded(folder, tmp_path)
    read = 0
    for _ in range(200):
        given = spoiled(dice.choice(told)[1], dice)
        if not isinstance(given, dict):
            continue
        for one in clients.read(client_of(folder), "tool", given, clock.now(), str(tmp_path)):
            again = clients.cleaned(envelope.unpacked(envelope.packed(one)))
            observation.observed([again], str(tmp_path))
            stated.found(again.text)
            read += 1

    assert read > 20


@pytest.mark.parametrize(
    ("given", "sender"),
    [
        ({"permission_mode": "default", "timestamp": "2026-01-01T00:00:00Z"}, "claude-code"),
        ({"timestamp": "2026-01-01T00:00:00Z"}, "vscode"),
        ({"conversation_id": "c", "cursor_version": "2"}, "cursor"),
        ({"session_id": "s"}, "claude-code"),
    ],
)
def test_who_runs_the_hooks_of_claude_code_is_seen(given: dict[str, object], sender: str) -> None:
    assert clients.sender("claude-code", given) == sender


@pytest.mark.parametrize("name", ["mcp__keepsake__recall", "keepsake_recall", "@keepsake/search", "mcp_keepsake_get"])
def test_our_own_tools_are_not_captured(name: str, tmp_path: Path) -> None:
    given = {"hook_event_name": "PostToolUse", "cwd": str(tmp_path), "tool_name": name, "tool_input": {}}

    assert clients.read("claude-code", "", given, clock.now()) == []


def test_our_own_commands_are_not_captured(tmp_path: Path) -> None:
    used = {"tool_name": "Bash", "tool_input": {"command": "keepsake call recall --query x"}}

    assert clients.read("claude-code", "tool", {"cwd": str(tmp_path), **used}, clock.now()) == []
