"""A person with a browser and a client beside them, over real HTTP."""

import base64
import hashlib
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx

from keepsake.core.principal import local_owner
from keepsake.ops import clients
from keepsake.ops.clients import Fetch
from keepsake.surfaces.http import Site
from tests.auth.conftest import Json, Served, as_, opened, running
from tests.conftest import Database

PASSWORD = "correct horse battery staple"
CALLBACK = "http://127.0.0.1:33418/callback"
AUTHORIZE, TOKEN = "/api/auth/mcp/authorize", "/api/auth/mcp/token"
Fields = dict[str, str]


def place(database: Database) -> tuple[Path, dict[str, str]]:
    """The data folder and the settings that open a database."""
    if database.engine == "sqlite":
        return Path(database.place).parent, {}
    return Path("/nonexistent"), {"KEEPSAKE_DATABASE_URL": database.place}


def challenge(verifier: str) -> str:
    """The S256 of a verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def query(response: httpx.Response) -> Fields:
    """The fields of where an answer sends the browser."""
    return dict(parse_qsl(urlsplit(response.headers["location"]).query))


def hidden(page: str, name: str) -> str:
    """A field that people do not see, of the last form on a page."""
    found = re.findall(rf'name="{name}" value="([^"]*)"', page)
    assert found, page
    return unescape(found[-1])


def ticked(page: str) -> list[tuple[str, str]]:
    """What is ticked on a page."""
    return re.findall(r'type="checkbox" name="(scope|bank)" value="([^"]*)" checked', page)


@dataclass
class Person:
    """Someone with a browser."""

    server: Served
    http: httpx.AsyncClient
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    @property
    def base(self) -> str:
        return str(self.http.base_url).rstrip("/")

    async def sign_in(self, name: str = "ada", password: str = PASSWORD, next: str = "", **more: str) -> httpx.Response:
        """Fill in the form."""
        form = await self.http.get("/console/signin", params={"next": next})
        assert form.status_code == 200, form.text
        given = {"csrf": hidden(form.text, "csrf"), "next": hidden(form.text, "next"), "user": name}
        return await self.post("/console/signin", {**given, "password": password, **more})

    async def post(self, path: str, form: object, **headers: str) -> httpx.Response:
        """Send a form as a page of ours does."""
        return await self.http.post(path, data=form, headers={"Origin": self.base, **headers})  # type: ignore[arg-type]  # pairs

    async def register(self, *redirects: str, **metadata: object) -> Json:
        """A new client."""
        told = {"redirect_uris": list(redirects or (CALLBACK,)), "client_name": "Tea timer"}
        answer = await self.http.post(
            "/api/auth/mcp/register", json={"token_endpoint_auth_method": "none", **told, **metadata}
        )
        assert answer.status_code == 201, answer.text
        made: Json = answer.json()
        return made

    def asking(self, client: str, **fields: str | None) -> Fields:
        """What a client asks for."""
        asked: dict[str, str | None] = {
            "response_type": "code",
            "client_id": client,
            "redirect_uri": CALLBACK,
            "code_challenge": challenge(self.verifier),
            "code_challenge_method": "S256",
            "state": "xyz",
            "scope": "memory:read memory:write",
            "resource": f"{self.base}/mcp",
            **fields,
        }
        return {name: value for name, value in asked.items() if value is not None}

    async def allow(self, asked: Fields, *, untick: tuple[str, ...] = (), tick: tuple[str, ...] = ()) -> httpx.Response:
        """Look at the consent page and allow what is ticked on it."""
        page = await self.http.get(AUTHORIZE, params=asked)
        assert page.status_code == 200, page.text
        chosen = [(name, value) for name, value in ticked(page.text) if value not in untick]
        chosen += [("scope", one) for one in tick]
        pairs = [("csrf", hidden(page.text, "csrf")), ("allow", "yes"), *chosen]
        form: dict[str, list[str]] = {}
        for name, value in pairs:
            form.setdefault(name, []).append(value)
        headers = {"Origin": self.base}
        return await self.http.post(AUTHORIZE, params=asked, data=form, headers=headers)

    async def code(self, client: str, **fields: str | None) -> str:
        """A code, consented to."""
        answer = await self.allow(self.asking(client, **fields))
        assert answer.status_code == 303, answer.text
        return query(answer)["code"]

    async def token(self, form: dict[str, str | None]) -> httpx.Response:
        """Ask the token endpoint."""
        return await self.http.post(TOKEN, data={name: value for name, value in form.items() if value is not None})

    def redeeming(self, client: str, code: str, **fields: str | None) -> dict[str, str | None]:
        """How a code is redeemed."""
        return {
            "grant_type": "authorization_code",
            "client_id": client,
            "code": code,
            "redirect_uri": CALLBACK,
            "code_verifier": self.verifier,
            **fields,
        }

    async def redeem(self, client: str, code: str, **fields: str | None) -> httpx.Response:
        """Redeem a code."""
        return await self.token(self.redeeming(client, code, **fields))

    async def refresh(self, client: str, token: str, **fields: str | None) -> httpx.Response:
        """Refresh."""
        return await self.token({"grant_type": "refresh_token", "client_id": client, "refresh_token": token, **fields})

    async def tokens(self, client: str, **fields: str | None) -> Json:
        """Tokens, from consent to redemption."""
        answer = await self.redeem(client, await self.code(client, **fields))
        assert answer.status_code == 200, answer.text
        told: Json = answer.json()
        return told


@asynccontextmanager
async def living(folder: Path, role: str = "owner", **environment: str) -> AsyncIterator[Person]:
    """A server with ada on it, who has a password, and her browser."""
    async with meeting(clients.fetched, folder, role, **environment) as ada:
        yield ada


@asynccontextmanager
async def meeting(fetch: Fetch, folder: Path, role: str = "owner", /, **environment: str) -> AsyncIterator[Person]:
    """The same, where something else stands in for the hosts of clients."""
    async with opened(folder, **environment) as app, running(Site(app, fetch=fetch)) as server:
        me = local_owner()
        await as_(server.app, me, "user.add", name="ada", role=role)
        await as_(server.app, me, "user.password", name="ada", password=PASSWORD)
        async with browser(server) as http:
            yield Person(server, http)


@asynccontextmanager
async def browser(server: Served) -> AsyncIterator[httpx.AsyncClient]:
    """A browser with cookies of its own, which follows no redirect by itself."""
    async with httpx.AsyncClient(base_url=server.http.base_url, trust_env=False, timeout=30) as http:
        yield http
