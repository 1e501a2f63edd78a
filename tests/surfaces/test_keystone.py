"""The keystone dialect over the real wires: exactly four tools, bare lists, Markdown, and who may see what."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from keepsake import context, settings
from keepsake.core import clock
from tests.ops.projecting import Chunk, project
from tests.surfaces import serving
from tests.surfaces.serving import Client, Pipe, called, initialize, messages, notification, request

TOOLS = ["list_projects", "ask", "search_memory", "get_project_status"]
TOKENS = Chunk("Issue short-lived access tokens at login, and rotate the refresh token on every use.", "9f" * 20)
SENDS = Chunk("The worker sends its access token with every request to the API.", "8e" * 20)
QUERY = "how are access tokens issued at login?"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_projects", {}),
    ("search_memory", {"projectSlugs": ["my-api"], "query": QUERY}),
    ("search_memory", {"projectSlugs": ["my-api", "my-worker"], "query": QUERY}),
    ("search_memory", {"projectSlugs": ["my-worker"], "query": "volcanoes of Iceland"}),
    ("get_project_status", {"projectSlug": "my-api"}),
    ("get_project_status", {"projectSlug": "empty"}),
]
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("ask", {"projectSlugs": ["nope"], "question": QUERY}, "'nope'"),
    ("ask", {"projectSlugs": ["my-api", "nope"], "question": QUERY}, "'nope'"),
    ("ask", {"projectSlugs": ["my-api"], "question": " "}, "question"),
    ("ask", {"projectSlugs": [], "question": QUERY}, "projectSlugs"),
    ("search_memory", {"projectSlugs": ["my-api", "nope"], "query": QUERY}, "'nope'"),
    ("search_memory", {"projectSlugs": [], "query": QUERY}, "projectSlugs"),
    ("search_memory", {"projectSlugs": ["my-api"], "query": ""}, "query"),
    ("get_project_status", {"projectSlug": "nope"}, "'nope'"),
    ("get_project_status", {}, "projectSlug"),
    ("list_projects", {"project": "my-api"}, "project"),
]


def fill(folder: Path) -> None:
    async def filled() -> None:
        async with context.open(settings.load({}, data_dir=folder)) as app:
            done: dict[str, Any] = {"completed": 1, "last_synced_at": clock.now(), "synthesis": "completed"}
            await project(app, "my-api", TOKENS, title="My API", full_name="org/my-api", **done)
            await project(app, "my-worker", SENDS, full_name="org/my-worker", **done)
            await project(app, "empty")

    asyncio.run(filled())


@pytest.fixture(scope="module")
def filled(folder: Path) -> Path:
    """The module's store with three projects."""
    fill(folder)
    return folder


@pytest.fixture
def keystone(filled: Path, address: str) -> Client:
    return Client(f"{address}/api/mcp")


@pytest.fixture(scope="module")
def pipe(filled: Path) -> Iterator[Pipe]:
    with serving.piped(filled, "-m", "keepsake", "stdio", "--dialect", "keystone") as pipe:
        pipe.ask(initialize("2025-03-26"))
        pipe.send(notification("notifications/initialized"))
        yield pipe


def test_both_wires_list_exactly_four_reading_tools(keystone: Client, pipe: Pipe) -> None:
    over_http = keystone.post(request("tools/list"), Accept="application/json").json()["result"]["tools"]
    over_stdio = pipe.ask(request("tools/list"))["result"]["tools"]

    assert [tool["name"] for tool in over_http] == TOOLS
    assert over_http == over_stdio
    assert {tool["annotations"]["readOnlyHint"] for tool in over_http} == {True}
    assert [tool["name"] for tool in over_http if "outputSchema" not in tool] == ["ask"]


def test_the_handshake_is_the_one_of_the_seed(keystone: Client) -> None:
    params = {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "claude-code", "version": "1.0"},
    }
    begun = keystone.post(request("initialize", params), Accept="application/json")
    told = begun.json()["result"]
    answer = keystone.post(notification("notifications/initialized"), Mcp_Session_Id=begun.headers["mcp-session-id"])

    assert (told["protocolVersion"], told["serverInfo"]["name"]) == ("2025-03-26", "keystone")
    assert "tools" in told["capabilities"]
    assert [name for name in TOOLS if f"`{name}`" not in told["instructions"]] == []
    assert (answer.status_code, answer.content) == (202, b"")


def test_results_are_the_same_on_both_wires_and_fit_their_schemas(keystone: Client, pipe: Pipe) -> None:
    schemas = {tool["name"]: tool.get("outputSchema") for tool in pipe.ask(request("tools/list"))["result"]["tools"]}

    for tool, arguments in CALLS:
        result = keystone.call(tool, arguments)["result"]
        structure, text = result["structuredContent"], json.loads(result["content"][0]["text"])

        Draft202012Validator(schemas[tool]).validate(structure)
        assert structure == ({"result": text} if isinstance(text, list) else text)
        assert isinstance(text, list) == (tool != "get_project_status")
        assert pipe.ask(called(tool, arguments))["result"] == result


