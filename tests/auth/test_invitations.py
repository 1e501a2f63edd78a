"""One-time links: an account or a new password for whoever opens it first, as long as its maker could make it."""

import asyncio
from dataclasses import replace

import pytest

from keepsake.context import App
from keepsake.core.clock import DAY, HOUR
from keepsake.core.errors import BadInput, Conflict, Forbidden, KeepsakeError, NotFound
from keepsake.core.principal import Principal, local_owner
from keepsake.ops import invitations, signing_in
from keepsake.ops.signing_in import Denied, Entered, Signed
from tests.auth.conftest import Json, as_, made, opened
from tests.auth.flowing import PASSWORD, place
from tests.conftest import Database


async def _invited(app: App, name: str, **more: object) -> str:
    told: Json = (await as_(app, local_owner(), "user.invite", name=name, **more)).model_dump()
    assert told["link"].startswith("http://127.0.0.1:8888/console/join/")
    return str(told["link"]).rpartition("/")[2]


async def _signed(app: App, entered: Entered) -> Signed:
    found = await signing_in.signed_in(app, entered.id)
    assert found is not None
    return found


async def _as_person(app: App, name: str) -> Principal:
    entered = await signing_in.sign_in(app, name, PASSWORD, "10.0.0.1")
    assert isinstance(entered, Entered)
    return await signing_in.principal(app, await _signed(app, entered))


async def test_a_link_makes_a_person_once_with_the_role_it_gives(database: Database) -> None:
    folder, environment = place(database)
    async with opened(folder, **environment) as app:
        await as_(app, local_owner(), "bank.create", name="tea")
        token = await _invited(app, "ada", role="editor", bank="tea")
        other = await _invited(app, "bob", role="reader")

        told = await invitations.opened(app, token)
        with pytest.raises(BadInput, match="12 to 1,024"):
            await invitations.join(app, token, "", "short")
        tries = await asyncio.gather(
            *(invitations.join(app, token, "mallory", PASSWORD, "Firefox") for _ in range(5)), return_exceptions=True
        )

        assert told == invitations.Joining("ada", True, "editor", "tea")
        won = [one for one in tries if isinstance(one, Entered)]
        assert len(won) == 1
        assert all(isinstance(one, NotFound) for one in tries if one not in won)
        signed = await _signed(app, won[0])
        principal = await signing_in.principal(app, signed)
        assert (signed.name, signed.session.browser) == ("ada", "Firefox")
        assert principal.rights is not None
        assert (principal.rights.everywhere, "memory:write" in principal.rights.at["tea"]) == (frozenset(), True)
        assert isinstance(await signing_in.sign_in(app, "ada", PASSWORD, "10.0.0.1"), Entered)
        listed = (await as_(app, local_owner(), "user.invitations")).model_dump()["invitations"]
        assert [(one["name"], one["role"], one["bank"]) for one in listed] == [("bob", "reader", None)]
        assert other not in str(listed)
        # Deleting the bank takes its links with it.
        gone = await _invited(app, "eve", role="reader", bank="tea")
        await as_(app, local_owner(), "bank.delete", bank="tea")
        with pytest.raises(NotFound):
            await invitations.opened(app, gone)


async def test_a_link_for_someone_there_is_sets_a_new_password(database: Database) -> None:
    folder, environment = place(database)
    async with opened(folder, **environment) as app:
        await as_(app, local_owner(), "user.add", name="ada", role="reader")
        await as_(app, local_owner(), "user.password", name="ada", password=PASSWORD)
        before = await signing_in.sign_in(app, "ada", PASSWORD, "10.0.0.1")
        with pytest.raises(Conflict, match="already"):
            await _invited(app, "ada", role="owner")
        token = await _invited(app, "ada")
        assert await invitations.opened(app, token) == invitations.Joining("ada", False, "", "")

        await invitations.join(app, token, "", "another long password")

        assert isinstance(before, Entered) and await signing_in.signed_in(app, before.id) is None
        assert isinstance(await signing_in.sign_in(app, "ada", PASSWORD, "10.0.0.1"), Denied)
        assert isinstance(await signing_in.sign_in(app, "ada", "another long password", "10.0.0.1"), Entered)
        people = (await as_(app, local_owner(), "user.list")).model_dump()["users"]
        assert [(one["name"], [held["role"] for held in one["roles"]]) for one in people] == [("ada", ["reader"])]


