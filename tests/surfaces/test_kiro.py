"""The kiro dialect over the real wires: exactly four tools, whole records, and who may see what."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from keepsake import context, settings
from keepsake.core import clock
from tests.ops.observing import Seen, observed
from tests.surfaces import serving
from tests.surfaces.serving import Client, Pipe, called, initialize, messages, notification, request

TOOLS = ["search", "timeline", "get_observations", "get_context"]
SEEN = [
    Seen("Read auth.ts to understand its structure", title="auth.ts", subtype="file-read"),
    Seen("Modified auth.ts — updating 45 lines", title="Modified auth.ts", parts={"concepts": ["security"]}),
    Seen("JWT is stateless", title="Use JWT", kind="decision"),
    Seen("", kind="summary", parts={"request": "authentication", "completed": "Modified auth.ts"}),
]
Json = dict[str, Any]


@pytest.fixture(scope="module")
def ids(folder: Path) -> list[int]:
    """What the module's store holds, and beside it another project."""

    async def fill() -> list[int]:
        async with context.open(settings.load({}, data_dir=folder)) as app:
            await observed(app, Seen("A secret plan", title="Elsewhere", at=clock.now()), bank="other")
            return await observed(app, *(Seen(**{**vars(seen), "at": clock.now() + n}) for n, seen in enumerate(SEEN)))

    return asyncio.run(fill())


@pytest.fixture
def kiro(address: str) -> Client:
    return Client(f"{address}/kiro/mcp")


@pytest.fixture(scope="module")
def pipe(folder: Path, ids: list[int]) -> Iterator[Pipe]:
    with serving.piped(folder, "-m", "keepsake", "stdio", "--dialect", "kiro") as pipe:
        pipe.ask(initialize())
        pipe.send(notification("notifications/initialized"))
        yield pipe


def test_both_wires_list_exactly_four_reading_tools(kiro: Client, pipe: Pipe) -> None:
    over_http = kiro.post(request("tools/list"), Accept="application/json").json()["result"]["tools"]
    over_stdio = pipe.ask(request("tools/list"))["result"]["tools"]

    assert [tool["name"] for tool in over_http] == TOOLS
    assert over_http == over_stdio
    assert {tool["annotations"]["readOnlyHint"] for tool in over_http} == {True}
    assert {tool["annotations"]["destructiveHint"] for tool in over_http} == {False}


def test_the_server_names_its_dialect_and_says_when_to_use_which_tool(kiro: Client) -> None:
    told = messages(kiro.post(initialize()))[0]["result"]

    assert told["serverInfo"]["name"] == "kiro"
    assert [name for name in TOOLS if f"`{name}`" not in told["instructions"]] == []


def calls(ids: list[int]) -> list[tuple[str, Json]]:
    return [
        ("search", {"query": "auth.ts AND security"}),
        ("search", {"query": "authentication", "project": "my-api", "limit": 5}),
        ("search", {"query": "anything", "project": "nowhere"}),
        ("timeline", {"anchor_id": ids[1], "depth_before": 3, "depth_after": 3}),
        ("get_observations", {"ids": [*ids, 99]}),
        ("get_context", {"project": "my-api"}),
        ("get_context", {"project": "my-api", "token_budget": 4000, "query": "authentication rate limiting"}),
    ]


def test_results_are_the_same_on_both_wires_and_fit_their_schemas(kiro: Client, pipe: Pipe, ids: list[int]) -> None:
    schemas = {tool["name"]: tool["outputSchema"] for tool in pipe.ask(request("tools/list"))["result"]["tools"]}

    for tool, arguments in calls(ids):
        result = kiro.call(tool, arguments)["result"]

        Draft202012Validator(schemas[tool]).validate(result["structuredContent"])
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        if "get_context" not in tool:
            assert pipe.ask(called(tool, arguments))["result"] == result


def test_null_fields_are_there(kiro: Client, ids: list[int]) -> None:
    (only,) = kiro.call("get_observations", {"ids": [ids[0]]})["result"]["structuredContent"]["observations"]

    assert [name for name, value in only.items() if value is None] == [
        *("subtitle", "text", "facts", "concepts", "files_read", "files_modified")
    ]


def test_a_session_of_a_2025_client_can_call(kiro: Client, ids: list[int]) -> None:
    answer = messages(kiro.session().post(called("get_context", {"project": "my-api"})))[-1]["result"]

    assert answer["structuredContent"]["items"][0]["title"] == "Use JWT"


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("get_observations", {"ids": list(range(1, 52))}, "ids"),
        ("search", {"query": "x", "limit": 0}, "limit"),
        ("search", {"query": "x", "limit": 51}, "limit"),
        ("timeline", {"anchor_id": 99}, "99"),
        ("timeline", {"anchor_id": 1, "depth_after": 51}, "depth_after"),
    ],
)
def test_bad_arguments_are_told_in_words(kiro: Client, tool: str, arguments: Json, named: str) -> None:
    result = kiro.call(tool, arguments)["result"]

    assert result["isError"] is True
    assert named in result["content"][0]["text"]


def test_a_bank_on_the_command_line_is_all_there_is(folder: Path, ids: list[int]) -> None:
    with serving.piped(folder, "-m", "keepsake", "stdio", "--dialect", "kiro", "--bank", "other") as pipe:
        pipe.ask(initialize())
        listed = pipe.ask(request("tools/list"))["result"]["tools"]
        found = pipe.ask(called("search", {"query": "JWT OR plan"}))["result"]["structuredContent"]
        anchor = pipe.ask(called("timeline", {"anchor_id": ids[0]}))["result"]
        refused = pipe.ask(called("get_context", {"project": "my-api"}))

    assert [tool["name"] for tool in listed] == TOOLS
    assert [one["project"] for one in found["observations"]] == ["other"]
    assert anchor["isError"] is True
    assert refused["error"]["code"] == -32003


def test_a_key_sees_its_banks_and_nothing_without_the_scope_to_read(tmp_path: Path) -> None:
    async def fill() -> None:
        async with context.open(settings.load({}, data_dir=tmp_path)) as app:
            await observed(app, Seen("plan one", title="one"), bank="a")
            await observed(app, Seen("plan two", title="two"), bank="b")

    asyncio.run(fill())
    only_a = serving.made_key(tmp_path, "a", "--bank", "a")
    writer = serving.made_key(tmp_path, "w", "--scope", "memory:write")
    with serving.serving(tmp_path) as address:
        narrow, blind = (Client(f"{address}/kiro/mcp", {"Authorization": f"Bearer {key}"}) for key in (only_a, writer))
        found = narrow.call("search", {"query": "plan"})["result"]["structuredContent"]["observations"]
        elsewhere = narrow.post(called("search", {"query": "plan", "project": "b"}))
        listed = blind.post(request("tools/list"), Accept="application/json").json()["result"]["tools"]
        refused = blind.post(called("search", {"query": "plan"}))

    assert [one["title"] for one in found] == ["one"]
    assert (elsewhere.status_code, refused.status_code, listed) == (403, 403, [])
