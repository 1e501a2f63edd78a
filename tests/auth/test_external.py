"""Tokens that others issue, over real HTTP: signed, meant for us and in time, or they are nothing."""

import json
import time
from pathlib import Path

import jwt
import pytest
from jwt.algorithms import get_default_algorithms

from keepsake.auth import external
from keepsake.core import issuers, log
from keepsake.core.errors import Unauthenticated
from keepsake.core.principal import Principal, local_owner
from tests.auth.conftest import as_, bearer, made, opened, served
from tests.auth.issuing import AUDIENCE, HERE, SECRET, Signer, claims, listed, named, publishing
from tests.auth.test_limits import within_a_minute


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_a_good_token_is_taken_at_keystone_and_nowhere_else(tmp_path: Path, algorithm: str) -> None:
    signer = Signer.of(algorithm)
    with publishing(Signer.of("RS256", "other"), signer) as publisher:
        async with served(tmp_path, KEEPSAKE_JWT_ISSUERS=named(publisher)) as server:
            taken = await listed(server, signer.token())
            again = await listed(server, signer.token(aud=["another", AUDIENCE]))
            elsewhere = [await listed(server, signer.token(), path) for path in ("/mcp", "/kiro/mcp")]
            rest = await server.operation("bank.list", signer.token())

    assert (taken.status_code, taken.json()["result"]["structuredContent"]) == (200, {"result": []})
    assert again.status_code == 200
    assert [answer.status_code for answer in (*elsewhere, rest)] == [401, 401, 401]
    assert publisher.asked == 1


PROTECTED = "/.well-known/oauth-protected-resource"


async def test_who_is_refused_at_keystone_learns_which_issuers_are_taken(tmp_path: Path) -> None:
    word = {"issuer": "a word", "audience": AUDIENCE, "secret": SECRET}
    told = json.dumps([{"issuer": HERE, "audience": AUDIENCE, "secret": SECRET}, word])
    async with served(tmp_path, KEEPSAKE_JWT_ISSUERS=told) as server:
        refused = await listed(server, None)
        base = str(server.http.base_url).rstrip("/")
        alone = await server.http.get(f"{PROTECTED}/api/mcp")
        without = [(await server.http.get(path)).status_code for path in (PROTECTED, f"{PROTECTED}/mcp")]
        await as_(server.app, local_owner(), "user.add", name="ada", role="reader")
        both = (await server.http.get(f"{PROTECTED}/api/mcp")).json()
        ours = [(await server.http.get(path)).json() for path in (PROTECTED, f"{PROTECTED}/mcp")]

    assert f'resource_metadata="{base}{PROTECTED}/api/mcp"' in refused.headers["www-authenticate"]
    assert (alone.status_code, alone.json()["authorization_servers"]) == (200, [HERE])
    # Ours is named only where someone could sign in, theirs only where their tokens are taken.
    assert without == [404, 404]
    assert both["authorization_servers"] == [base, HERE]
    assert [one["authorization_servers"] for one in ours] == [[base], [base]]


def confused(signer: Signer) -> str:
    """The public key taken for a shared secret."""
    head = jwt.utils.base64url_encode(json.dumps({"alg": "HS256", "kid": signer.kid, "typ": "JWT"}).encode())
    body = jwt.utils.base64url_encode(json.dumps(claims()).encode())
    algorithm = get_default_algorithms()["HS256"]
    signature = algorithm.sign(head + b"." + body, signer.pem)
    return b".".join([head, body, jwt.utils.base64url_encode(signature)]).decode()


def unsigned() -> str:
    return jwt.encode(claims(), "", "none")


def tampered(token: str) -> str:
    head, _, signature = token.split(".")
    body = jwt.utils.base64url_encode(json.dumps(claims(sub="admin")).encode()).decode()
    return f"{head}.{body}.{signature}"


