"""What OAuth must refuse: fields missing, doubled, oversized, of the wrong kind; and every trick with redirects."""

from collections.abc import AsyncIterator
from urllib.parse import quote, urlencode

import pytest

from tests.auth.flowing import AUTHORIZE, CALLBACK, challenge, query
from tests.auth.staging import HTTPS, LONG, Stage, staged


@pytest.fixture(scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with staged(tmp_path_factory.mktemp("data")) as stage:
        yield stage


# --- registration ----------------------------------------------------------------------------------------------------

BAD_REDIRECTS = [
    *("javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "file:///etc/passwd", "ftp://a.example/cb"),
    *("http://evil.example/cb", "http://127.0.0.1.evil.example/cb", "http://localhost.evil.example/cb"),
    *("http://localhost@evil.example/cb", "https://user@a.example/cb", "https://user:pw@a.example/cb"),
    *("http://127.0.0.1:80@evil.example/", "https://a.example/cb#", "https://a.example/cb#x", "http://127.0.0.1/cb#x"),
    *("HTTPS://a.example/cb", "https://A.example/cb", "HTTP://localhost/cb", "http://LOCALHOST/cb", "https:///cb"),
    *("https://", "https://a..example/cb", "https://-a.example/cb", "https://a.example-/cb", "//a.example/cb"),
    *("/cb", "", " ", "https://a.example/c b", "https://a.example/\tcb", "https://a.example\\@b.example/cb"),
    *("https:\\\\a.example\\cb", "https://a.example:0/cb", "https://a.example:65536/cb", "https://a.example:x/cb"),
    *("http://127.0.0.1:99999/cb", "http://127.1/cb", "http://2130706433/cb", "http://0.0.0.0/cb", "http://[::]/cb"),
    *(
        "http://127.0.0.2/cb",
        "http://[::ffff:127.0.0.1]/cb",
        "cursor://evil/oauth/callback",
        "vscode://x/cb",
        "app:/cb",
    ),
    *("cursor://anysphere.cursor-mcp/oauth/callback/", "CURSOR://anysphere.cursor-mcp/oauth/callback"),
    *("https://ä.example/cb", "https://a.example/ä", "https://a.example?x", "urn:ietf:wg:oauth:2.0:oob"),
    *("https://a.example/" + "x" * 2_048, "https://*.example/cb", "https://a.example/<script>"),
]


@pytest.mark.parametrize("uri", BAD_REDIRECTS)
async def test_a_redirect_that_leads_astray_is_not_registered(stage: Stage, uri: str) -> None:
    for uris in ([uri], [HTTPS, uri]):
        told = {"redirect_uris": uris, "token_endpoint_auth_method": "none"}
        answer = await stage.ada.http.post("/api/auth/mcp/register", json=told)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")


BAD_METADATA: list[object] = [
    *([], None, "x", 1, {"redirect_uris": HTTPS}, {"redirect_uris": []}, {"redirect_uris": [1]}, {}),
    *({"redirect_uris": [HTTPS] * 11}, {"redirect_uris": None}, {"redirect_uris": {"a": HTTPS}}),
    *({"redirect_uris": [HTTPS], "token_endpoint_auth_method": one} for one in ("private_key_jwt", "", None, 1)),
    *({"redirect_uris": [HTTPS], "client_name": one} for one in ("", " ", 1, None, "x" * 201, "a\u202eb", "a\nb")),
    *({"redirect_uris": [HTTPS], "grant_types": one} for one in ([], ["password"], "authorization_code", [1], None)),
    *({"redirect_uris": [HTTPS], "response_types": one} for one in ([], ["token"], "code", None)),
    *({"redirect_uris": [HTTPS], "scope": one} for one in (1, ["memory:read"], LONG)),
]


@pytest.mark.parametrize("told", BAD_METADATA, ids=lambda told: str(told)[:60])
async def test_a_client_that_describes_itself_wrongly_is_not_registered(stage: Stage, told: object) -> None:
    answer = await stage.ada.http.post("/api/auth/mcp/register", json=told)

    assert answer.status_code == 400
    assert answer.json()["error"] in ("invalid_client_metadata", "invalid_redirect_uri")


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b'{"redirect_uris": ["https://a.example/cb"], "redirect_uris": []}', "application/json", 400),
        (b'{"redirect_uris": ["https://a.example/cb"]}', "text/plain", 400),
        (b"\xff", "application/json", 400),
        (b"[" * 10_000, "application/json", 400),
        (b'{"client_name": "' + b"x" * 20_000 + b'"}', "application/json", 413),
    ],
)
async def test_a_registration_that_cannot_be_read_is_refused(stage: Stage, body: bytes, kind: str, status: int) -> None:
    answer = await stage.ada.http.post("/api/auth/mcp/register", content=body, headers={"Content-Type": kind})

    assert (answer.status_code, answer.json()["error"]) == (status, "invalid_client_metadata")
    # No setting makes room for a client that has more to say.
    assert "KEEPSAKE_" not in answer.text


