"""People: a key of theirs may do what they may now, where they may, and nothing more."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keepsake.auth import policy
from keepsake.core import roles
from keepsake.core.errors import Conflict, Forbidden, NotFound
from keepsake.core.operation import AUDIT, SCOPES
from keepsake.core.principal import LOCAL_ORG, Principal, Rights, local_owner
from keepsake.ops.everything import REGISTRY
from tests.auth.conftest import Json, as_, made, opened, served
from tests.conftest import Database

BANKS = ("api", "web")


def place(database: Database) -> tuple[Path, dict[str, str]]:
    """The data folder and the settings that open a database."""
    if database.engine == "sqlite":
        return Path(database.place).parent, {}
    return Path("/nonexistent"), {"KEEPSAKE_DATABASE_URL": database.place}


async def test_a_key_does_what_its_person_may_now(database: Database) -> None:
    folder, environment = place(database)
    async with served(folder, **environment) as server:
        me = local_owner()
        await as_(server.app, me, "user.add", name="ada", role="reader")
        key = (await made(server.app, "laptop", user="ada"))["secret"]

        assert (await server.operation("memory.list", key)).status_code == 200
        assert (await server.operation("memory.retain", key, content="Tea is at four.")).status_code == 403
        await as_(server.app, me, "user.role", name="ada", role="editor")
        assert (await server.operation("memory.retain", key, content="Tea is at four.")).status_code == 200
        await as_(server.app, me, "user.role", name="ada", role="editor", remove=True)
        assert (await server.operation("memory.retain", key, content="Cake is at five.")).status_code == 403
        await as_(server.app, me, "user.disable", name="ada")
        assert (await server.operation("memory.list", key)).status_code == 401
        await as_(server.app, me, "user.disable", name="ada", enable=True)
        assert (await server.operation("memory.list", key)).status_code == 200


async def test_a_role_at_a_bank_holds_there_alone(database: Database) -> None:
    folder, environment = place(database)
    async with served(folder, **environment) as server:
        me = local_owner()
        for bank in BANKS:
            await as_(server.app, me, "bank.create", name=bank)
        await as_(server.app, me, "user.add", name="ada", role="editor", bank="api")
        key = (await made(server.app, "laptop", user="ada"))["secret"]

        listed = (await server.operation("bank.list", key)).json()
        assert [bank["name"] for bank in listed["banks"]] == ["api"]
        assert (await server.operation("memory.retain", key, content="Cake.", bank="api")).status_code == 200
        for name, arguments in (("memory.list", {}), ("memory.retain", {"content": "Cake."})):
            assert (await server.operation(name, key, bank="web", **arguments)).status_code == 403
        # A bank that is not there yet is none of theirs.
        assert (await server.operation("memory.retain", key, content="Cake.", bank="new")).status_code == 403
        assert (await server.operation("bank.create", key, name="new")).status_code == 403

        await as_(server.app, me, "user.role", name="ada", role="reader", bank="web")
        assert (await server.operation("memory.list", key, bank="web")).status_code == 200
        assert (await server.operation("memory.retain", key, content="Cake.", bank="web")).status_code == 403
        # In what it may only read it stays a reader, whatever else it is elsewhere.
        assert {bank["name"] for bank in (await server.operation("bank.list", key)).json()["banks"]} == set(BANKS)


async def test_an_owner_of_a_bank_manages_that_bank_and_nothing_else(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        me = local_owner()
        for bank in BANKS:
            await as_(server.app, me, "bank.create", name=bank)
        await as_(server.app, me, "user.add", name="ada", role="owner", bank="api")
        await as_(server.app, me, "user.add", name="bob")
        key = (await made(server.app, "ada", user="ada", scopes=sorted(SCOPES), allow_destructive=True))["secret"]

        assert (await server.operation("user.role", key, name="bob", role="reader", bank="api")).status_code == 200
        assert (await server.operation("user.role", key, name="bob", role="reader", bank="web")).status_code == 403
        assert (await server.operation("user.role", key, name="bob", role="reader")).status_code == 403
        for refused, arguments in (("user.list", {}), ("user.add", {"name": "eve"}), ("user.disable", {"name": "bob"})):
            assert (await server.operation(refused, key, **arguments)).status_code == 403
        # A key that she makes is hers: it ends with her rights.
        told = (await server.operation("key.create", key, name="hers")).json()
        await as_(server.app, me, "user.role", name="ada", role="owner", bank="api", remove=True)
        assert (await server.operation("memory.list", told["secret"], bank="api")).status_code == 403


AUDITING = ("audit.list", "audit.verify", "audit.export")


async def test_an_auditor_reads_the_audit_log_and_nothing_more(database: Database) -> None:
    folder, environment = place(database)
    async with served(folder, **environment) as server:
        me = local_owner()
        for bank in BANKS:
            await as_(server.app, me, "bank.create", name=bank)
        for name, role, bank in (("ada", "auditor", None), ("bob", "reader", None), ("eve", "auditor", "api")):
            await as_(server.app, me, "user.add", name=name, role=role, bank=bank)
        every = sorted(SCOPES)
        whole = {
            name: (await made(server.app, name, user=name, scopes=every))["secret"] for name in ("ada", "bob", "eve")
        }
        plain = (await made(server.app, "plain", user="ada"))["secret"]

        async def chains(key: str) -> set[str | None]:
            return {entry["bank"] for entry in (await server.operation("audit.list", key)).json()["entries"]}

        for asked in AUDITING:
            told = {name: (await server.operation(asked, key)).status_code for name, key in whole.items()}
            assert told == {"ada": 200, "bob": 403, "eve": 200}
            # A key that was not made for managing does not audit, whoever holds it.
            assert (await server.operation(asked, plain)).status_code == 403
        assert await chains(whole["ada"]) == {None, *BANKS}
        assert await chains(whole["eve"]) == {"api"}
        assert (await server.operation("audit.list", whole["eve"], only_bank="web")).status_code == 403
        for asked in ("memory.list", "bank.list", "key.list", "user.list", "usage.get", "memory.retain"):
            assert (
                await server.operation(asked, whole["ada"], **{"content": "x"} if "retain" in asked else {})
            ).status_code == 403
        await as_(server.app, me, "user.role", name="ada", role="auditor", remove=True)
        assert (await server.operation("audit.list", whole["ada"])).status_code == 403


async def test_a_key_never_gains_by_its_person(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        me = local_owner()
        await as_(server.app, me, "user.add", name="ada", role="owner")
        narrow = (await made(server.app, "narrow", user="ada", scopes=["memory:read"], banks=["api"]))["secret"]
        for bank in BANKS:
            await as_(server.app, me, "bank.create", name=bank)

        assert (await server.operation("memory.retain", narrow, content="Tea.", bank="api")).status_code == 403
        assert (await server.operation("memory.list", narrow, bank="web")).status_code == 403


async def test_a_deleted_bank_takes_its_roles_along(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        me = local_owner()
        await as_(app, me, "bank.create", name="api")
        await as_(app, me, "user.add", name="ada", role="owner", bank="api")
        await as_(app, me, "bank.delete", bank="api")
        await as_(app, me, "bank.create", name="api")
        told: Json = (await as_(app, me, "user.list")).model_dump()

    assert told["users"][0]["roles"] == []


async def test_the_first_person_closes_the_open_door(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        assert (await server.operation("memory.list")).status_code == 200
        await as_(server.app, local_owner(), "user.add", name="ada", role="reader")
        assert (await server.operation("memory.list")).status_code == 401


async def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        me = local_owner()
        await as_(app, me, "user.add", name="ada")
        with pytest.raises(Conflict):
            await as_(app, me, "user.add", name="ada")
        for operation, arguments in (
            ("user.role", {"name": "eve", "role": "reader"}),
            ("user.role", {"name": "ada", "role": "reader", "bank": "nowhere"}),
            ("user.disable", {"name": "eve"}),
            ("key.create", {"name": "x", "user": "eve"}),
        ):
            with pytest.raises(NotFound):
                await as_(app, me, operation, **arguments)
        stranger = Principal(LOCAL_ORG, "key:admin", frozenset({"admin"}), banks=frozenset({"api"}))
        with pytest.raises(Forbidden):
            await as_(app, stranger, "key.create", name="x", user="ada", scopes=["admin"])
        await as_(app, me, "user.disable", name="ada")
        with pytest.raises(NotFound):
            await as_(app, me, "key.create", name="x", user="ada")


# --- narrow only -----------------------------------------------------------------------------------------------------

NAMES = ("api", "web", "docs")
scopes = st.frozensets(st.sampled_from(sorted(SCOPES)))
reaches = st.none() | st.frozensets(st.sampled_from(NAMES))
held = st.builds(
    Rights,
    scopes,
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(roles.NAMES).map(lambda role: roles.scopes([role]))),
)
people = st.builds(
    Principal,
    org=st.just(LOCAL_ORG),
    name=st.just("user:ada"),
    scopes=scopes,
    banks=reaches,
    may_destroy=st.booleans(),
    rights=st.none() | held,
)
steps = st.lists(st.tuples(st.just("acting"), scopes) | st.tuples(st.just("narrowed"), scopes, reaches, st.booleans()))


def allowed(who: Principal) -> set[tuple[str, str]]:
    """Every scope that it has at a bank, as an operation with that scope would find."""
    acting = {scope: who.acting(frozenset({scope})) for scope in who.scopes}
    return {(bank, scope) for bank in NAMES for scope, one in acting.items() if scope in one.scopes and one.sees(bank)}


@given(people, steps)
def test_no_chain_of_narrowing_adds_a_right(who: Principal, chain: list[tuple[object, ...]]) -> None:
    for step, *arguments in chain:
        before, could_destroy = allowed(who), who.may_destroy
        who = who.acting(*arguments) if step == "acting" else who.narrowed(*arguments)  # type: ignore[arg-type]  # as drawn
        assert allowed(who) <= before
        assert could_destroy or not who.may_destroy


@given(people)
def test_a_person_has_at_a_bank_what_credential_and_roles_both_give(who: Principal) -> None:
    for bank in NAMES:
        for scope in SCOPES:
            given = scope in who.scopes and who.sees(bank)
            opened = who.rights is None or scope in who.rights.everywhere | who.rights.at.get(bank, frozenset())
            assert ((bank, scope) in allowed(who)) == (given and opened)


# --- the same in what can be called ----------------------------------------------------------------------------------

people_of = st.fixed_dictionaries(
    {place: st.frozensets(st.sampled_from(roles.NAMES)) for place in (None, *NAMES)},
)
keys = st.fixed_dictionaries(
    {
        "scopes": scopes,
        "banks": reaches,
        "tier": st.sampled_from(["all", "core", "exec", "intel"]),
        "may_destroy": st.booleans(),
    }
)
Held = dict[str | None, frozenset[str]]


def resolved(key: Json, held: Held, grant: frozenset[str]) -> Principal:
    """A credential as a request finds it: what it was made for, what was consented to, what the person may."""
    at = {bank: roles.scopes(names) for bank, names in held.items() if bank is not None}
    rights = Rights(roles.scopes(held[None]), at)
    who = Principal(org=LOCAL_ORG, name="user:ada", **{**key, "scopes": key["scopes"] & grant})
    return replace(who.narrowed(scopes=rights.anywhere), person=1, rights=rights)


def callable_(who: Principal) -> set[tuple[str, str]]:
    """Every operation that may be called at a bank."""
    found = [one for one in REGISTRY.values() if policy.may(who, one)]
    return {(one.id, bank) for one in found for bank in NAMES if who.acting(one.scopes).sees(bank)}


@settings(max_examples=60)
@given(keys, people_of, scopes, keys, people_of, scopes)
def test_less_of_anything_is_never_more(
    key: Json, held: Held, grant: frozenset[str], less_key: Json, less_held: Held, less_grant: frozenset[str]
) -> None:
    before = callable_(resolved(key, held, grant))
    reach = less_key["banks"] if key["banks"] is None else key["banks"] & (less_key["banks"] or frozenset(NAMES))
    narrower = {
        "scopes": key["scopes"] & less_key["scopes"],
        "banks": reach,
        "tier": less_key["tier"] if key["tier"] == "all" else key["tier"],
        "may_destroy": key["may_destroy"] and less_key["may_destroy"],
    }
    fewer = {place: held[place] & less_held[place] for place in held}

    for what, after in {
        "key": resolved(narrower, held, grant),
        "roles": resolved(key, fewer, grant),
        "grant": resolved(key, held, grant & less_grant),
        "all": resolved(narrower, fewer, grant & less_grant),
    }.items():
        assert callable_(after) <= before, what


def test_the_roles_open_what_the_model_says() -> None:
    assert roles.scopes(["reader"]) == {"memory:read", "watch:read", "research:read", "inference"}
    assert roles.scopes(["editor"]) - roles.scopes(["reader"]) == {
        "memory:write",
        "bank:admin",
        "watch:write",
        "exec:invoke",
    }
    assert roles.scopes(["owner"]) == {*SCOPES, AUDIT}
    assert roles.scopes(["auditor"]) == {AUDIT}
    assert roles.scopes(["approver"]) == frozenset()
