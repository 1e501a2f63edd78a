"""Where a request comes in: nobody says it of themselves, because rights and the usage log hang on it; and how."""

from pathlib import Path

import pytest

from keepsake import settings
from keepsake.context import App
from keepsake.core.principal import local_owner
from keepsake.store.store import Store
from keepsake.surfaces import serve
from keepsake.surfaces.cli import reach
from keepsake.surfaces.http import Site
from tests.auth.conftest import served

pytestmark = pytest.mark.anyio


async def test_nobody_is_at_the_machine_who_asks_an_open_server_for_it(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        kept = (await server.operation("memory.retain", content="Tea is at four.")).json()
        wanted = {"operation": "memory.forget", "arguments": {"id": kept["id"]}}
        made = (await server.operation("proposal.create", **wanted)).json()

        decided = await server.http.post(
            "/v1/operations/proposal.decide",
            json={"id": made["id"], "approve": True},
            headers={"X-Keepsake-Surface": "cli"},
        )
        after = await server.http.post("/v1/operations/proposal.get", json={"id": made["id"]})

        assert (made["state"], decided.status_code) == ("pending_approval", 403)
        assert "without KEEPSAKE_URL" in decided.text
        assert after.json()["state"] == "pending_approval"


async def test_the_command_line_is_at_the_machine_only_where_it_opens_the_store_itself(store: Store) -> None:
    app = App(settings.load({}), store)

    assert reach.Here(app, None).ctx.surface == "cli"
    assert app.ctx(local_owner()).surface == "mcp"


async def test_an_idle_connection_is_closed_by_the_client_first(store: Store) -> None:
    # httpx keeps one for 5 s, nginx for 60, Google's load balancer for 600. Closed by us in the moment in which it is
    # used again, the request is lost, and its sender cannot know whether it was done.
    assert serve.configured(Site(App(settings.load({}), store))).timeout_keep_alive > 600