def test_an_answer_is_markdown_and_nothing_else(keystone: Client, pipe: Pipe) -> None:
    arguments = {"projectSlugs": ["my-api"], "question": QUERY}

    for result in (keystone.call("ask", arguments)["result"], pipe.ask(called("ask", arguments))["result"]):
        assert "structuredContent" not in result
        assert [part["type"] for part in result["content"]] == ["text"]
        assert TOKENS.key[:7] in result["content"][0]["text"]


def test_a_session_of_a_2025_client_can_call(keystone: Client) -> None:
    answer = messages(keystone.session("2025-03-26").post(called("list_projects")))[-1]["result"]

    assert [one["slug"] for one in answer["structuredContent"]["result"]] == ["empty", "my-api", "my-worker"]


def test_a_client_of_2026_can_call(keystone: Client) -> None:
    answer = messages(keystone.modern(called("get_project_status", {"projectSlug": "my-api"})))[-1]["result"]

    assert answer["structuredContent"]["breakdown"]["total"] == 25 + 25 + 8 + 15


@pytest.mark.parametrize(("tool", "arguments", "named"), WRONG)
def test_what_is_wrong_is_named_on_both_wires(
    keystone: Client, pipe: Pipe, tool: str, arguments: dict[str, Any], named: str
) -> None:
    result = keystone.call(tool, arguments)["result"]

    assert result["isError"] is True
    assert named in result["content"][0]["text"]
    assert pipe.ask(called(tool, arguments))["result"] == result


def test_the_command_line_calls_the_same_tools(filled: Path) -> None:
    listed = json.loads(serving.keepsake(filled, "call", "list_projects", "--dialect", "keystone"))
    found = json.loads(
        serving.keepsake(
            filled,
            *("call", "search_memory", "--dialect", "keystone"),
            *("--projectSlugs", "my-api", "--projectSlugs", "my-worker", "--query", QUERY),
        )
    )

    assert [one["slug"] for one in listed["result"]] == ["empty", "my-api", "my-worker"]
    assert found["result"][0]["sourceId"] == TOKENS.key


def test_a_bank_on_the_command_line_is_all_there_is(filled: Path) -> None:
    with serving.piped(filled, "-m", "keepsake", "stdio", "--dialect", "keystone", "--bank", "my-worker") as pipe:
        pipe.ask(initialize())
        listed = pipe.ask(called("list_projects"))["result"]["structuredContent"]["result"]
        refused = pipe.ask(called("search_memory", {"projectSlugs": ["my-worker", "my-api"], "query": QUERY}))

    assert [one["slug"] for one in listed] == ["my-worker"]
    assert refused["error"]["code"] == -32003


def test_a_key_sees_its_projects_is_counted_and_reads_nothing_without_the_scope(tmp_path: Path) -> None:
    fill(tmp_path)
    only = serving.made_key(tmp_path, "one", "--bank", "my-api")
    writer = serving.made_key(tmp_path, "w", "--scope", "memory:write")
    with serving.serving(tmp_path) as address:
        narrow, blind, nobody = (
            Client(f"{address}/api/mcp", {"Authorization": f"Bearer {key}"} if key else {})
            for key in (only, writer, "")
        )
        found = narrow.post(called("search_memory", {"projectSlugs": ["my-api"], "query": QUERY}))
        elsewhere = [
            narrow.post(called("search_memory", {"projectSlugs": ["my-api", slug], "query": QUERY})).status_code
            for slug in ("my-worker", "nope")
        ]
        status = narrow.post(called("get_project_status", {"projectSlug": "my-worker"})).status_code
        listed = blind.post(request("tools/list"), Accept="application/json").json()["result"]["tools"]
        refused = blind.post(called("list_projects")).status_code
        unknown = nobody.post(called("list_projects"))

    assert len(messages(found)[0]["result"]["structuredContent"]["result"]) == 1
    assert "X-RateLimit-Remaining" in found.headers
    assert (elsewhere, status, refused, listed) == ([403, 403], 403, 403, [])
    assert (unknown.status_code, unknown.headers["WWW-Authenticate"]) == (401, 'Bearer realm="keepsake"')


def test_a_key_over_its_limit_is_told_when_to_come_back(tmp_path: Path) -> None:
    key = serving.made_key(tmp_path, "one")
    with serving.serving(tmp_path, rate_limit=2) as address:
        client = Client(f"{address}/api/mcp", {"Authorization": f"Bearer {key}"})
        answers = serving.within_a_minute(lambda: [client.post(called("list_projects")) for _ in range(3)])

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    headers = {"Retry-After", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
    assert [name for name in headers if name not in answers[2].headers] == []
