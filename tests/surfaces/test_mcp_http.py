"""MCP over Streamable HTTP: every revision at once, answers in the right shape."""

import asyncio
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.conftest import COPY, execute
from tests.surfaces import serving
from tests.surfaces.serving import BOTH, Client, called, initialize, messages, notification, request

HANDSHAKES = ["2025-03-26", "2025-06-18", "2025-11-25"]


@pytest.mark.parametrize("version", HANDSHAKES)
def test_each_handshake_revision_is_spoken_as_asked(product: Client, version: str) -> None:
    answer = messages(product.post(initialize(version)))[0]["result"]

    assert answer["protocolVersion"] == version
    assert answer["serverInfo"]["name"] == "hindsight"
    assert "long-term memory" in answer["instructions"]
    assert "tools" in answer["capabilities"]


def test_an_unknown_revision_is_answered_with_the_newest_handshake(product: Client) -> None:
    answer = messages(product.post(initialize("2099-01-01")))[0]["result"]

    assert answer["protocolVersion"] == "2025-11-25"


def test_the_2026_era_is_discovered_without_a_session(product: Client) -> None:
    discovered = product.modern(request("server/discover"))

    assert "mcp-session-id" not in discovered.headers
    assert "2026-07-28" in discovered.json()["result"]["supportedVersions"]


def test_all_revisions_find_the_same_tools_at_the_same_time(product: Client) -> None:
    sessions = [product.session(version) for version in HANDSHAKES]

    listed = [messages(session.post(request("tools/list", id=2)))[0] for session in sessions]
    listed.append(product.modern(request("tools/list", id=2)).json())
    listed.append(product.post(request("tools/list", id=2)).json())

    names = [[tool["name"] for tool in answer["result"]["tools"]] for answer in listed]
    assert names == [names[0]] * 5
    assert {"retain", "recall", "list_banks"} <= set(names[0])


def test_what_one_revision_stores_another_recalls(product: Client) -> None:
    text = "Anna's boat is called Kittiwake"
    stored = messages(product.session("2025-03-26").post(called("retain", {"content": text})))[0]["result"]

    found = product.modern(called("recall", {"query": "What is Anna's boat called?"})).json()["result"]

    assert stored["structuredContent"]["status"] == "stored"
    assert text in [fact["text"] for fact in found["structuredContent"]["results"]]


def test_ping_answers_with_and_without_a_session(product: Client) -> None:
    assert product.post(request("ping")).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert messages(product.session().post(request("ping")))[0]["result"] == {}


def test_ping_is_gone_in_the_2026_era(product: Client) -> None:
    answer = product.modern(request("ping"))

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize("in_session", [True, False])
def test_a_notification_gets_202_and_no_body(product: Client, in_session: bool) -> None:
    client = product.session() if in_session else product

    answer = client.post(notification("notifications/initialized"))

    assert (answer.status_code, answer.content) == (202, b"")


def test_the_curl_of_the_hindsight_seed_works_as_shown(product: Client) -> None:
    command = ["curl", "-s", "-X", "POST", product.url, "-H", "X-Bank-Id: my-bank"]
    command += ["-H", "Content-Type: application/json", "-H", "Accept: application/json, text/event-stream"]
    command += ["-d", '{"jsonrpc": "2.0", "method": "tools/list", "id": 1}']

    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert '"name":"retain"' in told


@pytest.mark.parametrize("accept", [BOTH, "application/json", "*/*", "application/*", None])
def test_a_bare_post_is_answered_in_json_whatever_else_is_accepted(product: Client, accept: str | None) -> None:
    with httpx.Client() as client:
        del client.headers["accept"]
        headers = {"Content-Type": "application/json"} | ({"Accept": accept} if accept else {})
        answer = client.post(product.url, json=request("tools/list"), headers=headers)

    assert answer.headers["content-type"] == "application/json"
    assert len(answer.json()["result"]["tools"]) >= 16


def test_a_bare_post_that_accepts_nothing_but_a_stream_gets_one_or_is_told(product: Client) -> None:
    answer = product.post(request("tools/list"), Accept="text/event-stream")

    assert answer.status_code == 406
    assert "application/json" in answer.json()["error"]["message"]


def test_the_bank_is_taken_from_path_then_header_then_default(product: Client) -> None:
    in_path = Client(f"{product.url}/of-path/")

    told = [
        in_path.call("get_bank", X_Bank_Id="of-header"),
        product.call("get_bank", X_Bank_Id="of-header"),
        product.call("get_bank"),
    ]

    banks = [answer["result"]["structuredContent"]["bank_id"] for answer in told]
    assert banks == ["of-path", "of-header", "default"]


