"""Hooks that post from another machine."""

import json
from pathlib import Path

import httpx
import pytest

from keepsake.context import App
from keepsake.core.envelope import Envelope, packed
from keepsake.surfaces.http import Site
from tests.hooks.replaying import all_rows
from tests.hooks.running import start


@pytest.mark.parametrize(
    ("peer", "bank", "status"), [("203.0.113.9", "", 400), ("203.0.113.9", "api", 200), ("127.0.0.1", "", 200)]
)
async def test_a_folder_elsewhere_needs_a_bank(app: App, root: Path, peer: str, bank: str, status: int) -> None:
    transport = httpx.ASGITransport(app=Site(app).asgi(), client=(peer, 5_000))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        headers = {"X-Bank-Id": bank} if bank else {}

        answer = await client.post("/hooks/claude-code", json=start(root), headers=headers)

    assert answer.status_code == status
    assert len(await all_rows(app, "SELECT key FROM events")) == (status == 200)


async def test_an_event_of_our_own_is_cleaned_again(app: App, root: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    project = {"identity": "git:github.com/acme/my-api", "name": "my-api", "root": str(root), "branch": ""}
    said = f"Use {secret} <private>hush</private> now"
    envelope = Envelope("codex", "s", "prompt", 1_790_000_000_000_000, str(root), "k", said)
    line = {"envelope": packed(envelope), "project": project}
    transport = httpx.ASGITransport(app=Site(app).asgi(), client=("127.0.0.1", 5_000))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.post("/hooks/keepsake", content=json.dumps(line))

    assert answer.json() == {"taken": 1, "context": ""}
    (row,) = await all_rows(app, "SELECT envelope FROM events")
    assert secret not in row["envelope"] and "hush" not in row["envelope"]
