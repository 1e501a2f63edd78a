"""MCP over stdio: the same protocol on a pipe, one client, the local owner."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.surfaces import probes, serving
from tests.surfaces.serving import META, Pipe, called, initialize, marked, notification, request, until

PRODUCT = ("-m", "keepsake", "stdio", "--dialect", "hindsight")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stdio")


@pytest.fixture(scope="module")
def pipe(folder: Path) -> Iterator[Pipe]:
    """The probes on a pipe, initialized."""
    with serving.piped(folder) as pipe:
        pipe.ask(initialize())
        pipe.send(notification("notifications/initialized"))
        yield pipe


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_product_speaks_each_handshake_revision(tmp_path: Path, version: str) -> None:
    with serving.piped(tmp_path, *PRODUCT) as pipe:
        begun = pipe.ask(initialize(version))["result"]
        pipe.send(notification("notifications/initialized"))
        listed = pipe.ask(request("tools/list", id=2))["result"]["tools"]
        code = pipe.ended()

    assert begun["protocolVersion"] == version
    assert "retain" in [tool["name"] for tool in listed]
    assert code == 0


def test_the_2026_era_needs_no_handshake(tmp_path: Path) -> None:
    with serving.piped(tmp_path) as pipe:
        found = pipe.ask(request("server/discover", {"_meta": META}))["result"]
        told = pipe.ask(called("report", id=2, **META))["result"]

    assert "2026-07-28" in found["supportedVersions"]
    assert told["structuredContent"] == {"done": True}


def test_what_is_piped_in_at_once_is_answered_before_the_end(tmp_path: Path) -> None:
    told = [initialize(), notification("notifications/initialized"), request("tools/list", id=2)]
    told.append(called("linger", {"mark": "late", "seconds": 0.3}, id=3))
    with serving.piped(tmp_path) as pipe:
        pipe.send(b"".join(json.dumps(message).encode() + b"\n" for message in told))
        code = pipe.ended()
        assert pipe.process.stdout is not None
        answers = [json.loads(line)["id"] for line in pipe.process.stdout]

    assert (answers, code) == ([1, 2, 3], 0)


def test_a_call_that_does_not_end_holds_up_the_end_for_a_while_only(tmp_path: Path) -> None:
    with serving.piped(tmp_path, shutdown_seconds=1) as pipe:
        pipe.ask(initialize())
        pipe.send(called("linger", {"mark": "long"}, id=2))
        until(lambda: marked(tmp_path, "long") == "started")

        assert pipe.ended() == 0
        assert marked(tmp_path, "long") == "cancelled"


def test_ping_answers(pipe: Pipe) -> None:
    assert pipe.ask(request("ping", id="p")) == {"jsonrpc": "2.0", "id": "p", "result": {}}


def test_progress_arrives_before_the_answer(pipe: Pipe) -> None:
    pipe.send(called("report", id=20, progressToken="mine"))

    arrived = [pipe.receive() for _ in range(4)]

    assert [told["params"]["progress"] for told in arrived[:3]] == [1, 2, 3]
    assert arrived[3]["id"] == 20


def test_a_cancelled_call_ends_its_handler_and_frees_its_id(pipe: Pipe, folder: Path) -> None:
    pipe.send(called("linger", {"mark": "cut"}, id=30))
    until(lambda: marked(folder, "cut") == "started")

    pipe.send(notification("notifications/cancelled", {"requestId": 30}))
    until(lambda: marked(folder, "cut") == "cancelled")

    assert pipe.ask(called("report", id=30))["result"]["structuredContent"] == {"done": True}


def test_a_request_id_in_use_is_refused_and_the_first_call_goes_on(pipe: Pipe, folder: Path) -> None:
    pipe.send(called("linger", {"mark": "twice", "seconds": 0.5}, id=40))
    until(lambda: marked(folder, "twice") == "started")

    refused = pipe.ask(called("report", id="40"))
    finished = pipe.receive()

    assert (refused["id"], refused["error"]["code"]) == ("40", -32600)
    assert "still in use" in refused["error"]["message"]
    assert finished["result"]["structuredContent"] == {"done": True}


def test_a_second_initialize_is_an_error(pipe: Pipe) -> None:
    refused = pipe.ask(initialize(id=50))

    assert (refused["id"], refused["error"]["code"]) == (50, -32600)
    assert "initialized already" in refused["error"]["message"]


def test_a_batch_of_2025_03_26_is_answered_together(tmp_path: Path) -> None:
    with serving.piped(tmp_path) as pipe:
        pipe.ask(initialize("2025-03-26"))
        pipe.send(notification("notifications/initialized"))
        sent = [request("ping", id=1), notification("notifications/x"), called("report", id=2), {"id": 3}, 4]
        answers = pipe.ask([*sent, request("ping", id=1)])
        silent = [notification("notifications/x"), notification("notifications/y")]
        pipe.send(silent)
        after = pipe.ask(request("ping", id=9))

    assert sorted(str(answer["id"]) for answer in answers) == ["1", "1", "2", "3", "None"]
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == [-32600] * 3
    assert after["id"] == 9


def test_a_batch_with_a_cancelled_call_is_still_answered(tmp_path: Path) -> None:
    with serving.piped(tmp_path) as pipe:
        pipe.ask(initialize("2025-03-26"))
        pipe.send([called("linger", {"mark": "cut"}, id=1), called("report", id=2)])
        until(lambda: marked(tmp_path, "cut") == "started")
        pipe.send(notification("notifications/cancelled", {"requestId": 1}))
        answers = pipe.receive()

    assert [answer["id"] for answer in answers] == [2]


@pytest.mark.parametrize("batch", [[request("ping")], []])
def test_a_batch_is_refused_by_later_revisions(pipe: Pipe, batch: list[object]) -> None:
    refused = pipe.ask(batch)

    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert "2025-03-26 only" in refused["error"]["message"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{broken\n", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}\n', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}\n', -32700),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}\n', -32700),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}\n', -32700),
        (b"[" * 100_000 + b"\n", -32700),
        (b"17\n", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}\n', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n', -32600),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 400 + b',"method":"ping"}\n', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}\n', -32600),
        (b'"' + b"x" * 5_000_000 + b'"\n', -32600),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_broken_line_gets_an_error_and_the_next_one_an_answer(pipe: Pipe, line: bytes, code: int) -> None:
    refused = pipe.ask(line)

    assert refused["error"]["code"] == code
    assert "pydantic" not in refused["error"]["message"]
    assert pipe.ask(request("ping", id="next"))["id"] == "next"


def test_a_fault_of_ours_is_told_by_its_request_id_alone(pipe: Pipe) -> None:
    told = pipe.ask(called("broken", id=60))["error"]

    assert told["code"] == -32603
    assert "request id" in told["message"]
    assert probes.SECRET not in json.dumps(told)


def test_an_unknown_tool_and_bad_arguments_are_told_as_over_http(pipe: Pipe) -> None:
    unknown = pipe.ask(called("nothing", id=70))
    bad = pipe.ask(called("linger", {"mark": 5}, id=71))

    assert unknown["error"]["code"] == -32602
    assert bad["result"]["isError"] is True
    assert "`mark`" in bad["result"]["content"][0]["text"]


def test_a_signal_ends_the_server_although_the_client_is_silent(tmp_path: Path) -> None:
    with serving.piped(tmp_path, *PRODUCT) as pipe:
        pipe.ask(initialize())

        pipe.process.send_signal(signal.SIGINT)

        assert pipe.process.wait(10) in (0, 130)


def test_a_key_and_a_bank_narrow_what_stdio_may_do(tmp_path: Path) -> None:
    key = serving.made_key(tmp_path, "reader", "--scope", "memory:read")
    with serving.piped(tmp_path, *PRODUCT, "--bank", "mine", api_key=key) as pipe:
        pipe.ask(initialize())
        listed = pipe.ask(request("tools/list", id=2))["result"]["tools"]
        refused = pipe.ask(called("retain", {"content": "no"}, id=3))["error"]

    assert "recall" in [tool["name"] for tool in listed]
    assert "retain" not in [tool["name"] for tool in listed]
    assert (refused["code"], refused["message"][:3]) == (-32003, "403")