# --- authorization: what is told on a page of ours, and nowhere else --------------------------------------------------

BAD_CLIENTS = [
    *(
        None,
        "",
        "unknown",
        "x" * 3_000,
        "a\x00b",
        "a\nb",
        "https://claude.ai",
        "https://claude.ai/",
        "http://a.example/c",
    ),
    *("https://a.example:8443/c", "https://u@a.example/c", "https://a.example/c#f", "https://a.example/../c"),
    *("https://a.example/%2e%2e/c", "https://a.example/c?x=1", "https://127.0.0.1/c", "https://localhost/c"),
    *("https://[::1]/c", "https://169.254.169.254/latest", "https://2130706433/c", "file:///etc/passwd"),
]


@pytest.mark.parametrize("client", BAD_CLIENTS)
async def test_an_unknown_client_is_answered_on_a_page(stage: Stage, client: str | None) -> None:
    asked = {name: value for name, value in stage.ada.asking(client or "").items() if value or client == ""}
    answer = await stage.ada.http.get(AUTHORIZE, params=asked)

    assert (answer.status_code, "location" in answer.headers) == (400, False)
    assert "Nothing was allowed" in answer.text


WRONG_REDIRECTS = [
    *(None, "", HTTPS + "/", HTTPS + "?x=1", HTTPS + "#x", HTTPS.upper(), "https://claude.ai/api/mcp/auth_callbac"),
    *("https://claude.ai.evil.example/api/mcp/auth_callback", "https://evil.example/api/mcp/auth_callback"),
    *("https://claude.ai:443/api/mcp/auth_callback", "https://claude.ai:8443/api/mcp/auth_callback"),
    *("https://x@claude.ai/api/mcp/auth_callback", "http://claude.ai/api/mcp/auth_callback", "javascript:alert(1)"),
    *("https://claude.ai/api/mcp/../mcp/auth_callback", "https://claude.ai/api/mcp/auth%5Fcallback"),
    *(
        "https://claude.ai\\@evil.example/api/mcp/auth_callback",
        " " + HTTPS,
        HTTPS + "\n",
        HTTPS + " https://evil.example",
    ),
    *("http://localhost:33418/callback", "http://127.0.0.1:33418/callback/x", "http://127.0.0.1:33418/Callback"),
    *("http://127.0.0.1:33418@evil.example/callback", "http://127.0.0.1:33418.evil.example/callback"),
    *("http://127.0.0.1:99999/callback", "http://127.0.0.1:0/callback", "http://127.0.0.1:x/callback"),
    *("https://127.0.0.1:33418/callback", "http://127.0.0.1:33418/callback?x=1", "http://[::1]:33418/callback"),
    *("http://127.0.0.1:33418/callback#x", "http://2130706433:33418/callback", "http://127.0.0.1\\:1/callback"),
    *("cursor://anysphere.cursor-mcp/oauth/callback2", "cursor://anysphere.cursor-mcp:1/oauth/callback", "x" * 3_000),
]


@pytest.mark.parametrize("redirect", WRONG_REDIRECTS)
async def test_a_client_is_never_answered_elsewhere(stage: Stage, redirect: str | None) -> None:
    asked = stage.ada.asking(stage.client, redirect_uri=redirect)
    for answer in (
        await stage.ada.http.get(AUTHORIZE, params=asked),
        await stage.ada.post(f"{AUTHORIZE}?{urlencode(asked)}", {"allow": "yes"}),
    ):
        assert (answer.status_code, "location" in answer.headers) == (400, False)


@pytest.mark.parametrize("field", ["client_id", "redirect_uri"])
async def test_two_clients_or_places_are_none(stage: Stage, field: str) -> None:
    asked = stage.ada.asking(stage.client)
    for more in (asked[field], "other", ""):
        answer = await stage.ada.http.get(f"{AUTHORIZE}?{urlencode(asked)}&{field}={quote(more)}")
        assert (answer.status_code, "location" in answer.headers) == (400, False)


@pytest.mark.parametrize(
    "redirect",
    [
        CALLBACK,
        "http://127.0.0.1:1/callback",
        "http://127.0.0.1/callback",
        "http://127.0.0.1:65535/callback",
        HTTPS,
        "cursor://anysphere.cursor-mcp/oauth/callback",
    ],
)
async def test_a_client_is_answered_where_it_said(stage: Stage, redirect: str) -> None:
    answer = await stage.ada.allow(stage.ada.asking(stage.client, redirect_uri=redirect))

    assert answer.status_code == 303
    assert answer.headers["location"].startswith(f"{redirect}?code=")


