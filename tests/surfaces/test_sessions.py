"""MCP sessions: minted at initialize, their owner's alone, gone when unknown, idle or ended."""

from pathlib import Path

import pytest

from tests.conftest import Database
from tests.surfaces import serving
from tests.surfaces.serving import Client, called, initialize, marked, messages, notification, request, until

GONE = (404, -32000)


def told(client: Client, message: object | None = None) -> tuple[int, int]:
    """The status and code of a refusal."""
    answer = client.post(message or request("tools/list"))
    return answer.status_code, answer.json()["error"]["code"]


def test_every_initialize_mints_a_session_of_its_own(product: Client) -> None:
    ids = {product.session().headers["Mcp-Session-Id"] for _ in range(3)}

    assert len(ids) == 3
    assert all(len(id) >= 32 and id.isascii() for id in ids)


def test_a_session_is_known_before_its_id_is_told(product: Client) -> None:
    for _ in range(20):
        session = product.session()
        assert session.post(request("ping", id=2)).status_code == 200


def test_an_unknown_session_is_not_found(product: Client) -> None:
    stranger = Client(product.url, {"Mcp-Session-Id": "0" * 32})

    assert told(stranger) == GONE


def test_a_session_of_another_endpoint_is_not_found(product: Client, probe: Client) -> None:
    elsewhere = Client(probe.url, product.session().headers)

    assert told(elsewhere) == GONE


def test_a_session_that_was_ended_is_not_found(product: Client) -> None:
    session = product.session()

    ended = serving.httpx.delete(session.url, headers=session.headers)

    assert ended.status_code == 200
    assert told(session) == GONE


def test_a_second_initialize_on_a_session_is_an_error(product: Client) -> None:
    session = product.session()

    answer = session.post(initialize(id=7))

    assert answer.status_code == 400
    assert answer.json()["id"] == 7
    assert "initialized already" in answer.json()["error"]["message"]
    assert session.post(request("ping")).status_code == 200


def test_an_initialize_that_says_too_little_mints_nothing(product: Client) -> None:
    answer = product.post(request("initialize", {"protocolVersion": "2025-11-25"}))

    assert "mcp-session-id" not in answer.headers
    assert answer.json()["error"]["code"] == -32602
    assert "clientInfo" in answer.json()["error"]["message"]


def test_a_get_without_a_session_is_not_allowed(product: Client) -> None:
    answer = serving.httpx.get(product.url, headers={"Accept": "text/event-stream"})

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_an_idle_session_expires_and_a_busy_one_does_not(tmp_path: Path) -> None:
    with serving.serving(tmp_path, session_ttl=1) as address:
        idle, busy = Client(f"{address}/mcp").session(), Client(f"{address}/mcp").session()
        stream = {"Accept": "text/event-stream"}
        with serving.httpx.stream("GET", busy.url, headers=busy.headers | stream, timeout=20):
            until(lambda: idle.post(request("ping")).status_code == 200)
            serving.time.sleep(1.2)

            assert told(idle) == GONE
            assert busy.post(request("ping")).status_code == 200


def test_a_session_of_another_principal_is_not_found(tmp_path: Path) -> None:
    ours, theirs = serving.made_key(tmp_path, "ours"), serving.made_key(tmp_path, "theirs")
    with serving.serving(tmp_path) as address:
        session = Client(f"{address}/mcp", {"Authorization": f"Bearer {ours}"}).session()
        thief = Client(session.url, session.headers | {"Authorization": f"Bearer {theirs}"})

        assert told(thief) == GONE
        assert session.post(request("ping")).status_code == 200


def test_a_session_of_one_server_is_answered_by_another_on_the_same_file(tmp_path: Path) -> None:
    with serving.serving(tmp_path) as first, serving.serving(tmp_path) as second:
        session = Client(f"{first}/mcp").session()
        there = Client(f"{second}/mcp", session.headers)

        listed = messages(there.post(request("tools/list")))[0]
        ended = serving.httpx.delete(there.url, headers=there.headers)

        assert len(listed["result"]["tools"]) >= 16
        assert ended.status_code == 200
        assert told(there) == GONE


