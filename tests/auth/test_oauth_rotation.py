"""Codes and refresh tokens: used once, whoever races for them; what is used twice ends its family."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from keepsake.auth.oauth import Refused
from keepsake.context import App, Ctx
from keepsake.core.clock import DAY, HOUR, MINUTE, SECOND
from keepsake.core.principal import local_owner
from keepsake.ops import authorizing, clients, signing_in
from keepsake.ops.authorizing import Asked, Redemption, Tokens
from keepsake.ops.clients import Client
from keepsake.ops.signing_in import Entered
from tests.auth.conftest import as_, at, opened
from tests.auth.flowing import CALLBACK, PASSWORD, challenge, living, place
from tests.conftest import Database

#: Redemptions that race, half of codes and half of refresh tokens; racers for each.
RACES, RACERS = 10_000 if os.environ.get("KEEPSAKE_SOAK") else 1_000, 8
VERIFIER = "v" * 43


@dataclass(frozen=True)
class Consenting:
    """Someone who consents as often as it is wanted, and two processes that answer."""

    app: App
    other: App
    ctx: Ctx
    client: Client

    async def code(self) -> str:
        asked = Asked(self.client, CALLBACK, challenge(VERIFIER), frozenset({"memory:read"}), "http://x/mcp", None)
        return await authorizing.consent(self.ctx, asked, asked.scopes, None)

    async def redeem(self, code: str, where: int = 0) -> Tokens:
        app = (self.app, self.other)[where % 2]
        return await authorizing.redeem(app, self.client, Redemption(code, CALLBACK, VERIFIER))

    async def refresh(self, token: str, where: int = 0, after: int = 0) -> Tokens:
        app = (self.app, self.other)[where % 2]
        return await authorizing.refresh(at(app, app.now() + after), self.client, token, None, None)


@asynccontextmanager
async def consenting(database: Database) -> AsyncIterator[Consenting]:
    folder, environment = place(database)
    async with opened(folder, **environment) as app, opened(folder, **environment) as other:
        await as_(app, local_owner(), "user.add", name="ada", role="reader")
        await as_(app, local_owner(), "user.password", name="ada", password=PASSWORD)
        entered = await signing_in.sign_in(app, "ada", PASSWORD, "10.0.0.1")
        assert isinstance(entered, Entered)
        signed = await signing_in.signed_in(app, entered.id)
        assert signed
        told = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"}
        client = (await clients.register(app, told, "10.0.0.1")).client
        yield Consenting(app, other, app.ctx(await signing_in.principal(app, signed)), client)


async def outcome(work: Awaitable[Tokens]) -> Tokens | str:
    try:
        return await work
    except Refused as refused:
        return refused.kind


async def raced(ask: Callable[[int], Awaitable[Tokens]]) -> list[Tokens | str]:
    return await asyncio.gather(*(outcome(ask(n)) for n in range(RACERS)))


async def test_of_all_who_race_for_a_code_one_gets_it(database: Database) -> None:
    async with consenting(database) as ada:
        for _ in range(RACES // RACERS // 2):
            code = await ada.code()
            got = await raced(lambda n, code=code: ada.redeem(code, n))  # type: ignore[misc]  # bound early

            assert sum(isinstance(one, Tokens) for one in got) == 1
            assert got.count("invalid_grant") == RACERS - 1


async def test_all_who_race_for_a_refresh_get_the_same(database: Database) -> None:
    async with consenting(database) as ada:
        for _ in range(RACES // RACERS // 2):
            token = (await ada.redeem(await ada.code())).refresh
            got = await raced(lambda n, token=token: ada.refresh(token, n))  # type: ignore[misc]  # bound early

            # One was made, and within the leeway everyone is told that one.
            assert len({(one.access, one.refresh) for one in got if isinstance(one, Tokens)}) == 1
            assert all(isinstance(one, Tokens) for one in got)
            rows = await ada.app.store.read(
                1, lambda tx: tx.all("SELECT kind FROM oauth_tokens WHERE kind = 'refresh' AND used_at IS NULL")
            )
            assert len(rows) == 1
            await ada.app.store.write(1, lambda tx: tx.run("DELETE FROM oauth_tokens"))


async def test_a_refresh_token_is_used_once(database: Database) -> None:
    async with consenting(database) as ada:
        first = await ada.redeem(await ada.code())
        second = await ada.refresh(first.refresh)
        assert second.refresh != first.refresh
        # A client that did not hear the answer asks again, and is told it.
        again = await ada.refresh(first.refresh, after=50 * SECOND)
        assert (again.access, again.refresh) == (second.access, second.refresh)
        assert again.lasts <= 3600 - 50
        third = await ada.refresh(second.refresh)

        # Later it is a thief, or the client after a thief: nobody goes on.
        assert await outcome(ada.refresh(first.refresh, after=2 * MINUTE)) == "invalid_grant"
        assert await outcome(ada.refresh(third.refresh, 1)) == "invalid_grant"
        audited = (await as_(ada.app, local_owner(), "audit.list")).model_dump()["entries"]
        assert "grant.revoke" in {entry["operation"] for entry in audited}


async def test_codes_tokens_and_consents_end_in_time(database: Database) -> None:
    async with consenting(database) as ada:
        code = await ada.code()
        late = at(ada.app, ada.app.now() + 2 * MINUTE)
        given = Redemption(code, CALLBACK, VERIFIER)
        assert await outcome(authorizing.redeem(late, ada.client, given)) == "invalid_grant"
        tokens = await ada.redeem(await ada.code())
        looked = [
            (await authorizing.introspect(at(ada.app, ada.app.now() + after), tokens.access, None, "http://x"))[
                "active"
            ]
            for after in (0, 59 * MINUTE, HOUR)
        ]
        assert looked == [True, True, False]
        assert await outcome(ada.refresh(tokens.refresh, after=30 * DAY)) == "invalid_grant"
        assert isinstance(await outcome(ada.refresh(tokens.refresh, after=29 * DAY)), Tokens)


async def test_a_person_who_is_shut_out_is_refreshed_no_more(database: Database) -> None:
    async with consenting(database) as ada:
        tokens, code = await ada.redeem(await ada.code()), await ada.code()
        await as_(ada.app, local_owner(), "user.disable", name="ada")

        assert await outcome(ada.refresh(tokens.refresh, 1)) == "invalid_grant"
        assert await outcome(ada.redeem(code, 1)) == "invalid_grant"
        assert await authorizing.introspect(ada.other, tokens.access, None, "http://x") == {"active": False}


async def test_a_client_gives_its_tokens_back(database: Database) -> None:
    folder, environment = place(database)
    async with living(folder, **environment) as ada:
        client = (await ada.register())["client_id"]
        await ada.sign_in()

        async def given_back(token: str) -> None:
            form = {"client_id": client, "token": token, "token_type_hint": "refresh_token"}
            assert (await ada.http.post("/api/auth/mcp/revoke", data=form)).status_code == 200

        async def looked(token: str) -> bool:
            form = {"client_id": client, "token": token}
            return bool((await ada.http.post("/api/auth/mcp/introspect", data=form)).json()["active"])

        first = await ada.tokens(client, resource=None)
        assert await looked(first["access_token"])
        assert await looked(first["refresh_token"])
        await given_back(first["access_token"])
        assert not await looked(first["access_token"])
        second = (await ada.refresh(client, first["refresh_token"])).json()
        assert (await ada.server.operation("memory.list", second["access_token"])).status_code == 200
        await given_back(second["refresh_token"])
        assert (await ada.server.operation("memory.list", second["access_token"])).status_code == 401
        assert (await ada.refresh(client, second["refresh_token"])).json()["error"] == "invalid_grant"
        # What nobody knows is given back all the same.
        await given_back("unknown")


async def test_who_manages_the_org_may_look_at_tokens(database: Database) -> None:
    folder, environment = place(database)
    async with living(folder, "reader", **environment) as ada:
        client = (await ada.register())["client_id"]
        await ada.sign_in()
        token = (await ada.tokens(client))["access_token"]
        me = local_owner()
        manager = (await as_(ada.server.app, me, "key.create", name="m", scopes=["admin"])).model_dump()["secret"]
        plain = (await as_(ada.server.app, me, "key.create", name="p")).model_dump()["secret"]

        async def looked(key: str) -> dict[str, object]:
            headers = {"Authorization": f"Bearer {key}"}
            answer = await ada.http.post("/api/auth/mcp/introspect", data={"token": token}, headers=headers)
            return {"status": answer.status_code, **answer.json()}

        told = await looked(manager)
        assert (told["active"], told["username"], told["client_id"]) == (True, "ada", client)
        # What it is worth now: a reader's token is for reading, whatever was asked for.
        assert (told["scope"], told["aud"], told["iss"]) == ("memory:read", f"{ada.base}/mcp", ada.base)
        assert (await looked(plain))["status"] == 401
        assert (await looked(token))["status"] == 401
