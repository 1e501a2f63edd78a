"""Clients as they are in the world: how they register, where they are answered, and documents that name them."""

import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from keepsake.auth.oauth import Refused
from keepsake.core.clock import DAY, HOUR, SECOND
from keepsake.core.errors import Unavailable
from keepsake.core.principal import local_owner
from keepsake.ops import clients
from keepsake.services import safefetch
from tests import watched
from tests.auth.conftest import Json, as_, at, opened
from tests.auth.flowing import AUTHORIZE, living, meeting, place, query
from tests.conftest import Database

#: What each registers with, and where it wants to be answered then.
CLIENTS: dict[str, tuple[list[str], str]] = {
    "Claude": (
        ["https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"],
        "https://claude.ai/api/mcp/auth_callback",
    ),
    "Claude Code": (["http://localhost/callback", "http://127.0.0.1/callback"], "http://localhost:54321/callback"),
    "Cursor": (
        [
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "https://www.cursor.com/agents/mcp/oauth/callback",
            "http://localhost:8787/callback",
        ],
        "cursor://anysphere.cursor-mcp/oauth/callback",
    ),
    "Visual Studio Code": (
        [
            "https://insiders.vscode.dev/redirect",
            "https://vscode.dev/redirect",
            "http://127.0.0.1/",
            "http://localhost/",
        ],
        "http://127.0.0.1:33418/",
    ),
    "ChatGPT": (
        ["https://chatgpt.com/connector_platform_oauth_redirect"],
        "https://chatgpt.com/connector_platform_oauth_redirect",
    ),
    "Codex": (["http://127.0.0.1:1455/callback"], "http://127.0.0.1:49152/callback"),
}
DOCUMENT = "https://claude.ai/oauth/claude-code-client-metadata"
WELL: Json = {
    "client_id": DOCUMENT,
    "client_name": "Claude Code",
    "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"],
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
}


