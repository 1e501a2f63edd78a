"""The rate limit: a fixed minute per key, exact under concurrency, whichever server is asked."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import httpx

from tests.auth.conftest import Served, bearer, made, opened, served
from tests.surfaces.helpers import serving

T = TypeVar("T")


async def within_a_minute(work: Callable[[str], Awaitable[T]]) -> T:
    """What work gives when no minute ended meanwhile; its argument is a name that was not used before."""
    while True:
        minute = time.time() // 60
        answer = await work(f"key of {time.time_ns()}")
        if time.time() // 60 == minute:
            return answer


async def listed_banks(server: Served, key: str | None) -> httpx.Response:
    return await server.mcp("tools/call", key, name="list_banks", arguments={})


async def test_two_servers_on_one_file_let_exactly_sixty_calls_through(tmp_path: Path) -> None:
    async def asked(name: str) -> list[httpx.Response]:
        async with opened(tmp_path) as app:
            key = (await made(app, name))["secret"]
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "list_banks", "arguments": {}},
        }
        headers = {"Accept": "application/json", **bearer(key)}
        return await asyncio.gather(
            *(client.post(f"{url}/mcp", json=message, headers=headers) for url in urls for _ in range(40))
        )

    with ExitStack() as stack:
        urls = [stack.enter_context(serving(tmp_path, "--json")).url for _ in range(2)]
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            answers = await within_a_minute(asked)

    assert Counter(answer.status_code for answer in answers) == {200: 60, 429: 20}
    left = sorted(int(answer.headers["X-RateLimit-Remaining"]) for answer in answers if answer.status_code == 200)
    assert left == list(range(60))


async def test_a_call_too_many_is_told_how_long_to_wait(tmp_path: Path) -> None:
    async def asked(name: str) -> list[httpx.Response]:
        key = (await made(server.app, name))["secret"]
        return [await listed_banks(server, key) for _ in range(3)]

    async with served(tmp_path, MCP_RATE_LIMIT_PER_MINUTE="2") as server:
        first, second, refused = await within_a_minute(asked)

    end = (int(time.time()) // 60 + 1) * 60
    assert [answer.headers["X-RateLimit-Remaining"] for answer in (first, second)] == ["1", "0"]
    assert (refused.status_code, refused.json()["error"]["code"], refused.json()["id"]) == (429, -32005, 1)
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.headers["X-RateLimit-Limit"] == "2"
    assert refused.headers["X-RateLimit-Remaining"] == "0"
    assert end - 60 <= int(refused.headers["X-RateLimit-Reset"]) <= end


async def test_only_calls_of_tools_are_counted(tmp_path: Path) -> None:
    async def asked(name: str) -> list[int]:
        key = (await made(server.app, name))["secret"]
        opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        free = [await server.mcp("initialize", key, **opening) for _ in range(3)]
        free += [await server.mcp("tools/list", key) for _ in range(3)]
        free += [await server.mcp("prompts/get", key, "/v1/mcp", name="session.init")]
        free += [await server.mcp("resources/read", key, "/v1/mcp", uri="xerotier://workspace/current/brief")]
        counted = [await listed_banks(server, key) for _ in range(2)]
        free += [await server.mcp("tools/list", key)]
        assert not any("X-RateLimit-Limit" in answer.headers for answer in free)
        return [answer.status_code for answer in (*free, *counted)]

    async with served(tmp_path, KEEPSAKE_RATE_LIMIT="1") as server:
        codes = await within_a_minute(asked)

    assert codes == [200] * 9 + [200, 429]


async def test_calls_over_rest_and_each_call_of_a_batch_are_counted(tmp_path: Path) -> None:
    async def asked(name: str) -> list[httpx.Response]:
        key = (await made(server.app, name))["secret"]
        call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "list_banks", "arguments": {}}}
        batch = [call | {"id": n} for n in range(3)]
        headers = {"Accept": "application/json", "MCP-Protocol-Version": "2025-03-26", **bearer(key)}
        return [
            await server.operation("bank.list", key),
            await server.http.post("/mcp", json=batch, headers=headers),
            await server.operation("bank.list", key),
        ]

    async with served(tmp_path, KEEPSAKE_RATE_LIMIT="4") as server:
        rest, batch, refused = await within_a_minute(asked)

    assert (rest.status_code, rest.headers["X-RateLimit-Remaining"]) == (200, "3")
    assert (batch.status_code, batch.headers["X-RateLimit-Remaining"], len(batch.json())) == (200, "0", 3)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limited")


async def test_keys_are_counted_apart_and_the_local_owner_not_at_all(tmp_path: Path) -> None:
    async with served(tmp_path, KEEPSAKE_RATE_LIMIT="1") as server:
        owner = [await listed_banks(server, None) for _ in range(3)]

        async def asked(name: str) -> list[int]:
            secrets = [(await made(server.app, f"{name} {n}"))["secret"] for n in range(2)]
            return [(await listed_banks(server, key)).status_code for key in secrets]

        keys = await within_a_minute(asked)

    assert [answer.status_code for answer in owner] == [200, 200, 200]
    assert not any("X-RateLimit-Limit" in answer.headers for answer in owner)
    assert keys == [200, 200]


async def test_the_tenant_key_is_counted_like_any_other(tmp_path: Path) -> None:
    async def asked(_: str) -> list[int]:
        return [(await listed_banks(server, "a-static-key")).status_code for _ in range(8)]

    async with served(tmp_path, HINDSIGHT_API_TENANT_API_KEY="a-static-key", KEEPSAKE_RATE_LIMIT="4") as server:
        codes = await within_a_minute(asked)

    assert codes[-1] == 429