async def test_a_link_is_good_only_in_its_time_and_while_its_maker_may_make_it(database: Database) -> None:
    folder, environment = place(database)
    async with opened(folder, **environment) as app:
        await as_(app, local_owner(), "user.add", name="ada", role="owner")
        await as_(app, local_owner(), "user.password", name="ada", password=PASSWORD)
        ada, key = await _as_person(app, "ada"), await made(app, "ops", scopes=["admin"])
        holder = Principal(1, "key:ops", frozenset({"admin"}), key=await _id(app, "ops"))

        async def asked(who: Principal, name: str, **more: object) -> tuple[str, str]:
            told = (await as_(app, who, "user.invite", name=name, **more)).model_dump()
            return told["id"], told["link"].rpartition("/")[2]

        late, taken, replaced = await asked(ada, "late", expires="1h"), await asked(ada, "x"), await asked(ada, "twice")
        again, by_key, named = await asked(ada, "twice"), await asked(holder, "k"), await asked(ada, "named")
        await as_(app, ada, "user.uninvite", id=taken[0])
        await as_(app, local_owner(), "user.add", name="named", role="reader")

        async def fails(token: str, at: int = 0) -> bool:
            later = replace(app, now=lambda: app.now() + at)
            try:
                await invitations.join(later, token, "", PASSWORD)
            except KeepsakeError:
                return True
            return False

        assert key["name"] == "ops"
        assert await fails(late[1], 2 * HOUR) and await fails(taken[1]) and await fails(replaced[1])
        # Someone got the name in another way: no password of theirs is set.
        assert await fails(named[1])
        assert await fails("") and await fails("x" * 500) and await fails("\udcff")
        await as_(app, local_owner(), "key.revoke", name="ops")
        assert await fails(by_key[1])
        await as_(app, local_owner(), "user.role", name="ada", role="owner", remove=True)
        assert await fails(again[1])
        for wrong in ("1m", "60d", "soon", ""):
            with pytest.raises(BadInput):
                await as_(app, local_owner(), "user.invite", name="eve", expires=wrong)
        with pytest.raises(Forbidden):
            await as_(app, replace(local_owner(), banks=frozenset({"tea"})), "user.invite", name="eve")


async def _id(app: App, name: str) -> int:
    row = await app.store.read(1, lambda tx: tx.one("SELECT id FROM api_keys WHERE name = :name", name=name))
    assert row is not None
    return int(row["id"])


async def test_the_first_account_is_made_by_a_link_that_ends_with_it(database: Database) -> None:
    folder, environment = place(database)
    async with opened(folder, **environment, KEEPSAKE_PUBLIC_URL="https://memory.example") as app:
        first, second = await invitations.set_up(app), await invitations.set_up(app)
        assert first and second and first.startswith("https://memory.example/console/join/")
        token, other = (link.rpartition("/")[2] for link in (first, second))
        assert await invitations.any_open(app)
        assert await invitations.opened(app, token) == invitations.Joining("", True, "owner", "")
        with pytest.raises(BadInput):
            await invitations.join(app, token, "no blanks", PASSWORD)

        entered = await invitations.join(app, token, "ada", PASSWORD)

        assert (await signing_in.principal(app, await _signed(app, entered))).is_manager
        assert await invitations.set_up(app) is None
        with pytest.raises(NotFound):
            await invitations.join(app, other, "mallory", PASSWORD)
        later = replace(app, now=lambda: app.now() + DAY)
        assert not await invitations.any_open(later)
