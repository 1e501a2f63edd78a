"""Proposals between several servers, and under servers that die: one change each, or none."""

import asyncio
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Database
from tests.stories.processes import Server, serving

TOKENS, RACERS = (10_000, 4) if os.environ.get("KEEPSAKE_SOAK") else (12, 16)
#: Tokens that are raced for at the same time, each over connections of its own.
LANES = 12
#: Servers that are killed, and proposals before each; what is left open of all of them must be allowed to stand.
KILLS, EACH = (20, 5) if os.environ.get("KEEPSAKE_SOAK") else (3, 20)


async def _asked(client: httpx.AsyncClient, server: Server, operation: str, /, **arguments: object) -> httpx.Response:
    return await client.post(f"{server.url}/v1/operations/{operation}", json=arguments, timeout=60)


async def _proposed(client: httpx.AsyncClient, server: Server, text: str) -> dict[str, Any]:
    wanted = {"bank": "story", "content": text}
    made = await _asked(client, server, "proposal.create", operation="memory.retain", arguments=wanted)
    told: dict[str, Any] = made.json()
    assert made.status_code == 200, told
    return told


async def _held(client: httpx.AsyncClient, server: Server) -> list[str]:
    held: list[str] = []
    while True:
        page = (await _asked(client, server, "memory.list", bank="story", limit=1_000, offset=len(held))).json()
        held += [memory["text"] for memory in page["memories"]]
        if len(held) >= page["total"] or not page["memories"]:
            return held


async def _raced(servers: list[Server]) -> list[list[int]]:
    """The answers that all racers for each token got."""
    outcomes: list[list[int]] = []
    waiting = iter(range(TOKENS))

    async def race() -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            for n in waiting:
                token = (await _proposed(client, servers[n % 2], f"Token {n}."))["token"]
                calls = [_asked(client, servers[k % 2], "proposal.apply", token=token) for k in range(RACERS)]
                outcomes.append(sorted(answer.status_code for answer in await asyncio.gather(*calls)))

    async with httpx.AsyncClient(trust_env=False) as client:
        await _asked(client, servers[0], "bank.create", name="story")
    await asyncio.gather(*(race() for _ in range(LANES)))
    return outcomes


def test_of_all_who_race_for_a_token_at_two_servers_one_wins(
    tmp_path: Path, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    async def held(server: Server) -> tuple[list[str], bool]:
        async with httpx.AsyncClient(trust_env=False) as client:
            return await _held(client, server), (await _asked(client, server, "audit.verify")).json()["ok"]

    url = database.place if database.engine == "postgres" else ""
    # Nothing is enriched meanwhile: that would take the cores from the race.
    with serving(tmp_path, url, worker="false") as one, serving(tmp_path, url, worker="false") as two:
        outcomes = asyncio.run(_raced([one, two]))
        texts, is_whole = asyncio.run(held(two))

    with capsys.disabled():
        print(f"\n{database.engine}: {len(outcomes)} tokens, {RACERS} racers each, {len(texts)} changes")
    assert outcomes == [[200] + [409] * (RACERS - 1)] * TOKENS
    assert sorted(texts) == sorted(f"Token {n}." for n in range(TOKENS))
    assert is_whole


def test_a_server_that_is_killed_has_made_a_change_and_said_so_or_neither(tmp_path: Path, database: Database) -> None:
    url = database.place if database.engine == "postgres" else ""

    async def until_killed(server: Server, cycle: int) -> list[dict[str, Any]]:
        async with httpx.AsyncClient(trust_env=False) as client:
            await _asked(client, server, "bank.create", name="story")
            made = [await _proposed(client, server, f"Kill {cycle}, change {n}.") for n in range(EACH)]
            tasks = [asyncio.create_task(_asked(client, server, "proposal.apply", token=one["token"])) for one in made]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            server.kill()
            await asyncio.gather(*tasks, return_exceptions=True)
        return made

    async def states(server: Server, made: list[dict[str, Any]]) -> tuple[dict[str, str], list[str]]:
        async with httpx.AsyncClient(trust_env=False) as client:
            found = {one["diff"].partition("+ content: ")[2]: one["id"] for one in made}
            asked = {text: await _asked(client, server, "proposal.get", id=id) for text, id in found.items()}
            return {text: answer.json()["state"] for text, answer in asked.items()}, await _held(client, server)

    made = [one for cycle in range(KILLS) for one in asyncio.run(until_killed(Server(tmp_path, url), cycle))]
    with serving(tmp_path, url) as server:
        standing, texts = asyncio.run(states(server, made))

    assert len(standing) == KILLS * EACH
    assert {text for text, state in standing.items() if state == "succeeded"} == set(texts)
    assert set(standing.values()) <= {"succeeded", "auto_ok"}
    assert len(texts) == len(set(texts)) >= KILLS
