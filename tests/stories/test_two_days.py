"""Two days, two projects, three clients: what one agent did is known to the next, and projects never mix."""

import json
from pathlib import Path
from typing import Any

import httpx

from tests.hooks.replaying import recorded, repository_at
from tests.hooks.running import ran, start
from tests.stories.processes import Stdio, serving
from tests.surfaces.serving import until

Json = dict[str, Any]


def post(url: str, client: str, told: Json) -> str:
    """What a client's hook is answered over HTTP."""
    answer = httpx.post(f"{url}/hooks/{client}", json=told, timeout=30)
    answer.raise_for_status()
    return answer.text


def injected(answer: str) -> str:
    """The text that Claude Code or Codex would put before its agent."""
    return str(json.loads(answer)["hookSpecificOutput"]["additionalContext"]) if answer else ""


def kiro(url: str, tool: str, **arguments: object) -> Json:
    """A tool of the kiro dialect over HTTP."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    reply = httpx.post(f"{url}/kiro/mcp", json=body, headers={"Accept": "application/json"}, timeout=30).json()
    assert reply["result"]["isError"] is False, reply
    found: Json = reply["result"]["structuredContent"]
    return found


def test_two_days_two_projects_three_clients(tmp_path: Path) -> None:
    data = tmp_path / "data"
    api = repository_at(tmp_path / "one" / "my-api")
    fork = repository_at(tmp_path / "two" / "my-api", "git@github.com:other/my-api.git")

    # Day one: Claude Code works on the API through the command, with no server anywhere.
    for _, given in recorded("claude-code", api):
        assert ran(data, "claude-code", given).returncode == 0

    # Someone opens the other project, of the same name, in Cursor; a server runs by now.
    with serving(data) as server:
        for _, given in recorded("cursor", fork):
            told = json.loads(json.dumps(given).replace("JWT", "OAuth"))
            post(server.url, "cursor", told)
        until(lambda: "JWT" in injected(post(server.url, "codex", {**start(api), "source": "startup"})), 60)
        until(lambda: "OAuth" in injected(post(server.url, "codex", {**start(fork), "source": "startup"})), 60)

    # Day two: Codex begins in each; nobody told it anything.
    with serving(data) as server:
        morning = injected(post(server.url, "codex", {**start(api), "session_id": "day-2"}))
        elsewhere = injected(post(server.url, "codex", {**start(fork), "session_id": "day-2-fork"}))
        for known in (
            "We decided to use JWT for API authentication.",
            "Never commit directly to main.",
            "Add refresh tokens",
            "The problem was that the router skipped the middleware.",
        ):
            assert known in morning
        assert "OAuth" not in morning and "JWT" not in elsewhere
        assert "We decided to use OAuth for API authentication." in elsewhere
        assert len(morning.encode()) <= 8_000

        # It works on the same file: what was seen yesterday is stale now.
        base = {**start(api), "session_id": "day-2", "hook_event_name": "PostToolUse"}
        edit = {"file_path": str(api / "src" / "auth.ts"), "old_string": "a\nb", "new_string": "c"}
        post(server.url, "codex", {**base, "tool_name": "Edit", "tool_input": edit, "tool_use_id": "day-2-1"})
        until(lambda: len(_writes(kiro(server.url, "search", query="auth.ts", project="my-api"))) == 2)
        writes = _writes(kiro(server.url, "search", query="auth.ts", project="my-api"))
        assert sorted((one["created_at_epoch"], one["is_stale"]) for one in writes)[0][1] == 1
        assert sorted((one["created_at_epoch"], one["is_stale"]) for one in writes)[1][1] == 0

    # In the evening Kiro asks over stdio.
    client = Stdio(data, "--dialect", "kiro")
    pack = client.call("get_context", {"project": "my-api"})
    summaries = client.call("search", {"query": "refresh tokens", "project": "my-api"})["summaries"]
    assert client.end() is not None

    assert {item["type"] for item in pack["items"][:2]} == {"decision", "constraint"}
    assert "OAuth" not in json.dumps(pack)
    assert summaries[0]["session_id"] == recorded("claude-code", api)[0][1]["session_id"]
    assert summaries[0]["next_steps"].startswith("Add refresh tokens")


def _writes(found: Json) -> list[Json]:
    return [one for one in found["observations"] if one["type"] == "file-write"]
