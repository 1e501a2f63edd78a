"""An account is its person's own, on its page: no key, no client and nobody else touches it."""

from dataclasses import replace

import pytest
from pydantic import BaseModel

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.errors import BadInput, Forbidden, NotFound, Unavailable
from keepsake.core.principal import Principal, local_owner
from keepsake.ops import signing_in
from keepsake.ops.signing_in import Denied, Entered, Signed
from tests.auth.conftest import as_
from tests.auth.flowing import PASSWORD, living, place
from tests.conftest import Database

NEW = "another long password"


async def _entered(app: App, name: str, browser: str, password: str = PASSWORD) -> Signed:
    entered = await signing_in.sign_in(app, name, password, "10.0.0.1", browser=browser)
    assert isinstance(entered, Entered)
    found = await signing_in.signed_in(app, entered.id)
    assert found is not None
    return found


async def _on_page(app: App, signed: Signed, operation: str, **arguments: object) -> BaseModel:
    who = await signing_in.principal(app, signed)
    return await dispatch.call(
        replace(app.ctx(who, surface="web"), signed_in_at=signed.session.recent_login_at), operation, arguments
    )


async def test_an_account_is_its_persons_own(database: Database) -> None:
    folder, environment = place(database)
    async with living(folder, "editor", **environment) as person:
        app = person.server.app
        await as_(app, local_owner(), "user.add", name="bob", role="reader")
        await as_(app, local_owner(), "user.password", name="bob", password=PASSWORD)
        await as_(app, local_owner(), "bank.create", name="default")
        ada, again, bob = [await _entered(app, *one) for one in (("ada", "Firefox"), ("ada", "Safari"), ("bob", "x"))]
        await person.sign_in()
        client = await person.register()
        tokens = await person.tokens(client["client_id"])
        listed = (await _on_page(app, ada, "user.sessions")).model_dump()["sessions"]
        grants = (await _on_page(app, ada, "grant.mine")).model_dump()["grants"]

        assert {one["browser"] for one in listed} == {"Firefox", "Safari", "A browser"}
        assert again.session.sha256 not in str(listed)
        assert [one["client"] for one in grants] == ["Tea timer"]
        assert (await _on_page(app, bob, "grant.mine")).model_dump()["grants"] == []
        assert (await _on_page(app, ada, "user.me")).model_dump()["roles"] == [{"role": "editor", "bank": None}]
        with pytest.raises(NotFound):
            await _on_page(app, bob, "grant.withdraw", id=grants[0]["id"])
        with pytest.raises(NotFound):
            await _on_page(app, bob, "user.end_session", id=again.session.sha256[:16])
        # The same person by a key, a client or the machine's owner is not at the page.
        everyone = [await signing_in.principal(app, ada), local_owner(), Principal(1, "key:x", frozenset(), key=5)]
        for who in everyone:
            for operation in ("user.sessions", "grant.mine"):
                with pytest.raises(Forbidden):
                    await as_(app, who, operation)
        refused = await person.server.operation("user.sessions", tokens["access_token"])
        assert refused.status_code in (401, 403)

        await _on_page(app, ada, "grant.withdraw", id=grants[0]["id"])
        await _on_page(app, ada, "user.end_session", id=again.session.sha256[:16])
        assert (await person.server.mcp("tools/list", tokens["access_token"])).status_code == 401
        left = (await _on_page(app, ada, "user.sessions")).model_dump()["sessions"]
        assert {one["browser"] for one in left} == {"Firefox", "A browser"}


async def test_a_password_is_changed_by_who_knows_it(database: Database) -> None:
    folder, environment = place(database)
    async with living(folder, **environment) as person:
        app = person.server.app
        ada = await _entered(app, "ada", "Firefox")
        with pytest.raises(BadInput, match="12 to 1,024"):
            await _on_page(app, ada, "user.change_password", old=PASSWORD, new="short")
        with pytest.raises(BadInput, match="`old`"):
            await _on_page(app, ada, "user.change_password", old="wrong", new=NEW)
        await _on_page(app, ada, "user.change_password", old=PASSWORD, new=NEW)

        assert await app.store.engine.look(lambda tx: tx.all("SELECT 1 AS one FROM web_sessions")) == []
        assert isinstance(await signing_in.sign_in(app, "ada", PASSWORD, "10.0.0.1"), Denied)
        ada = await _entered(app, "ada", "Firefox", NEW)
        # Whoever sits before an open browser cannot guess for long.
        for _ in range(signing_in.PER_NAME):
            with pytest.raises(BadInput):
                await _on_page(app, ada, "user.change_password", old="guess", new=PASSWORD)
        with pytest.raises(Unavailable, match="ten minutes"):
            await _on_page(app, ada, "user.change_password", old=NEW, new=PASSWORD)
