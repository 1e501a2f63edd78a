"""The keys that an issuer publishes, and the setting that names issuers."""

import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response

from keepsake.auth import external
from keepsake.core import issuers
from keepsake.core.errors import Misconfigured, Unauthenticated
from keepsake.services import jwks
from tests.auth.conftest import Json, opened, served
from tests.auth.issuing import AUDIENCE, HERE, SECRET, Signer, claims, listed, named, publishing

# --- published keys --------------------------------------------------------------------------------------------------


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


async def works(known: external.Issuers, token: str) -> bool:
    try:
        await known.principal(token)
    except Unauthenticated:
        return False
    return True


async def test_a_rotated_key_is_noticed_and_a_withdrawn_one_ends() -> None:
    old, new, clock = Signer.of("RS256", "old"), Signer.of("ES256", "new"), Clock()
    with publishing(old) as publisher:
        known = external.Issuers(issuers.parsed(named(publisher)), now=clock)
        first = await works(known, old.token())
        publisher.keys = [new.published]
        clock.at += 61
        rotated = await works(known, new.token()), await works(known, old.token())

    assert first
    assert rotated == (True, False)


async def test_unknown_keys_make_us_ask_once_a_minute() -> None:
    signer, clock = Signer.of("RS256"), Clock()
    with publishing(signer) as publisher:
        known = external.Issuers(issuers.parsed(named(publisher)), now=clock)
        for n in range(5):
            assert not await works(known, Signer.of("ES256", f"made up {n}").token())
        after_five = publisher.asked
        clock.at += 61
        await works(known, Signer.of("ES256", "made up again").token())

        assert await works(known, signer.token())

    assert (after_five, publisher.asked) == (1, 2)


async def test_keys_outlast_their_publisher_for_a_while_only() -> None:
    signer, clock = Signer.of("RS256"), Clock()
    with publishing(signer) as publisher:
        known = external.Issuers(issuers.parsed(named(publisher)), now=clock)
        assert await works(known, signer.token())
        publisher.answer = JSONResponse({}, 503)
        clock.at += external.FRESH_S + 1
        still = await works(known, signer.token())
        clock.at += external.STALE_S
        no_more = await works(known, signer.token())

    assert (still, no_more) == (True, False)


async def test_a_token_without_a_key_id_needs_a_single_key() -> None:
    one, two = Signer.of("RS256", "one"), Signer.of("RS256", "two")
    token = jwt.encode(claims(), one.private, "RS256")
    with publishing(one) as single, publishing(one, two) as several:
        taken = [await works(external.Issuers(issuers.parsed(named(each))), token) for each in (single, several)]

    assert taken == [True, False]


BAD_ANSWERS = {
    "an error": JSONResponse({"keys": []}, 500),
    "no JSON": Response(b"<html>"),
    "another shape": JSONResponse([1]),
    "no keys": JSONResponse({"keys": "none"}),
    "keys that are none": JSONResponse({"keys": [1, None, {}, {"kty": "RSA"}]}),
    "too much": Response(b" " * (jwks.LARGEST + 1)),
    "deep": Response(b"[" * 100_000),
    "another place": RedirectResponse("/elsewhere"),
}


@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
async def test_a_bad_set_of_keys_vouches_for_nobody(answer: Response) -> None:
    signer = Signer.of("RS256")
    with publishing(signer) as publisher:
        publisher.answer = answer
        taken = await works(external.Issuers(issuers.parsed(named(publisher))), signer.token())

    assert (taken, publisher.asked) == (False, 1)


# --- the setting -----------------------------------------------------------------------------------------------------


async def test_a_file_may_hold_the_issuers(tmp_path: Path) -> None:
    file = tmp_path / "issuers.json"
    file.write_text(named())
    async with served(tmp_path / "data", KEEPSAKE_JWT_ISSUERS=str(file)) as server:
        answer = await listed(server, jwt.encode(claims(), SECRET, "HS256"))

    assert answer.status_code == 200


GOOD: Json = {"issuer": HERE, "audience": AUDIENCE, "secret": SECRET}
WRONG: dict[str, tuple[Any, str]] = {
    "no list": (GOOD, "list"),
    "an empty list": ([], "at least one"),
    "no object": (["x"], "objects"),
    "no issuer": ([{**GOOD, "issuer": ""}], "`issuer`"),
    "no audience": ([{**GOOD, "audience": []}], "`audience`"),
    "neither": ([{"issuer": HERE, "audience": AUDIENCE}], "either"),
    "both": ([{**GOOD, "jwks_url": "https://x.example/k"}], "either"),
    "a short secret": ([{**GOOD, "secret": "short"}], "32 bytes"),
    "plain http": ([{"issuer": HERE, "audience": "a", "jwks_url": "http://x.example/k"}], "https://"),
    "a user in the address": ([{"issuer": HERE, "audience": "a", "jwks_url": "https://u:p@x.example"}], "https://"),
    "a file": ([{"issuer": HERE, "audience": "a", "jwks_url": "file:///etc/passwd"}], "https://"),
    "none": ([{"issuer": HERE, "audience": "a", "jwks_url": "https://x.example", "algorithms": ["none"]}], "RS256"),
    "HS256 by JWKS": ([{"issuer": HERE, "audience": "a", "jwks_url": "https://x.e", "algorithms": ["HS256"]}], "RS256"),
    "RS256 by secret": ([{**GOOD, "algorithms": ["RS256"]}], "HS256"),
    "an unknown field": ([{**GOOD, "audiense": "x"}], "audiense"),
    "twice": ([GOOD, GOOD], "once"),
    "numbers": ([{**GOOD, "scopes": [1]}], "`scopes`"),
}


@pytest.mark.parametrize(("value", "told"), WRONG.values(), ids=WRONG)
async def test_a_wrong_setting_is_told_without_its_secret(tmp_path: Path, value: Any, told: str) -> None:
    with pytest.raises(Misconfigured, match=told) as refused:
        async with opened(tmp_path, KEEPSAKE_JWT_ISSUERS=json.dumps(value)):
            pass

    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("text", ["/no/such/file", "[broken", "{}"])
async def test_what_is_neither_list_nor_file_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(Misconfigured, match="KEEPSAKE_JWT_ISSUERS"):
        async with opened(tmp_path, KEEPSAKE_JWT_ISSUERS=text):
            pass


async def test_an_unknown_scope_stops_the_server(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="'memory:raed'"):
        async with served(tmp_path, KEEPSAKE_JWT_ISSUERS=named(scopes=["memory:raed"])):
            pass