async def test_every_client_is_answered_as_it_wants(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        await ada.sign_in()
        for name, (redirects, wanted) in CLIENTS.items():
            made = await ada.register(
                *redirects,
                client_name=name,
                application_type="web",
                grant_types=["authorization_code", "refresh_token"],
                response_types=["code"],
            )
            assert made["redirect_uris"] == redirects
            answer = await ada.allow(ada.asking(made["client_id"], redirect_uri=wanted))
            told = await ada.redeem(made["client_id"], query(answer)["code"], redirect_uri=wanted)
            assert told.status_code == 200, name


async def test_a_client_that_says_nothing_gets_a_secret(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        told = {"redirect_uris": ["https://a.example/cb"]}
        made = (await ada.http.post("/api/auth/mcp/register", json=told)).json()

        assert made["token_endpoint_auth_method"] == "client_secret_basic"
        assert len(made["client_secret"]) > 40


async def test_registrations_are_few_and_end_unless_they_are_used(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, environment = place(database)
    monkeypatch.setattr(clients, "PER_ADDRESS", 3)
    monkeypatch.setattr(clients, "MOST_UNUSED", 5)
    told = {"redirect_uris": ["https://a.example/cb"], "token_endpoint_auth_method": "none"}
    async with opened(folder, **environment) as app:

        async def registered(address: str, after: int = 0) -> str | int:
            try:
                return (await clients.register(at(app, app.now() + after), told, address)).client.client_id
            except Refused as refused:
                return refused.status

        first = [await registered("10.0.0.1") for _ in range(4)]
        assert [isinstance(one, str) for one in first] == [True, True, True, False]
        assert first[3] == 429
        second = [await registered("10.0.0.2") for _ in range(3)]
        assert second[2] == 429
        # A day later they are gone, so there is room again.
        assert isinstance(await registered("10.0.0.1", after=DAY + SECOND), str)
        listed = (await as_(app, local_owner(), "client.list")).model_dump()["clients"]
        assert len(listed) == 1
        late = at(app, app.now() + 3 * DAY)
        with pytest.raises(Refused):
            await clients.authenticated(late, listed[0]["client_id"], None)


class Web:
    """The host of a client's document."""

    def __init__(self, told: object) -> None:
        self.told, self.asked = told, 0

    async def __call__(self, url: str) -> bytes:
        self.asked += 1
        if isinstance(self.told, Exception):
            raise self.told
        return self.told if isinstance(self.told, bytes) else json.dumps(self.told).encode()


async def test_a_client_is_known_by_its_document(database: Database) -> None:
    folder, environment = place(database)
    web = Web(WELL)
    async with meeting(web, folder, **environment) as ada:
        asked = ada.asking(DOCUMENT, redirect_uri="http://localhost:54321/callback")
        # A stranger cannot make us read anything.
        assert (await ada.http.get(AUTHORIZE, params=asked)).status_code == 303
        assert web.asked == 0
        await ada.sign_in()
        page = await ada.http.get(AUTHORIZE, params=asked)
        assert "Claude Code named itself, at" in page.text
        assert "claude.ai" in page.text
        code = query(await ada.allow(asked))["code"]
        told = await ada.redeem(DOCUMENT, code, redirect_uri="http://localhost:54321/callback")
        assert told.status_code == 200
        assert web.asked == 1
        refreshed = await ada.refresh(DOCUMENT, told.json()["refresh_token"])
        assert refreshed.status_code == 200


async def test_a_document_is_read_anew_and_missed_for_a_while(tmp_path: Path) -> None:
    web = Web(WELL)
    async with opened(tmp_path) as app:
        first = await clients.met(app, DOCUMENT, web)
        web.told = {**WELL, "redirect_uris": ["https://claude.ai/other"]}
        assert (await clients.met(app, DOCUMENT, web)).redirects == first.redirects
        later = at(app, app.now() + HOUR + SECOND)
        assert (await clients.met(later, DOCUMENT, web)).redirects == ("https://claude.ai/other",)
        web.told = Unavailable("gone")
        assert (await clients.met(at(app, app.now() + 3 * HOUR), DOCUMENT, web)).id == first.id
        with pytest.raises(Refused):
            await clients.met(at(app, app.now() + 2 * DAY), DOCUMENT, web)
        await as_(app, local_owner(), "client.revoke", client_id=DOCUMENT)
        web.told = WELL
        with pytest.raises(Refused):
            await clients.met(at(app, app.now() + 2 * DAY), DOCUMENT, web)


@pytest.mark.parametrize(
    "told",
    [
        *({**WELL, "client_id": one} for one in (DOCUMENT + "/", DOCUMENT.upper(), "https://evil.example/c", None, 1)),
        *({**WELL, "redirect_uris": one} for one in ([], None, ["javascript:x"], ["http://evil.example/"], "x")),
        *({**WELL, "token_endpoint_auth_method": one} for one in ("client_secret_post", "private_key_jwt", 1)),
        *({**WELL, "client_name": one} for one in ("", "x" * 300, "a\u202eb", 1)),
        *({**WELL, more: "x"} for more in ("client_secret", "client_secret_expires_at")),
        *([], "x", 1, None, b"{", b"", b"\xff\xfe", b"[" * 60_000, Unavailable("no")),
    ],
    ids=lambda told: str(told)[:50],
)
async def test_a_document_that_is_not_the_clients_is_none(tmp_path: Path, told: object) -> None:
    async with opened(tmp_path) as app:
        with pytest.raises(Refused):
            await clients.met(app, DOCUMENT, Web(told))

        assert (await as_(app, local_owner(), "client.list")).model_dump()["clients"] == []


async def test_documents_can_be_left_unread(tmp_path: Path) -> None:
    web = Web(WELL)
    async with meeting(web, tmp_path, KEEPSAKE_CLIENT_DOCUMENTS="false") as ada:
        told = (await ada.http.get("/.well-known/oauth-authorization-server")).json()
        await ada.sign_in()
        answer = await ada.http.get(AUTHORIZE, params=ada.asking(DOCUMENT))

        assert told["client_id_metadata_document_supported"] is False
        assert (answer.status_code, web.asked) == (400, 0)


# --- reading at a stranger's address ---------------------------------------------------------------------------------


class Dialler(httpx.AsyncBaseTransport):
    """Notes whom we would have called, and answers instead."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.called: list[tuple[str, str, str]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        name = str(request.extensions.get("sni_hostname"))
        self.called.append((request.url.host, name, request.headers["host"]))
        return self.answer


class Body(httpx.AsyncByteStream):
    """An answer as it comes over a wire."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.content), 1_000):
            yield self.content[start : start + 1_000]


async def public(host: str) -> list[str]:
    return ["93.184.216.34"]


async def test_the_address_that_was_checked_is_the_one_called() -> None:
    dialler = Dialler(httpx.Response(200, stream=Body(b"{}")))

    assert await safefetch.fetched("https://a.example/c", public, dialler) == b"{}"
    assert dialler.called == [("93.184.216.34", "a.example", "a.example")]


@pytest.mark.parametrize(
    "url",
    [
        *(
            "https://127.0.0.1/c",
            "https://localhost/c",
            "https://[::1]/c",
            "https://10.0.0.1/c",
            "https://192.168.0.1/c",
        ),
        *("https://169.254.169.254/latest/meta-data", "https://100.100.100.200/c", "https://168.63.129.16/c"),
        *("https://192.0.0.192/c", "https://[fd00::1]/c", "https://[fe80::1]/c", "https://[::ffff:127.0.0.1]/c"),
        *("https://[64:ff9b::7f00:1]/c", "https://[2002:7f00:1::]/c", "https://[fec0::1]/c", "https://0.0.0.0/c"),
        *("https://2130706433/c", "https://0x7f.1/c", "https://0177.0.0.1/c", "https://127.1/c", "https://[::]/c"),
        *("http://a.example/c", "file:///etc/passwd", "ftp://a.example/c", "https://a.example:8443/c", "https:///c"),
        *(
            "https://user@a.example/c",
            "https://224.0.0.1/c",
            "https://255.255.255.255/c",
            "https://172.16.0.1/c",
            "gopher://x",
        ),
    ],
)
async def test_nothing_of_ours_is_called(url: str) -> None:
    dialler = Dialler(httpx.Response(200, content=b"{}"))

    with pytest.raises(Unavailable):
        await safefetch.fetched(url, transport=dialler)

    assert dialler.called == []


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(302, headers={"Location": "https://169.254.169.254/"}),
        httpx.Response(301, headers={"Location": "https://a.example/other"}),
        httpx.Response(404),
        httpx.Response(500),
        httpx.Response(200, stream=Body(b"x" * (safefetch.LARGEST + 1))),
    ],
    ids=["elsewhere", "moved", "gone", "broken", "large"],
)
async def test_an_answer_is_taken_as_it_is_or_not_at_all(answer: httpx.Response) -> None:
    dialler = Dialler(answer)

    with pytest.raises(Unavailable):
        await safefetch.fetched("https://a.example/c", public, dialler)

    assert len(dialler.called) == 1


class Rerouted(httpx.AsyncHTTPTransport):
    """A real connection, to the port of a server of ours."""

    def __init__(self, port: int, trusted: ssl.SSLContext) -> None:
        super().__init__(verify=trusted)
        self.port = port

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(port=self.port)
        return await super().handle_async_request(request)


async def test_the_certificate_must_be_that_of_the_name(tmp_path: Path) -> None:
    signer = watched.authority(tmp_path)
    trusted = ssl.create_default_context(cafile=str(signer.bundle))
    async with watched.web(body=b"{}", tls=signer.server(90)) as server:

        async def here(host: str) -> list[str]:
            return ["127.0.0.1"]

        read = await safefetch.fetched("https://localhost/c", here, Rerouted(server.port, trusted))
        # It has a certificate for the address too, but that is not whom we asked for.
        with pytest.raises(Unavailable):
            await safefetch.fetched("https://a.example/c", here, Rerouted(server.port, trusted))

    assert read == b"{}"
    assert len(server.heard) == 1
    assert "host: localhost\r\n" in server.heard[0].lower()
