"""Several processes share one SQLite file and lose nothing."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.stories.processes import Stdio, serving, tool

EACH = 200 if os.environ.get("KEEPSAKE_SOAK") else 25


def test_three_stdio_servers_and_an_http_server_write_to_one_file_and_lose_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        clients = [Stdio(tmp_path, "--bank", "story") for _ in range(3)]

        def over_stdio(client: Stdio, writer: int) -> list[str]:
            written = [client.call("retain", {"content": f"Stdio {writer} says {n}."}) for n in range(EACH)]
            return [one["memory_id"] for one in written]

        def over_http() -> list[str]:
            with httpx.Client(timeout=60) as client:
                written = [tool(client, server.url, "retain", {"content": f"HTTP says {n}."}) for n in range(EACH)]
            return [one["memory_id"] for one in written]

        with ThreadPoolExecutor() as threads:
            futures = [threads.submit(over_stdio, client, n) for n, client in enumerate(clients)]
            futures.append(threads.submit(over_http))
            acknowledged = [id for future in futures for id in future.result()]
        with httpx.Client() as client:
            listed = tool(client, server.url, "list_memories", {"limit": 1000})
            verified = client.post(f"{server.url}/v1/operations/audit.verify", json={}).json()
        said = "".join(client.end() for client in clients)

    assert len(set(acknowledged)) == 4 * EACH
    assert {memory["id"] for memory in listed["memories"]} == set(acknowledged)
    assert "locked" not in said
    assert verified["ok"] is True


def test_what_one_process_stores_another_finds_at_once(tmp_path: Path) -> None:
    with serving(tmp_path) as server, httpx.Client() as client:
        stdio = Stdio(tmp_path, "--bank", "story")
        tool(client, server.url, "recall", {"query": "warm the cache of vectors"})

        stdio.call("retain", {"content": "The staging database moved to Dublin in March."})
        found = tool(client, server.url, "recall", {"query": "Where does the staging database live?"})
        stdio.end()

    assert [fact["text"] for fact in found["results"]] == ["The staging database moved to Dublin in March."]