def test_a_bank_with_letters_beyond_ascii_is_the_same_by_path_and_header(product: Client) -> None:
    by_path = Client(f"{product.url}/Zürich/").call("get_bank")
    by_header = product.call("get_bank", X_Bank_Id="Zürich")

    assert by_path["result"]["structuredContent"]["bank_id"] == "Zürich"
    assert by_header["result"]["structuredContent"]["bank_id"] == "Zürich"


def test_the_single_bank_endpoint_has_three_tools_fewer_and_no_bank_argument(product: Client) -> None:
    single = Client(f"{product.url}/mine/").post(request("tools/list")).json()["result"]["tools"]
    multi = product.post(request("tools/list")).json()["result"]["tools"]

    gone = {tool["name"] for tool in multi} - {tool["name"] for tool in single}
    assert gone == {"list_banks", "create_bank", "get_bank_stats"}
    assert not [tool for tool in single if "bank_id" in tool["inputSchema"]["properties"]]


def test_every_schema_is_valid_json_schema(product: Client) -> None:
    for tool in product.post(request("tools/list")).json()["result"]["tools"]:
        Draft202012Validator.check_schema(tool["inputSchema"])
        Draft202012Validator.check_schema(tool["outputSchema"])
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"


def test_annotations_follow_from_effects(product: Client) -> None:
    listed = product.post(request("tools/list")).json()["result"]["tools"]

    tools = {tool["name"]: tool["annotations"] for tool in listed}
    hints = {name: (told["readOnlyHint"], told["destructiveHint"]) for name, told in tools.items()}
    assert hints["recall"] == (True, False)
    assert hints["retain"] == (False, False)
    assert {name for name, (_, destroys) in hints.items() if destroys} >= {
        "delete_memory",
        "delete_document",
        "delete_bank",
        "clear_memories",
    }


def test_every_tool_gives_structure_that_its_output_schema_allows(product: Client) -> None:
    tools = product.post(request("tools/list")).json()["result"]["tools"]
    schemas = {tool["name"]: tool["outputSchema"] for tool in tools}
    stored = product.call("retain", {"content": "Ida keeps bees", "tags": ["bees"], "document_id": "ida"})
    memory = stored["result"]["structuredContent"]["memory_id"]
    story: list[tuple[str, dict[str, Any]]] = [
        ("create_bank", {"bank_id": "other", "name": "Other"}),
        ("retain", {"content": "Ida has two hives", "metadata": {"n": None, "deep": [1, {"a": 1.5}]}}),
        ("recall", {"query": "bees"}),
        ("recall", {"query": "nothing of the kind", "tags": ["none"]}),
        ("list_memories", {}),
        ("get_memory", {"memory_id": memory}),
        ("list_documents", {}),
        ("get_document", {"document_id": "ida"}),
        ("list_tags", {}),
        ("list_banks", {}),
        ("get_bank", {}),
        ("get_bank_stats", {}),
        ("update_bank", {"mission": "Remember bees"}),
        ("delete_memory", {"memory_id": memory}),
        ("delete_document", {"document_id": "ida"}),
        ("clear_memories", {}),
        ("delete_bank", {"bank_id": "other"}),
    ]

    told = {name: product.call(name, arguments)["result"] for name, arguments in story}

    assert set(told) >= set(schemas) & {name for name, _ in story}
    for name, result in told.items():
        assert not result.get("isError"), (name, result)
        Draft202012Validator(schemas[name]).validate(result["structuredContent"])
        assert result["content"][0]["type"] == "text"


def test_a_cursor_that_was_never_given_out_is_an_error(product: Client) -> None:
    answer = product.post(request("tools/list", {"cursor": "page-2"})).json()

    assert answer["error"]["code"] == -32602
    assert "leave `cursor` out" in answer["error"]["message"]


def test_an_unknown_method_is_an_error(product: Client) -> None:
    assert product.post(request("no/such")).json()["error"]["code"] == -32601


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """A database of its own, made from the migrated one."""
    name = f"surfaces_{secrets.token_hex(6)}"
    asyncio.run(execute(postgres_server.format("postgres"), f"CREATE DATABASE {name} {COPY}"))
    yield postgres_server.format(name)
    asyncio.run(execute(postgres_server.format("postgres"), f"DROP DATABASE {name} WITH (FORCE)"))


def test_the_product_works_the_same_on_postgresql(postgres_url: str, tmp_path: Path) -> None:
    with serving.serving(tmp_path, database_url=postgres_url) as address:
        product = Client(f"{address}/mcp/smoke/")
        session = product.session()

        stored = messages(session.post(called("retain", {"content": "Otto repairs clocks"})))[0]["result"]
        found = product.modern(called("recall", {"query": "Who repairs clocks?"})).json()["result"]
        gone = product.call("delete_bank")["result"]

    assert stored["structuredContent"]["status"] == "stored"
    assert [fact["text"] for fact in found["structuredContent"]["results"]] == ["Otto repairs clocks"]
    assert gone["structuredContent"]["deleted_memories"] == 1
