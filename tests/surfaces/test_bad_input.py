"""Bad input: a clear error in the right shape, nothing stored, the server up."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from keepsake import context, dispatch, settings
from keepsake.core.errors import KeepsakeError
from keepsake.core.principal import local_owner
from keepsake.surfaces import mcp
from keepsake.tools import catalog
from keepsake.tools.dialect import Dialect
from tests.surfaces import bad, serving
from tests.surfaces.serving import Client, Pipe, called, initialize, messages, request

pytestmark = pytest.mark.anyio
TOOLS = {
    f"{name}.{tool.name}": (dialect, mcp.listed(tool).model_dump(by_alias=True))
    for name, dialect in catalog.DIALECTS.items()
    for tool in dialect.tools.values()
}
EVERY = pytest.mark.parametrize(("dialect", "tool"), TOOLS.values(), ids=TOOLS)
PATHS = {
    "hindsight": "/mcp",
    "kiro": "/kiro/mcp",
    "keystone": "/api/mcp",
    "checkstack": "/api/ai/mcp",
    "keepsake": "/keepsake/mcp",
    "xerotier": "/v1/mcp",
}
LEAKS = ("pydantic", "Traceback", "validation error", "http://", "https://", "Value error", ".py")


def rows(folder: Path) -> dict[str, int]:
    """How many rows every table has."""
    connection = apsw.Connection(str(folder / "keepsake.db"), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    counted = {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchall()[0][0] for name in tables}
    connection.close()
    return counted


def is_clear(text: str) -> bool:
    """Whether a message is one that we wrote, of a length to be read."""
    return 10 < len(text) < 2_500 and not any(leak in text for leak in LEAKS)


@EVERY
async def test_no_bad_input_is_taken_or_stored(dialect: Dialect, tool: dict[str, Any], tmp_path: Path) -> None:
    tried = bad.inputs(tool)
    async with context.open(settings.load({}, data_dir=tmp_path, worker=False)) as app:
        # So that nothing is refused merely because its bank is unknown.
        await dispatch.call(app.ctx(local_owner()), "bank.create", {"name": "fresh"})
        await app.embedding.static_model(app.store)
        door, before, bound = dispatch.Door(dialect), rows(tmp_path), "fresh" if dialect.workspace else None

        told = []
        for arguments in tried:
            with pytest.raises(KeepsakeError) as refused:
                await dispatch.call_tool(app.ctx(local_owner(), bound), door, tool["name"], arguments)
            told.append(refused.value)

        assert rows(tmp_path) == before
    assert len(tried) >= 200
    assert {error.code for error in told} <= {"bad_input", "not_found"}
    assert [str(error) for error in told if not is_clear(str(error))] == []
    for error in told:
        str(error).encode()


@pytest.fixture(scope="module")
def pipe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipe]:
    with serving.piped(tmp_path_factory.mktemp("pipe"), "-m", "keepsake", "stdio", "--dialect", "hindsight") as pipe:
        pipe.ask(initialize())
        yield pipe


@pytest.fixture(scope="module")
def pipes(pipe: Pipe, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Pipe]]:
    with ExitStack() as stack:
        found = {"hindsight": pipe}
        for name in PATHS.keys() - found.keys():
            bound = ("--bank", "default") if name == "xerotier" else ()
            command = ("-m", "keepsake", "stdio", "--dialect", name, *bound)
            found[name] = stack.enter_context(serving.piped(tmp_path_factory.mktemp(name), *command))
            found[name].ask(initialize())
        yield found


def sample(tool: dict[str, Any]) -> list[dict[str, Any]]:
    """Some bad arguments of a tool that JSON can carry, in a request that is not refused for its size."""
    tried = [one for one in bad.inputs(tool)[::17] if len(str(one)) < 1_000_000]
    return [one for one in tried if not any(word in json.dumps(one) for word in ("NaN", "Infinity", "\\ud8", "\\udf"))]


@EVERY
def test_a_sample_is_refused_alike_over_http_and_stdio(
    address: str, pipes: dict[str, Pipe], folder: Path, dialect: Dialect, tool: dict[str, Any]
) -> None:
    product, pipe = Client(f"{address}{PATHS[dialect.name]}"), pipes[dialect.name]
    if dialect.workspace:
        made = httpx.post(f"{address}/v1/operations/bank.create", json={"name": "default"}).json()
        product = Client(product.url, {dialect.workspace: made["workspace"]})
    before = rows(folder)
    if dialect.needs_session:
        product = product.session()

    for arguments in sample(tool):
        over_http = product.call(tool["name"], arguments)
        over_stdio = pipe.ask(called(tool["name"], arguments))

        assert over_http == over_stdio
        assert over_http["result"]["isError"] is True
        assert is_clear(over_http["result"]["content"][0]["text"])
    assert rows(folder) == before


BODIES = {
    "not JSON": b"{broken",
    "nothing": b"",
    "invalid UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\xff\xfe"}}',
    "UTF-16": '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
    "a lone surrogate": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"retain","arguments":'
    b'{"content":"\\ud800"}}}',
    "NaN": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":{"max_tokens":NaN}}}',
    "Infinity": b'{"jsonrpc":"2.0","id":Infinity,"method":"ping"}',
    "a huge number": b'{"jsonrpc":"2.0","id":1' + b"0" * 5_000 + b',"method":"ping"}',
    "a name twice": b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
    "deep nesting": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001,
    "deep lists": b"[" * 100_000,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_that_is_not_json_is_a_parse_error(product: Client, body: bytes) -> None:
    answers = [
        product.post(body),
        product.session().post(body),
        product.post(body, MCP_Protocol_Version="2026-07-28", Mcp_Method="ping"),
    ]

    for answer in answers:
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)
        assert answer.json()["id"] is None
        assert is_clear(answer.json()["error"]["message"])
    assert product.post(request("ping")).status_code == 200


MESSAGES: list[Any] = [
    17,
    "ping",
    None,
    True,
    {},
    {"jsonrpc": "2.0"},
    {"jsonrpc": "1.0", "id": 1, "method": "ping"},
    {"id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "id": 1},
    {"jsonrpc": "2.0", "id": 1, "method": 5},
    {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]},
    {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"},
    {"jsonrpc": "2.0", "id": None, "method": "ping"},
    {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
    {"jsonrpc": "2.0", "id": True, "method": "ping"},
    {"jsonrpc": "2.0", "id": {}, "method": "ping"},
    {"jsonrpc": "2.0", "id": "x" * 5_000, "method": "ping"},
    {"jsonrpc": "2.0", "id": 10**300, "method": "ping"},
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: json.dumps(message)[:50])
def test_json_that_is_no_message_is_an_invalid_request(product: Client, message: object) -> None:
    answers = [
        product.post(message),
        product.session().post(message),
        product.post(message, MCP_Protocol_Version="2026-07-28", Mcp_Method="ping"),
    ]

    for answer in answers:
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
        assert is_clear(answer.json()["error"]["message"])


PARAMS: list[Any] = [
    {},
    {"name": None},
    {"name": 5},
    {"name": []},
    {"name": "retain", "arguments": "text"},
    {"name": "retain", "arguments": [1]},
    {"name": "x" * 100_000},
    {"name": "retain", "arguments": {}, "_meta": "x"},
]


@pytest.mark.parametrize("params", PARAMS, ids=lambda params: json.dumps(params)[:50])
def test_a_call_without_a_usable_name_or_arguments_is_an_error(product: Client, pipe: Pipe, params: Any) -> None:
    answers = [product.post(request("tools/call", params)).json(), pipe.ask(request("tools/call", params))]
    answers.append(messages(product.session().post(request("tools/call", params)))[0])

    for answer in answers:
        assert answer["error"]["code"] == -32602
        assert len(answer["error"]["message"]) < 500
        assert not any(leak in answer["error"]["message"] for leak in LEAKS)


@pytest.mark.parametrize(
    "name", ["../etc", "a..b", "a\\b", "%2e%2e", "%2e%2e%2fetc", "..%2f..%2fetc", "%00", "%0a", "%20"]
)
def test_a_bank_in_the_path_that_is_a_path_is_refused(product: Client, name: str) -> None:
    answer = Client(f"{product.url}/{name}/").post(called("get_bank"))

    assert answer.status_code in (400, 404, 405)
    assert "result" not in answer.text


@pytest.mark.parametrize("name", ["../etc", "..", "a/b", "a\\b", "x" * 200, "\x01"])
def test_a_bank_in_the_header_that_is_a_path_is_refused(product: Client, name: str) -> None:
    answer = product.post(called("get_bank"), X_Bank_Id=name)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)
    assert is_clear(answer.json()["error"]["message"])


def test_a_bank_in_the_header_that_is_not_utf_8_is_refused(product: Client) -> None:
    headers = {b"X-Bank-Id": b"\xff\xfe", b"Accept": b"*/*"}

    answer = httpx.post(product.url, json=called("get_bank"), headers=headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)


def test_ten_megabytes_are_refused_over_stdio_and_the_wire_lives_on(pipe: Pipe) -> None:
    refused = pipe.ask(called("retain", {"content": "x" * 10_000_000}, id=5))

    assert refused["error"]["code"] == -32600
    assert "4,194,304 bytes" in refused["error"]["message"]
    assert pipe.ask(request("ping", id=6))["result"] == {}


def test_text_past_a_tools_own_limit_is_refused_in_words(product: Client) -> None:
    told = product.call("retain", {"content": "x" * 1_000_001})["result"]

    assert told["isError"] is True
    assert "1000000 characters" in told["content"][0]["text"]
    assert len(told["content"][0]["text"]) < 300


def test_a_secret_in_a_bad_argument_is_not_repeated(product: Client) -> None:
    secret = "ks_live_" + "5" * 64

    told = [
        product.call("recall", {"query": {"key": secret}}),
        product.call("recall", {"query": "x", "max_tokens": secret}),
        product.call("retain", {"content": "x", "timestamp": secret}),
        product.call("list_memories", {"type": secret}),
    ]

    assert [answer["result"]["isError"] for answer in told] == [True] * 4
    assert secret not in json.dumps(told)
