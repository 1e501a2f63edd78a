"""Where a request comes in: the usage log tells MCP, the web and the command line apart."""

import pytest
from starlette.requests import Request

from keepsake import settings
from keepsake.context import App
from keepsake.core.principal import local_owner
from keepsake.store.store import Store
from keepsake.surfaces.cli import reach
from keepsake.surfaces.plain import SURFACE, surface_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("headers", "surface"), [({}, "web"), ({SURFACE: "cli"}, "cli"), ({SURFACE: "mcp"}, "web")])
def test_plain_requests_come_from_the_web_unless_our_command_line_says_so(
    headers: dict[str, str], surface: str
) -> None:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    assert surface_of(Request({"type": "http", "headers": raw})) == surface


async def test_the_command_line_says_who_it_is_here_and_there(store: Store) -> None:
    app = App(settings.load({}), store)

    async with reach.connected(settings.load({"KEEPSAKE_URL": "http://127.0.0.1:1"})) as client:
        assert client.headers[SURFACE] == "cli"
    assert reach.Here(app, None).ctx.surface == "cli"
    assert app.ctx(local_owner()).surface == "mcp"