@pytest.mark.parametrize(
    ("redirect", "target"),
    [
        (CALLBACK, "http://127.0.0.1:*"),
        (HTTPS, "https:"),
        ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor:"),
    ],
)
async def test_a_page_lets_its_form_lead_to_the_client(stage: Stage, redirect: str, target: str) -> None:
    page = await stage.ada.http.get(AUTHORIZE, params=stage.ada.asking(stage.client, redirect_uri=redirect))
    policy = page.headers["content-security-policy"].split("form-action ")[1].split()

    assert target in policy
    assert not {"*", "http:"} & set(policy)


# --- authorization: what the client is told --------------------------------------------------------------------------

WELL = challenge("v" * 43)
TOLD: list[tuple[str, str | None, str]] = [
    *(("response_type", one, "unsupported_response_type") for one in ("token", "id_token", "code token", "CODE")),
    *(("response_type", one, "invalid_request") for one in (None, "", LONG)),
    *(("code_challenge", one, "invalid_request") for one in (None, "", "x", WELL[:-1], WELL + "A", WELL[:-1] + "=")),
    *(("code_challenge", one, "invalid_request") for one in (WELL[:-1] + " ", WELL[:-1] + "+", LONG)),
    *(("code_challenge_method", one, "invalid_request") for one in (None, "", "plain", "s256", "S512", LONG)),
    *(("scope", one, "invalid_scope") for one in ("admin", "memory:read admin", "openid", "MEMORY:READ", 'a"b', "*")),
    *(("scope", one, "invalid_scope") for one in ("memory:read,memory:write", "memory:" + "x" * 2_100)),
    ("scope", "memory:read\tmemory:write", "invalid_request"),
    *(("resource", one, "invalid_target") for one in ("https://evil.example/mcp", "/mcp", "x", "http://127.0.0.1/mcp")),
    *(("resource", f"BASE{one}", "invalid_target") for one in ("/v1/operations", "/nothing", "/mcp?x=1", "/mcp#x")),
    *(
        ("resource", f"BASE{one}", "invalid_target")
        for one in ("@evil.example/mcp", ".evil.example/mcp", "//", "0/mcp")
    ),
    ("resource", LONG, "invalid_target"),
    ("request", "x.y.z", "request_not_supported"),
    ("request_uri", "https://evil.example/", "request_not_supported"),
    ("response_mode", "fragment", "invalid_request"),
    ("response_mode", "form_post", "invalid_request"),
    ("state", LONG, "invalid_request"),
    ("state", "a\nb", "invalid_request"),
]


@pytest.mark.parametrize(("field", "value", "error"), TOLD, ids=lambda one: str(one)[:40])
async def test_a_client_that_asks_wrongly_is_told(stage: Stage, field: str, value: str | None, error: str) -> None:
    value = value.replace("BASE", stage.ada.base) if value else value
    answer = await stage.ada.http.get(AUTHORIZE, params=stage.ada.asking(stage.client, **{field: value}))

    told = query(answer)
    assert answer.headers["location"].startswith(CALLBACK + "?")
    assert (told["error"], told["iss"]) == (error, stage.ada.base)
    assert "code" not in told
    assert ("state" in told) == (field != "state")


DOUBLED = ["response_type", "code_challenge", "code_challenge_method", "scope", "state", "resource"]


@pytest.mark.parametrize("field", DOUBLED)
async def test_a_field_that_is_there_twice_is_refused(stage: Stage, field: str) -> None:
    asked = stage.ada.asking(stage.client)
    answer = await stage.ada.http.get(f"{AUTHORIZE}?{urlencode(asked)}&{field}={quote(asked[field])}")

    assert query(answer)["error"] == ("invalid_target" if field == "resource" else "invalid_request")


async def test_a_query_without_end_is_refused(stage: Stage) -> None:
    answer = await stage.ada.http.get(f"{AUTHORIZE}?{urlencode(stage.ada.asking(stage.client))}&x={'x' * 9_000}")

    assert answer.status_code == 400


@pytest.mark.parametrize("slash", ["/mcp", "/mcp/", "/", ""])
async def test_one_slash_more_is_the_same_resource(stage: Stage, slash: str) -> None:
    code = await stage.ada.code(stage.client, resource=stage.ada.base + slash)
    answer = await stage.ada.redeem(stage.client, code, resource=stage.ada.base + slash.rstrip("/"))

    assert answer.status_code == 200
