"""The official suite's scenarios for authorization servers, with a person who signs in and consents."""

import asyncio
import json
import os
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx

from tests.auth.flowing import Person, living
from tests.conformance import suite
from tests.surfaces.helpers import free_port


async def consented(ada: Person, said: asyncio.StreamReader) -> str:
    """Open what the suite asks to be opened, and tell everything it said."""
    told = ""
    while line := (await said.readline()).decode():
        told += line
        if found := re.search(r"http://\S+/authorize\?\S+", line):
            answer = await ada.allow(dict(parse_qsl(urlsplit(found[0]).query)))
            async with httpx.AsyncClient(trust_env=False) as http:
                await http.get(answer.headers["location"])
    return told


async def test_the_authorization_scenarios_pass(tmp_path: Path) -> None:
    port = free_port()
    async with living(tmp_path / "data") as ada:
        await ada.sign_in()
        client = await ada.register(f"http://127.0.0.1:{port}/callback")
        command = [suite.installed(), str(suite.INDEX), "authorization", "--url", ada.base, "-p", str(port)]
        command += ["--client-id", client["client_id"], "--resource", f"{ada.base}/mcp", "-o", str(tmp_path / "out")]
        ran = await asyncio.create_subprocess_exec(
            *command,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "NO_COLOR": "1"},
        )
        assert ran.stdout
        async with asyncio.timeout(120):
            told = await consented(ada, ran.stdout)
            code = await ran.wait()

    checks = [check for file in (tmp_path / "out").glob("*/checks.json") for check in json.loads(file.read_text())]
    bad = {check["id"]: check["status"] for check in checks if check["status"] not in ("SUCCESS", "INFO")}
    assert (code, bad) == (0, {}), told
    assert {check["id"] for check in checks} >= {"authorization-server-metadata", "authorization-code-grant"}
