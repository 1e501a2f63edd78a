"""What the token endpoints must refuse: codes, refresh tokens and clients that are not what they should be."""

import base64
import random
from collections.abc import AsyncIterator
from urllib.parse import quote, urlencode

import pytest

from tests.auth.flowing import AUTHORIZE, CALLBACK, TOKEN
from tests.auth.staging import HTTPS, LONG, Stage, staged


@pytest.fixture(scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with staged(tmp_path_factory.mktemp("data")) as stage:
        yield stage


REDEEMING: list[tuple[str, str | None, str, int]] = [
    *(("grant_type", one, "unsupported_grant_type", 400) for one in ("password", "client_credentials", "implicit")),
    *(("grant_type", one, "invalid_request", 400) for one in (None, "", LONG)),
    *(("client_id", one, "invalid_client", 401) for one in (None, "", "unknown", "x" * 3_000)),
    *(("code", one, "invalid_request", 400) for one in (None, "", LONG, "a\x00b")),
    *(("code", one, "invalid_grant", 400) for one in ("x", "ks_oauth_c" + "0" * 64)),
    *(("redirect_uri", one, "invalid_request", 400) for one in (None, "", LONG)),
    *(("redirect_uri", one, "invalid_grant", 400) for one in (HTTPS, "http://127.0.0.1:1/callback", CALLBACK + "/")),
    *(("code_verifier", one, "invalid_request", 400) for one in (None, "", LONG)),
    *(("code_verifier", one, "invalid_grant", 400) for one in ("x" * 43, "short", "x" * 129, "ä" * 43)),
    *(("resource", one, "invalid_target", 400) for one in ("https://evil.example/mcp", "x", "BASE/kiro/mcp", "BASE")),
    ("client_secret", "guess", "invalid_client", 401),
]


@pytest.mark.parametrize(("field", "value", "error", "status"), REDEEMING, ids=lambda one: str(one)[:40])
async def test_a_code_alone_is_worth_nothing(
    stage: Stage, field: str, value: str | None, error: str, status: int
) -> None:
    ada, code = stage.ada, await stage.ada.code(stage.client)
    value = value.replace("BASE", ada.base) if value else value
    answer = await ada.token({**ada.redeeming(stage.client, code), field: value})

    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "wrong", [{"code_verifier": "x" * 43}, {"redirect_uri": HTTPS}, {"resource": "https://a.example"}]
)
async def test_a_wrong_guess_uses_the_code_up(stage: Stage, wrong: dict[str, str]) -> None:
    code = await stage.ada.code(stage.client)
    await stage.ada.redeem(stage.client, code, **wrong)
    answer = await stage.ada.redeem(stage.client, code)

    assert answer.json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    "field", ["grant_type", "client_id", "code", "redirect_uri", "code_verifier", "resource", "client_secret"]
)
async def test_a_doubled_field_gets_no_token(stage: Stage, field: str) -> None:
    ada = stage.ada
    form = {**ada.redeeming(stage.client, await ada.code(stage.client)), "resource": f"{ada.base}/mcp"}
    pairs = urlencode({name: value for name, value in form.items() if value})
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await ada.http.post(TOKEN, content=f"{pairs}&{field}=x&{field}=x", headers=kind)

    assert answer.json()["error"] == "invalid_request"


async def test_another_client_cannot_use_a_code(stage: Stage) -> None:
    ada, code = stage.ada, await stage.ada.code(stage.client)
    answer = await ada.redeem(stage.other, code, client_secret=stage.secret)

    assert answer.json()["error"] == "invalid_grant"


async def test_a_code_that_is_used_again_ends_what_came_of_it(stage: Stage) -> None:
    ada, code = stage.ada, await stage.ada.code(stage.client, resource=None)
    told = (await ada.redeem(stage.client, code)).json()
    assert (await ada.server.operation("memory.list", told["access_token"])).status_code == 200

    assert (await ada.redeem(stage.client, code)).json()["error"] == "invalid_grant"
    assert (await ada.server.operation("memory.list", told["access_token"])).status_code == 401
    assert (await ada.refresh(stage.client, told["refresh_token"])).json()["error"] == "invalid_grant"