async def test_every_fault_is_401_and_none_is_told_from_another(tmp_path: Path) -> None:
    signer, weak = Signer.of("RS256"), Signer.of("RS256", "weak", 1024)
    stranger, past = Signer.of("RS256"), int(time.time()) - 3600
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        short = weak.token()
    tokens = {
        "expired": signer.token(exp=past),
        "no end": signer.token(exp=None),
        "not yet": signer.token(nbf=int(time.time()) + 3600),
        "another audience": signer.token(aud="billing"),
        "no audience": signer.token(aud=None),
        "another issuer": signer.token(iss="https://evil.example"),
        "no issuer": signer.token(iss=None),
        "no subject": signer.token(sub=None),
        "an empty subject": signer.token(sub=""),
        "a subject with a line break": signer.token(sub="a\nb"),
        "a long subject": signer.token(sub="x" * 300),
        "no algorithm": unsigned(),
        "the public key as a secret": confused(signer),
        "another secret": jwt.encode(claims(), SECRET, "HS256", {"kid": signer.kid}),
        "a stranger's key under a known name": stranger.token(),
        "an unknown key": Signer.of("RS256", "new").token(),
        "a weak key": short,
        "an algorithm that is not allowed": Signer.of("ES256").token(),
        "a critical extension": signer.token({"crit": ["b64"], "b64": True}),
        "changed claims": tampered(signer.token()),
        "no signature": signer.token().rpartition(".")[0] + ".",
        "three words": "a.b.c",
        "dots": "..",
        "too long": signer.token(more="x" * 20_000),
        "a key that is none": "ks_live_" + "0" * 64,
    }
    with publishing(signer, weak) as publisher:
        async with served(tmp_path, KEEPSAKE_JWT_ISSUERS=named(publisher, algorithms=["RS256"])) as server:
            assert (await listed(server, signer.token())).status_code == 200
            answers = {what: await listed(server, token) for what, token in tokens.items()}

    assert {what: answer.status_code for what, answer in answers.items() if answer.status_code != 401} == {}
    [challenge] = {answer.headers["WWW-Authenticate"] for answer in answers.values()}
    assert challenge.startswith('Bearer realm="keepsake", error="invalid_token", resource_metadata="http')
    told = {answer.json()["error"]["message"] for what, answer in answers.items() if what != "a key that is none"}
    assert len(told) == 1


async def test_a_published_secret_is_never_a_key(tmp_path: Path) -> None:
    shared = jwt.utils.base64url_encode(SECRET.encode()).decode()
    with publishing() as publisher:
        publisher.keys = [{"kty": "oct", "k": shared, "kid": "one", "alg": "HS256"}]
        async with served(tmp_path, KEEPSAKE_JWT_ISSUERS=named(publisher)) as server:
            answer = await listed(server, jwt.encode(claims(), SECRET, "HS256", {"kid": "one"}))

    assert answer.status_code == 401


async def test_a_shared_secret_takes_hs256_and_nothing_else(tmp_path: Path) -> None:
    good = jwt.encode(claims(), SECRET, "HS256")
    others = [
        jwt.encode(claims(), SECRET + "!", "HS256"),
        jwt.encode(claims(), SECRET * 2, "HS512"),
        Signer.of("RS256").token(),
        unsigned(),
    ]
    async with served(tmp_path, KEEPSAKE_JWT_ISSUERS=named()) as server:
        taken = await listed(server, good)
        refused = [(await listed(server, token)).status_code for token in others]

    assert (taken.status_code, refused) == (200, [401] * 4)