def test_a_session_that_was_ended_on_another_server_is_gone_where_it_lives(database: Database, tmp_path: Path) -> None:
    settings = {"database_url": database.place} if database.engine == "postgres" else {}
    with serving.serving(tmp_path, **settings) as home, serving.serving(tmp_path, **settings) as other:
        session, neighbour = Client(f"{home}/mcp").session(), Client(f"{home}/mcp").session()
        there = Client(f"{other}/mcp", session.headers)

        ended = serving.httpx.delete(there.url, headers=there.headers)

        assert (ended.status_code, told(session), told(there)) == (200, GONE, GONE)
        assert neighbour.post(request("ping")).status_code == 200


def test_a_stream_ends_with_a_session_that_was_ended_on_another_server(tmp_path: Path) -> None:
    with serving.serving(tmp_path) as home, serving.serving(tmp_path) as other:
        session = Client(f"{home}/mcp").session()
        headers = session.headers | {"Accept": "text/event-stream"}
        with serving.httpx.stream("GET", session.url, headers=headers, timeout=20) as listening:
            serving.httpx.delete(f"{other}/mcp", headers=session.headers)
            refused = told(session)

            assert (refused, listening.read()) == (GONE, b"")


def test_a_request_id_in_use_is_refused_and_the_first_call_goes_on(probe: Client, folder: Path) -> None:
    session = probe.session()
    with serving.background(lambda: session.post(called("linger", {"mark": "twice", "seconds": 0.5}, id=5))) as first:
        until(lambda: marked(folder, "twice") == "started")

        again = [session.post(called("report", id=id)) for id in (5, "5")]

        assert [answer.status_code for answer in again] == [400, 400]
        assert "still in use" in again[0].json()["error"]["message"]
    assert messages(first.result())[-1]["result"]["structuredContent"] == {"done": True}
    assert marked(folder, "twice") == "finished"


def test_a_cancelled_call_ends_its_handler(probe: Client, folder: Path) -> None:
    session = probe.session()
    with serving.background(lambda: session.post(called("linger", {"mark": "legacy"}, id=9))):
        until(lambda: marked(folder, "legacy") == "started")

        cancelled = session.post(notification("notifications/cancelled", {"requestId": 9, "reason": "enough"}))

        assert cancelled.status_code == 202
        until(lambda: marked(folder, "legacy") == "cancelled")


def test_in_the_2026_era_hanging_up_ends_the_handler(probe: Client, folder: Path) -> None:
    for mark, meta in (("silent", {}), ("streamed", {"progressToken": "t"})):
        with serving.httpx.Client(timeout=1) as hasty, pytest.raises(serving.httpx.ReadTimeout):
            serving.modern_post(hasty, probe.url, called("linger", {"mark": mark}), meta)

        until(lambda mark=mark: marked(folder, mark) == "cancelled")  # type: ignore[misc]  # bound at once


@pytest.mark.parametrize("way", ["session", "bare", "modern"])
def test_progress_arrives_before_the_answer(probe: Client, way: str) -> None:
    call = called("report", progressToken="mine")
    client = probe.session() if way == "session" else probe

    arrived = messages(client.modern(call) if way == "modern" else client.post(call))

    steps = [(told["params"]["progressToken"], told["params"]["progress"]) for told in arrived[:-1]]
    assert steps == [("mine", 1), ("mine", 2), ("mine", 3)]
    assert arrived[-1]["result"]["structuredContent"] == {"done": True}


def test_without_a_token_there_is_no_progress(probe: Client) -> None:
    assert len(messages(probe.session().post(called("report")))) == 1


def test_progress_is_left_out_where_only_json_is_accepted(probe: Client) -> None:
    answer = probe.post(called("report", progressToken="mine"), Accept="application/json")

    assert answer.json()["result"]["structuredContent"] == {"done": True}


def test_a_session_that_accepts_json_alone_gets_json(probe: Client) -> None:
    session = probe.session(accept="application/json")

    assert session.post(called("report")).headers["content-type"] == "application/json"
