"""The official MCP client signs in, gets its tokens, asks for more when it must, and goes on after they end."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from keepsake.core.principal import local_owner
from tests.auth.conftest import as_
from tests.auth.flowing import CALLBACK, Person, living, meeting, place, query
from tests.auth.test_oauth_clients import DOCUMENT, WELL, Web
from tests.conftest import Database


@dataclass
class Storage:
    """Where the client keeps what it got."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@dataclass
class Agent:
    """An agent of ada's, whose browser it opens."""

    ada: Person
    storage: Storage = field(default_factory=Storage)
    asked: list[dict[str, str]] = field(default_factory=list)
    answer: dict[str, str] = field(default_factory=dict)

    async def open(self, url: str) -> None:
        """Show a page to ada, who allows what she is asked."""
        self.asked.append(dict(parse_qsl(urlsplit(url).query)))
        self.answer = query(await self.ada.allow(self.asked[-1]))

    async def back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**self.answer)

    def provider(self, path: str, scope: str | None = None, document: str | None = None) -> OAuthClientProvider:
        """The official client's own OAuth."""
        metadata = OAuthClientMetadata.model_validate(
            {"redirect_uris": [CALLBACK], "client_name": "Agent", "scope": scope, "token_endpoint_auth_method": "none"}
        )
        return OAuthClientProvider(
            self.ada.base + path, metadata, self.storage, self.open, self.back, client_metadata_url=document
        )

    async def call(self, path: str, tool: str, auth: OAuthClientProvider, **arguments: object) -> bool:
        """Call a tool, and tell whether it worked."""
        async with (
            httpx2.AsyncClient(auth=auth, trust_env=False) as http,
            streamable_http_client(self.ada.base + path, http_client=http) as (read, write),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            return not (await session.call_tool(tool, arguments)).is_error


async def test_the_official_client_connects_and_refreshes(database: Database) -> None:
    folder, environment = place(database)
    async with living(folder, **environment) as ada:
        await as_(ada.server.app, local_owner(), "bank.create", name="default")
        await ada.sign_in()
        agent = Agent(ada)
        auth = agent.provider("/mcp")
        assert await agent.call("/mcp", "retain", auth, content="Tea is at four.")
        assert len(agent.asked) == 1
        assert agent.asked[0]["resource"] == f"{ada.base}/mcp"
        first = agent.storage.tokens
        assert first and agent.storage.client
        # Its access token has ended: it refreshes by itself, and nobody is asked again.
        await ada.server.app.store.write(
            1, lambda tx: tx.run("UPDATE oauth_tokens SET expires_at = 1 WHERE kind = 'access'")
        )
        auth.context.token_expiry_time = 1.0
        assert await agent.call("/mcp", "list_memories", auth)
        assert agent.storage.tokens and agent.storage.tokens.refresh_token != first.refresh_token
        assert len(agent.asked) == 1


async def test_the_official_client_asks_for_more_when_it_must(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        await as_(ada.server.app, local_owner(), "bank.create", name="default")
        await ada.sign_in()
        agent = Agent(ada)
        # What it has got is narrower than what it wants to do.
        auth = agent.provider("/mcp")
        client = await ada.register(CALLBACK)
        told = await ada.tokens(client["client_id"], scope="memory:read")
        agent.storage.tokens = OAuthToken.model_validate(told)
        agent.storage.client = OAuthClientInformationFull.model_validate({**client, "issuer": ada.base})

        assert await agent.call("/mcp", "retain", auth, content="Tea is at four.")
        assert "memory:write" in agent.asked[-1]["scope"].split()


async def test_the_official_client_is_known_by_its_document(tmp_path: Path) -> None:
    web = Web({**WELL, "redirect_uris": [CALLBACK]})
    async with meeting(web, tmp_path) as ada:
        await ada.sign_in()
        agent = Agent(ada)

        assert await agent.call("/kiro/mcp", "search", agent.provider("/kiro/mcp", document=DOCUMENT), query="tea")
        assert agent.asked[0]["client_id"] == DOCUMENT
        assert web.asked == 1