@pytest.mark.parametrize("content", [b"\xff\xfe", b"{}", b"x" * 20_000, b""])
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "application/json", "multipart/form-data", ""])
async def test_a_body_that_is_no_form_gets_no_token(stage: Stage, content: bytes, kind: str) -> None:
    answer = await stage.ada.http.post(TOKEN, content=content, headers={"Content-Type": kind})

    assert answer.status_code in (400, 413)
    assert answer.json()["error"] == "invalid_request"


def basic(id: str, secret: str) -> dict[str, str]:
    """How a client says who it is in a header."""
    return {"Authorization": "Basic " + base64.b64encode(f"{quote(id)}:{quote(secret)}".encode()).decode()}


async def test_a_client_with_a_secret_must_tell_it(stage: Stage) -> None:
    ada, id, secret = stage.ada, stage.other, stage.secret
    form: dict[str, str] = {"grant_type": "refresh_token", "refresh_token": "x"}
    for more, headers in (
        ({"client_id": id}, {}),
        ({"client_id": id, "client_secret": ""}, {}),
        ({"client_id": id, "client_secret": secret + "x"}, {}),
        ({}, basic(id, "x")),
        ({}, basic("x", secret)),
        ({}, {"Authorization": "Basic !!!"}),
        ({}, {"Authorization": "Basic " + base64.b64encode(b"x").decode()}),
        ({"client_id": id}, {"Authorization": "Bearer x"}),
    ):
        answer = await ada.http.post(TOKEN, data={**form, **more}, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client"), more
        assert answer.headers["www-authenticate"]
    for more, headers in (({"client_secret": secret}, basic(id, secret)), ({"client_id": "x"}, basic(id, secret))):
        answer = await ada.http.post(TOKEN, data={**form, **more}, headers=headers)
        assert answer.json()["error"] == "invalid_request", more
    # Who it is was proven, so what is wrong now is the token.
    assert (await ada.http.post(TOKEN, data=form, headers=basic(id, secret))).json()["error"] == "invalid_grant"


REFRESHING: list[tuple[str, str | None, str]] = [
    *(("refresh_token", one, "invalid_request") for one in (None, "", LONG)),
    *(("refresh_token", one, "invalid_grant") for one in ("x", "ks_oauth_r" + "0" * 64, "ACCESS")),
    *(("scope", one, "invalid_scope") for one in ("memory:delete", "memory:read bank:admin", "admin", "x")),
    *(("resource", one, "invalid_target") for one in ("https://evil.example", "BASE/kiro/mcp")),
]


@pytest.mark.parametrize(("field", "value", "error"), REFRESHING, ids=lambda one: str(one)[:40])
async def test_a_refresh_gives_no_more_than_there_was(stage: Stage, field: str, value: str | None, error: str) -> None:
    ada = stage.ada
    told = await ada.tokens(stage.client)
    value = value.replace("BASE", ada.base).replace("ACCESS", told["access_token"]) if value else value
    form: dict[str, str | None] = {"grant_type": "refresh_token", "client_id": stage.client}
    answer = await ada.token({**form, "refresh_token": told["refresh_token"], field: value})

    assert answer.json()["error"] == error
    # What was refused has cost nothing.
    assert (await ada.refresh(stage.client, told["refresh_token"], scope="memory:read")).status_code == 200


async def test_another_client_cannot_refresh_or_revoke_or_look(stage: Stage) -> None:
    ada = stage.ada
    told = await ada.tokens(stage.client, resource=None)
    stranger = {"client_id": stage.other, "client_secret": stage.secret}
    refreshed = await ada.refresh(stage.other, told["refresh_token"], client_secret=stage.secret)
    assert refreshed.json()["error"] == "invalid_grant"
    for token in (told["access_token"], told["refresh_token"]):
        revoked = await ada.http.post("/api/auth/mcp/revoke", data={**stranger, "token": token})
        looked = await ada.http.post("/api/auth/mcp/introspect", data={**stranger, "token": token})
        assert (revoked.status_code, looked.json()) == (200, {"active": False})

    assert (await ada.server.operation("memory.list", told["access_token"])).status_code == 200


@pytest.mark.parametrize("endpoint", ["revoke", "introspect"])
@pytest.mark.parametrize(
    ("form", "error"),
    [
        ("", "invalid_client"),
        ("token=x", "invalid_client"),
        ("client_id=unknown&token=x", "invalid_client"),
        ("client_id=CLIENT", "invalid_request"),
        ("client_id=CLIENT&token=", "invalid_request"),
        ("client_id=CLIENT&token=x&token=y", "invalid_request"),
        ("client_id=CLIENT&client_id=CLIENT&token=x", "invalid_request"),
        (f"client_id=CLIENT&token={LONG}", "invalid_request"),
        ("client_id=CLIENT&client_secret=x&token=x", "invalid_client"),
        ("client_id=OTHER&token=x", "invalid_client"),
    ],
)
async def test_tokens_are_told_of_and_ended_for_clients_only(
    stage: Stage, endpoint: str, form: str, error: str
) -> None:
    content = form.replace("CLIENT", stage.client).replace("OTHER", stage.other)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await stage.ada.http.post(f"/api/auth/mcp/{endpoint}", content=content, headers=kind)

    assert answer.json()["error"] == error


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "HEAD"])
@pytest.mark.parametrize("path", ["token", "register", "revoke", "introspect"])
async def test_programs_post(stage: Stage, method: str, path: str) -> None:
    assert (await stage.ada.http.request(method, f"/api/auth/mcp/{path}")).status_code == 405


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", AUTHORIZE),
        ("DELETE", AUTHORIZE),
        ("PUT", "/console/signin"),
        ("GET", "/console/signout"),
        ("POST", "/.well-known/oauth-authorization-server"),
        ("POST", "/.well-known/oauth-protected-resource/mcp"),
    ],
)
async def test_pages_and_documents_take_their_own_methods(stage: Stage, method: str, path: str) -> None:
    assert (await stage.ada.http.request(method, path)).status_code == 405


