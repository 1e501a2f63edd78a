"""API keys: made once, kept as a hash, never wider than their maker, and gone with the next request."""

import hashlib
import re
from pathlib import Path

import pytest

from keepsake import settings
from keepsake.core import clock
from keepsake.core.errors import BadInput, Conflict, Forbidden, Misconfigured, NotFound
from keepsake.core.principal import DEFAULT_SCOPES, EVERY_SCOPE, LOCAL_ORG, Principal, local_owner
from keepsake.surfaces import serve
from tests.auth.conftest import Json, as_, at, made, opened, served

TENANT = "hindsight_api.extensions.builtin.tenant:ApiKeyTenantExtension"


def admin(**rights: object) -> Principal:
    """Someone who may make keys and little else."""
    return Principal(LOCAL_ORG, "key:admin", frozenset({"admin", "memory:read"}), **rights)  # type: ignore[arg-type]  # whichever are under test


def contents(folder: Path) -> bytes:
    """Every byte that was stored."""
    return b"".join(file.read_bytes() for file in folder.iterdir())


# --- making ----------------------------------------------------------------------------------------------------------


async def test_a_new_key_has_every_scope_but_admin_and_deletion(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        key = await made(app, "laptop")

    assert re.fullmatch(r"ks_live_[0-9a-f]{64}", key["secret"])
    assert key["prefix"] == key["secret"][:12]
    assert key["scopes"] == sorted(DEFAULT_SCOPES)
    assert (key["tier"], key["banks"], key["may_destroy"], key["expires_at"]) == ("all", None, False, None)


async def test_a_key_that_may_destroy_has_the_scope_for_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        key = await made(app, "laptop", allow_destructive=True, scopes=["memory:read"])

    assert (key["may_destroy"], key["scopes"]) == (True, ["memory:delete", "memory:read"])


async def test_only_the_hash_of_a_key_is_kept(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        secret = (await made(app, "laptop"))["secret"]

    kept = contents(tmp_path)
    assert secret.encode() not in kept
    assert secret.removeprefix("ks_live_").encode() not in kept
    assert hashlib.sha256(secret.encode()).hexdigest().encode() in kept


async def test_a_listing_shows_neither_secret_nor_hash(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        secret = (await made(app, "laptop"))["secret"]
        listed = (await as_(app, local_owner(), "key.list")).model_dump_json()

    assert secret not in listed
    assert hashlib.sha256(secret.encode()).hexdigest() not in listed


async def test_a_name_is_taken_until_its_key_is_revoked(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        await made(app, "laptop")
        with pytest.raises(Conflict, match="'laptop' already"):
            await made(app, "laptop")
        await as_(app, local_owner(), "key.revoke", name="laptop")
        await made(app, "laptop")

        active = (await as_(app, local_owner(), "key.list")).model_dump()["keys"]
        every = (await as_(app, local_owner(), "key.list", revoked=True)).model_dump()["keys"]

    assert (len(active), len(every)) == (1, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"scopes": ["memory:everything"]},
        {"scopes": []},
        {"banks": []},
        {"banks": ["../x"]},
        {"tier": "most"},
        {"expires": "2001-01-01T00:00:00Z"},
        {"expires": "0d"},
        {"expires": "30 days"},
        {"expires": "999999w"},
        {"name": " "},
        {"name": "red\x1b[31m"},
        {"owner": "me"},
    ],
)
async def test_bad_input_makes_no_key(tmp_path: Path, arguments: Json) -> None:
    async with opened(tmp_path) as app:
        with pytest.raises(BadInput):
            await as_(app, local_owner(), "key.create", **{"name": "laptop", **arguments})

        assert (await as_(app, local_owner(), "key.list")).model_dump() == {"keys": []}


async def test_an_end_is_a_time_or_a_duration(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        now = clock.parse("2027-01-01T00:00:00Z")
        ends = [
            (await made(at(app, now), f"key {n}", expires=expires))["expires_at"]
            for n, expires in enumerate(("30d", "12h", "2w", "2027-06-01T10:00:00+02:00"))
        ]

    days = ("2027-01-31T00:00:00Z", "2027-01-01T12:00:00Z", "2027-01-15T00:00:00Z")
    assert ends == [*days, "2027-06-01T08:00:00Z"]


async def test_making_and_revoking_stand_in_the_audit_log(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        secret = (await made(app, "laptop"))["secret"]
        await as_(app, local_owner(), "key.revoke", name="laptop")

        entries = (await as_(app, local_owner(), "audit.list", limit=10)).model_dump()["entries"]
        checked = (await as_(app, local_owner(), "audit.verify")).model_dump()

    assert [(entry["operation"], entry["chain"], entry["n"]) for entry in entries] == [
        ("key.revoke", "0", 2),
        ("key.create", "0", 1),
    ]
    assert secret not in str(entries)
    assert checked == {"ok": True, "chains": 1, "entries": 2, "broken": [], "compared": 0}


# --- narrow only -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("maker", "arguments"),
    [
        (admin(), {"scopes": ["memory:write"]}),
        (admin(), {"allow_destructive": True}),
        (admin(may_destroy=True), {"allow_destructive": True}),
        (Principal(LOCAL_ORG, "x", EVERY_SCOPE), {"allow_destructive": True}),
        (admin(banks=frozenset({"mine"})), {"banks": ["mine", "yours"]}),
        (Principal(LOCAL_ORG, "x", DEFAULT_SCOPES, may_destroy=True), {}),
    ],
)
async def test_nobody_makes_a_key_that_may_do_more(tmp_path: Path, maker: Principal, arguments: Json) -> None:
    async with opened(tmp_path) as app:
        with pytest.raises(Forbidden, match=r"^403: "):
            await as_(app, maker, "key.create", name="wider", **arguments)

        assert (await as_(app, local_owner(), "key.list")).model_dump() == {"keys": []}


async def test_what_is_left_out_is_no_more_than_the_maker_has(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        key = await as_(app, admin(banks=frozenset({"mine"})), "key.create", name="same")

    assert (key.model_dump()["scopes"], key.model_dump()["banks"]) == (["memory:read"], ["mine"])


async def test_a_key_does_not_outlive_the_key_that_made_it(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        maker = await made(server.app, "maker", scopes=["admin", "memory:read"], expires="1d")

        longer = await server.operation("key.create", maker["secret"], name="longer", expires="2d")
        equal = await server.operation("key.create", maker["secret"], name="equal")

    assert (longer.status_code, longer.json()["error"]["code"]) == (403, "forbidden")
    assert equal.json()["expires_at"] == maker["expires_at"]


async def test_an_admin_of_some_banks_knows_only_their_keys_and_changes(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        for bank in ("mine", "yours"):
            await as_(app, local_owner(), "bank.create", name=bank)
            await made(app, bank, banks=[bank])
        someone = admin(banks=frozenset({"mine"}))

        keys = (await as_(app, someone, "key.list")).model_dump()["keys"]
        entries = (await as_(app, someone, "audit.list")).model_dump()["entries"]
        checked = (await as_(app, someone, "audit.verify")).model_dump()
        with pytest.raises(NotFound):
            await as_(app, someone, "key.revoke", name="yours")
        with pytest.raises(Forbidden):
            await as_(app, someone, "audit.list", only_bank="yours")

    assert [key["name"] for key in keys] == ["mine"]
    assert {entry["bank"] for entry in entries} == {"mine"}
    assert checked["chains"] == 1


# --- over HTTP -------------------------------------------------------------------------------------------------------


async def test_the_first_key_closes_the_open_door(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        before = await server.operation("bank.list")
        key = (await server.operation("key.create", name="laptop")).json()
        after = [await server.operation("bank.list"), await server.mcp("tools/list")]
        with_key = [await server.operation("bank.list", key["secret"]), await server.mcp("tools/list", key["secret"])]

    assert (before.status_code, key["closed_door"]) == (200, True)
    assert [answer.status_code for answer in after] == [401, 401]
    assert [answer.status_code for answer in with_key] == [200, 200]


async def test_a_revoked_key_is_refused_from_the_next_request_on(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        await made(server.app, "other")
        key = (await made(server.app, "laptop"))["secret"]

        before = await server.mcp("tools/list", key)
        await as_(server.app, local_owner(), "key.revoke", name="laptop")
        after = await server.mcp("tools/list", key)

    assert (before.status_code, after.status_code, after.json()["error"]["code"]) == (200, 401, -32001)
    assert after.headers["WWW-Authenticate"].startswith("Bearer")


async def test_an_expired_key_is_refused_and_keeps_the_door_closed(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        key = (await made(at(server.app, clock.now() - clock.DAY), "laptop", expires="1h"))["secret"]

        assert (await server.operation("bank.list", key)).status_code == 401
        assert (await server.operation("bank.list")).status_code == 401


async def test_a_wrong_credential_is_refused_even_while_the_door_is_open(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        wrong = [
            await server.operation("bank.list", "ks_live_" + "0" * 64),
            await server.http.post("/v1/operations/bank.list", headers={"Authorization": "Basic YTpi"}),
            await server.http.post("/v1/operations/bank.list", headers={"Authorization": "Bearer"}),
        ]

    assert [answer.status_code for answer in wrong] == [401, 401, 401]
    assert all("WWW-Authenticate" in answer.headers for answer in wrong)


async def test_a_key_tells_when_it_was_last_used(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        key = (await made(server.app, "laptop"))["secret"]
        unused = (await as_(server.app, local_owner(), "key.list")).model_dump()["keys"][0]["last_used_at"]
        started = clock.now()

        await server.mcp("tools/list", key)
        used = (await as_(server.app, local_owner(), "key.list")).model_dump()["keys"][0]["last_used_at"]

    assert unused is None
    assert started <= clock.parse(used) <= clock.now()


async def test_a_key_lists_and_calls_only_what_it_may(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        reader = (await made(server.app, "reader", scopes=["memory:read"]))["secret"]

        names = {tool["name"] for tool in (await server.mcp("tools/list", reader)).json()["result"]["tools"]}
        called = await server.mcp("tools/call", reader, name="retain", arguments={"content": "x"})

    assert "recall" in names and not {"retain", "delete_memory", "create_bank"} & names
    assert (called.status_code, called.json()["error"]["code"]) == (403, -32003)
    assert called.json()["error"]["message"].startswith("403")


@pytest.mark.parametrize(
    "variables", [{}, {"HINDSIGHT_API_TENANT_EXTENSION": TENANT}], ids=["key alone", "key and extension"]
)
async def test_the_single_key_of_the_seed_opens_everything(tmp_path: Path, variables: dict[str, str]) -> None:
    async with served(tmp_path, HINDSIGHT_API_TENANT_API_KEY="a-static-key", **variables) as server:
        open_ = await server.mcp("tools/list", "a-static-key")
        deleted = await server.mcp("tools/call", "a-static-key", name="clear_memories", arguments={})
        closed = [await server.mcp("tools/list"), await server.mcp("tools/list", "another-key")]

    names = [tool["name"] for tool in open_.json()["result"]["tools"]]
    assert "delete_bank" in names
    assert deleted.status_code == 200
    assert [(answer.status_code, answer.json()["error"]["code"]) for answer in closed] == [(401, -32001)] * 2
    assert all(answer.headers["WWW-Authenticate"].startswith("Bearer") for answer in closed)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
async def test_without_credentials_nothing_but_loopback_is_bound(tmp_path: Path, host: str) -> None:
    started: list[str] = []

    with pytest.raises(Misconfigured, match="or a key with `keepsake key create`"):
        await serve.run(
            settings.load({}, data_dir=tmp_path, host=host, port=0), lambda _, address: started.append(address)
        )

    assert started == []
