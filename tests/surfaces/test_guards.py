"""What is asked of every HTTP request, batches, and how a server ends."""

import json
import signal
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.surfaces import serving
from tests.surfaces.serving import Client, called, initialize, marked, messages, notification, request, until

LIMIT = 4 * 1024 * 1024


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "0.0.0.0", ""])
def test_another_hosts_name_is_421(product: Client, host: str) -> None:
    answer = product.post(request("tools/list"), Host=host)

    assert answer.status_code == 421
    assert "KEEPSAKE_ALLOWED_HOSTS" in answer.text


@pytest.mark.parametrize("host", ["localhost", "localhost:9", "127.0.0.1", "[::1]:80"])
def test_the_names_of_loopback_are_ours(product: Client, host: str) -> None:
    assert product.post(request("tools/list"), Host=host).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example", "file://"])
def test_a_page_of_another_origin_is_403(product: Client, origin: str) -> None:
    answer = product.post(request("tools/list"), Origin=origin)

    assert answer.status_code == 403
    assert "KEEPSAKE_ALLOWED_ORIGINS" in answer.text


def test_pages_of_loopback_may_call(product: Client) -> None:
    assert product.post(request("tools/list"), Origin="http://localhost:3000").status_code == 200


def test_names_and_origins_that_the_operator_allows_are_let_in(tmp_path: Path) -> None:
    with serving.serving(tmp_path, allowed_hosts="memory.example", allowed_origins="https://app.example") as address:
        client = Client(f"{address}/mcp")
        answer = client.post(request("tools/list"), Host="memory.example", Origin="https://app.example")

    assert answer.status_code == 200


@pytest.mark.parametrize("path", ["/mcp", "/mcp/bank/", "/v1/operations/memory.retain"])
def test_a_body_past_the_limit_is_413_and_says_so(address: str, path: str) -> None:
    answer = Client(f"{address}{path}").post(called("retain", {"content": "x" * 10_000_000}))

    assert answer.status_code == 413
    message = answer.json()["error"]["message"]
    assert f"{LIMIT:,} bytes" in message and "KEEPSAKE_BODY_LIMIT" in message


def test_a_body_past_the_limit_is_refused_without_its_length_being_told(product: Client) -> None:
    def parts() -> serving.Iterator[bytes]:
        for _ in range(100):
            yield b" " * 100_000

    answer = httpx.post(product.url, content=parts(), headers={"Content-Type": "application/json"}, timeout=30)

    assert answer.status_code == 413


def test_a_body_just_within_the_limit_is_read(product: Client) -> None:
    message = json.dumps(called("retain", {"content": "y"})).encode()

    answer = product.post(message + b" " * (LIMIT - len(message)))

    assert answer.json()["result"]["structuredContent"]["status"] == "stored"


def test_a_client_that_hangs_up_while_sending_harms_nobody(product: Client) -> None:
    host, port = urlsplit(product.url).hostname, urlsplit(product.url).port
    with socket.create_connection((host, port)) as wire:
        wire.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{")

    assert product.post(request("ping")).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""])
def test_a_content_type_that_is_not_json_is_415(product: Client, kind: str) -> None:
    answer = product.post(request("tools/list"), Content_Type=kind)

    assert answer.status_code == 415
    assert "application/json" in answer.json()["error"]["message"]


@pytest.mark.parametrize("in_session", [True, False])
def test_a_batch_of_2025_03_26_is_answered_together(probe: Client, in_session: bool) -> None:
    client = probe.session("2025-03-26") if in_session else probe
    batch = [request("ping", id=1), notification("notifications/x"), called("report", id="2"), {"id": 3}, 4]

    answer = client.post(batch)

    told = answer.json()
    assert answer.headers["content-type"] == "application/json"
    assert [one["id"] for one in told] == [1, "2", 3, None]
    assert [one.get("error", {}).get("code") for one in told] == [None, None, -32600, -32600]


def test_a_batch_that_only_notifies_gets_202(probe: Client) -> None:
    answer = probe.post([notification("notifications/x"), notification("notifications/y")])

    assert (answer.status_code, answer.content) == (202, b"")


def test_a_forbidden_call_of_a_batch_does_not_stop_the_others(tmp_path: Path) -> None:
    key = serving.made_key(tmp_path, "reader", "--scope", "memory:read")
    with serving.serving(tmp_path) as address:
        client = Client(f"{address}/mcp", {"Authorization": f"Bearer {key}"})
        told = client.post([called("list_banks", id=1), called("retain", {"content": "no"}, id=2)]).json()

    assert told[0]["result"]["structuredContent"] == {"banks": []}
    assert (told[1]["error"]["code"], told[1]["error"]["message"][:3]) == (-32003, "403")


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_a_batch_is_refused_by_later_revisions(probe: Client, version: str) -> None:
    by_header = probe.post([request("ping")], MCP_Protocol_Version=version)
    by_session = probe.session(version).post([request("ping")])

    for answer in (by_header, by_session):
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
        assert "2025-03-26 only" in answer.json()["error"]["message"]


@pytest.mark.parametrize("batch", [[], [initialize("2025-03-26")], [request("ping"), initialize("2025-03-26")]])
def test_an_empty_batch_and_an_initialize_within_one_are_refused(probe: Client, batch: list[object]) -> None:
    answer = probe.post(batch)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


def test_a_batch_is_refused_in_the_2026_era(probe: Client) -> None:
    assert probe.post([request("ping")], MCP_Protocol_Version="2026-07-28").status_code == 400


def test_sigterm_ends_listeners_lets_a_call_finish_and_leaves_with_success(tmp_path: Path) -> None:
    with serving.process(tmp_path) as (server, address):
        session = Client(f"{address}/probe").session()
        stream = session.headers | {"Accept": "text/event-stream"}
        linger = called("linger", {"mark": "last", "seconds": 1}, id=7)
        with (
            httpx.stream("GET", session.url, headers=stream, timeout=30) as listening,
            serving.background(lambda: session.post(linger)) as call,
        ):
            until(lambda: marked(tmp_path, "last") == "started")
            begun = time.monotonic()

            server.send_signal(signal.SIGTERM)

            assert listening.read() == b""
            assert messages(call.result())[-1]["result"]["structuredContent"] == {"done": True}
            assert server.wait(10) == 0
            assert time.monotonic() - begun < 6


def test_the_product_ends_with_success_at_sigterm(tmp_path: Path) -> None:
    command = [serving.sys.executable, "-m", "keepsake", "serve", "--json"]
    with serving.subprocess.Popen(
        command, cwd=serving.ROOT, env=serving.environment(tmp_path), stdout=serving.subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        told = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")
        answer = Client(told["mcp"]).post(request("tools/list"))

        server.send_signal(signal.SIGTERM)

        assert answer.status_code == 200
        assert server.wait(10) == 0