async def test_an_issuer_closes_the_open_door_and_keys_go_on_working(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        key = (await made(app, "laptop"))["secret"]
    async with served(tmp_path, KEEPSAKE_JWT_ISSUERS=named()) as server:
        codes = [(await listed(server, token)).status_code for token in (key, None)]

    async with served(tmp_path / "fresh", KEEPSAKE_JWT_ISSUERS=named()) as server:
        codes += [(await listed(server, None)).status_code]
        codes += [(await server.mcp("tools/list")).status_code]

    assert codes == [200, 401, 401, 401]


async def test_a_token_that_looks_like_one_is_nothing_without_issuers(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        assert (await listed(server, jwt.encode(claims(), SECRET, "HS256"))).status_code == 401


async def test_those_who_bear_tokens_read_what_the_operator_lets_them(tmp_path: Path) -> None:
    token = jwt.encode(claims(), SECRET, "HS256")
    async with served(tmp_path, KEEPSAKE_JWT_ISSUERS=named(banks=["mine"])) as server:
        for name in ("mine", "theirs"):
            await as_(server.app, local_owner(), "bank.create", name=name)
        projects = (await listed(server, token)).json()["result"]["structuredContent"]["result"]

    assert [one["slug"] for one in projects] == ["mine"]
    everyone = issuers.parsed(named())[0]
    assert (everyone.scopes, everyone.banks) == (frozenset({"memory:read"}), None)


async def test_each_person_is_counted_apart(tmp_path: Path) -> None:
    async def asked(name: str) -> list[int]:
        mine, hers = (jwt.encode(claims(sub=f"{who} {name}"), SECRET, "HS256") for who in ("ada", "bob"))
        return [(await listed(server, token)).status_code for token in (mine, mine, mine, hers)]

    async with served(tmp_path, KEEPSAKE_JWT_ISSUERS=named(), KEEPSAKE_RATE_LIMIT="2") as server:
        codes = await within_a_minute(asked)

    assert codes == [200, 200, 429, 200]


async def test_a_session_belongs_to_the_person_who_began_it(tmp_path: Path) -> None:
    mine, hers = (jwt.encode(claims(sub=who), SECRET, "HS256") for who in ("ada", "bob"))
    opening = {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
    async with served(tmp_path, KEEPSAKE_JWT_ISSUERS=named()) as server:
        headers = {"Accept": "application/json", **bearer(mine)}
        begun = await server.http.post("/api/mcp", json=message, headers=headers)
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"], "Accept": "application/json"}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        codes = [
            (await server.http.post("/api/mcp", json=ping, headers={**session, **bearer(token)})).status_code
            for token in (mine, hers)
        ]

    assert codes == [200, 404]


# --- who it becomes --------------------------------------------------------------------------------------------------


async def principal(token: str, setting: str) -> Principal:
    return await external.Issuers(issuers.parsed(setting)).principal(token)


async def test_a_person_is_named_after_the_issuers_host() -> None:
    who = await principal(jwt.encode(claims(), SECRET, "HS256"), named())

    assert (who.name, who.may_destroy, who.tier) == ("login.example:u-17", False, "all")
    assert who.key is not None
    assert who.key < 0


async def test_two_realms_of_one_host_are_told_apart() -> None:
    realms = [{"issuer": f"https://kc.example/{name}", "audience": "k", "secret": SECRET} for name in ("a", "b")]
    people = [
        await principal(jwt.encode(claims(iss=realm["issuer"], aud="k"), SECRET, "HS256"), json.dumps(realms))
        for realm in realms
    ]

    assert [who.name for who in people] == ["kc.example/a:u-17", "kc.example/b:u-17"]
    assert people[0].key != people[1].key


async def test_another_claim_may_name_the_person() -> None:
    setting = named(name="email")
    who = await principal(jwt.encode(claims(email="ada@example.org"), SECRET, "HS256"), setting)

    assert who.name == "login.example:ada@example.org"
    with pytest.raises(Unauthenticated):
        await principal(jwt.encode(claims(), SECRET, "HS256"), setting)


async def test_the_log_tells_why_and_never_the_token(tmp_path: Path) -> None:
    lines: list[str] = []
    log.to(lambda level, event, fields: lines.append(f"{level} {event} {fields}"))
    token = jwt.encode(claims(aud="billing"), SECRET, "HS256")
    try:
        async with served(tmp_path, KEEPSAKE_JWT_ISSUERS=named()) as server:
            await listed(server, token)
    finally:
        log.to(lambda level, event, fields: None)

    told = "\n".join(lines)
    assert "InvalidAudienceError" in told
    assert not any(part in told for part in (token, *token.split("."), SECRET))