BEARERS = ["ks_oauth_a" + "0" * 64, "ks_oauth_a", "ks_oauth_", "REFRESH", "CODE", "ks_oauth_a" + "x" * 9_000]


@pytest.mark.parametrize("bearer", BEARERS, ids=lambda one: one[:12])
async def test_nothing_but_an_access_token_is_a_bearer(stage: Stage, bearer: str) -> None:
    ada = stage.ada
    code = await ada.code(stage.client, resource=None)
    told = await ada.tokens(stage.client, resource=None)
    token = bearer.replace("REFRESH", told["refresh_token"]).replace("CODE", code)

    assert (await ada.server.operation("memory.list", token)).status_code == 401
    assert (await ada.server.http.post(f"/v1/operations/memory.list?access_token={token}", json={})).status_code == 401


JUNK = [
    "",
    " ",
    "\x00",
    "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    "ä",
    "🫖",
    "%",
    "%zz",
    "&=;",
    "[]",
    "{}",
]
NAMES = (
    "client_id redirect_uri code code_verifier grant_type refresh_token token scope resource state csrf next".split()
)


async def test_no_junk_breaks_anything(stage: Stage) -> None:
    rng, ada = random.Random(7), stage.ada
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Origin": ada.base}
    worst = 0
    for _ in range(400):
        known = [stage.client, CALLBACK, "code", "S256", "authorization_code", "refresh_token", "*", "yes"]
        fields = [(rng.choice(NAMES), rng.choice([*JUNK, *known]) * rng.choice([1, 1, 1, 50])) for _ in range(6)]
        told = urlencode(fields) if rng.random() < 0.8 else "".join(map(chr, rng.choices(range(33, 127), k=80)))
        path = rng.choice(["token", "revoke", "introspect", "register"])
        page = rng.choice([AUTHORIZE, "/console/signin", "/console/signout"])
        answers = [
            await ada.http.post(f"/api/auth/mcp/{path}", content=told, headers=kind),
            await ada.http.get(f"{page}?{quote(told, safe='=&%')}"),
            await ada.http.post(f"{AUTHORIZE}?{quote(told, safe='=&%')}", content=told, headers=kind),
        ]
        worst = max(worst, *(answer.status_code for answer in answers))
        assert all("Traceback" not in answer.text for answer in answers)

    assert worst < 500
