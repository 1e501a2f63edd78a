"""An acknowledged write survives kill -9, on both stores, however often."""

import asyncio
import os
import random
from pathlib import Path

import httpx
import pytest

from tests.conftest import Database
from tests.stories.processes import Server, serving, tool

CYCLES = 100 if os.environ.get("KEEPSAKE_SOAK") else 10
WRITERS = 4


async def _write_until_killed(server: Server, cycle: int, seconds: float) -> list[str]:
    """Several clients write; the server dies under them; returns the ids that were acknowledged."""
    acknowledged: list[str] = []
    first = asyncio.Event()

    async def write(writer: int) -> None:
        async with httpx.AsyncClient() as client:
            for n in range(10_000):
                content = f"Cycle {cycle}, writer {writer}, memory {n}."
                arguments = {"bank": "story", "content": content}
                try:
                    reply = await client.post(f"{server.url}/v1/operations/memory.retain", json=arguments, timeout=10)
                except httpx.HTTPError:
                    return
                if reply.status_code == 200:
                    acknowledged.append(reply.json()["id"])
                    first.set()

    writers = [asyncio.create_task(write(n)) for n in range(WRITERS)]
    await asyncio.wait_for(first.wait(), 30)
    await asyncio.sleep(seconds)
    server.kill()
    await asyncio.gather(*writers)
    return acknowledged


def _missing(server: Server, ids: list[str]) -> list[str]:
    with httpx.Client() as client:
        held: set[str] = set()
        while True:
            page = tool(client, server.url, "list_memories", {"limit": 1000, "offset": len(held)})
            held |= {memory["id"] for memory in page["memories"]}
            if len(held) >= page["total"] or not page["memories"]:
                return [id for id in ids if id not in held]


def test_no_acknowledged_write_is_lost_when_the_server_is_killed(
    tmp_path: Path, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    url = database.place if database.engine == "postgres" else ""
    chosen = random.Random(CYCLES)
    acknowledged: list[str] = []
    lost: list[str] = []
    with serving(tmp_path, url) as server, httpx.Client() as client:
        tool(client, server.url, "update_bank", {"name": "Story"})

    for cycle in range(CYCLES):
        server = Server(tmp_path, url)
        acknowledged += asyncio.run(_write_until_killed(server, cycle, chosen.uniform(0.1, 0.4)))

    with serving(tmp_path, url) as server:
        lost = _missing(server, acknowledged)
        verified = httpx.post(f"{server.url}/v1/operations/audit.verify", json={}).json()

    with capsys.disabled():
        print(f"\n{database.engine}: {CYCLES} kills, {len(acknowledged)} acknowledged writes, {len(lost)} lost")
    assert len(acknowledged) >= CYCLES
    assert lost == []
    assert verified["ok"] is True
