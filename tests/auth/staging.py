"""One server for many refusals, with a public client, and one that has a secret."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.auth.flowing import CALLBACK, Person, living

HTTPS = "https://claude.ai/api/mcp/auth_callback"
LONG = "x" * 5_000


@dataclass
class Stage:
    """Ada, who is signed in, and two clients of hers."""

    ada: Person
    client: str
    other: str
    secret: str


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Stage]:
    async with living(folder) as ada:
        client = await ada.register(CALLBACK, HTTPS, "cursor://anysphere.cursor-mcp/oauth/callback")
        other = await ada.register(token_endpoint_auth_method="client_secret_post")
        await ada.sign_in()
        yield Stage(ada, client["client_id"], other["client_id"], other["client_secret"])
