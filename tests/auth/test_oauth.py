"""OAuth from discovery to the last refused request, over real HTTP, on both stores."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from keepsake.core.principal import local_owner
from tests.auth.conftest import as_, made, served
from tests.auth.flowing import AUTHORIZE, CALLBACK, PASSWORD, Person, browser, hidden, living, place, query, ticked
from tests.conftest import Database


async def called(person: Person, token: str, path: str = "/mcp", tool: str = "list_memories") -> httpx.Response:
    """A call of a tool over MCP."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
    headers = {"Accept": "application/json", "Authorization": f"Bearer {token}"}
    return await person.server.http.post(path, json=message, headers=headers)


async def test_a_client_gets_what_a_person_allows_and_no_more(database: Database) -> None:
    folder, environment = place(database)
    async with living(folder, **environment) as ada:
        client = (await ada.register())["client_id"]
        asked = ada.asking(client)
        sent = await ada.http.get(AUTHORIZE, params=asked)
        assert sent.status_code == 303
        assert urlsplit(sent.headers["location"]).path == "/console/signin"
        entered = await ada.sign_in(next=query(sent)["next"])
        assert entered.status_code == 303
        back = await ada.allow(asked, untick=("memory:write",))

        answer = query(back)
        assert back.headers["location"].startswith(CALLBACK + "?")
        assert (answer["state"], answer["iss"]) == ("xyz", ada.base)
        told = (await ada.redeem(client, answer["code"])).json()
        assert (told["token_type"], told["scope"], told["expires_in"]) == ("Bearer", "memory:read", 3600)
        assert (await called(ada, told["access_token"])).status_code == 200
        refused = await called(ada, told["access_token"], tool="retain")
        assert refused.status_code == 403
        header = refused.headers["www-authenticate"]
        assert 'error="insufficient_scope"' in header
        assert 'scope="memory:write"' in header
        assert f'resource_metadata="{ada.base}/.well-known/oauth-protected-resource/mcp"' in header
        # For another resource it is no credential at all.
        assert (await called(ada, told["access_token"], "/kiro/mcp", "search")).status_code == 401
        assert (await ada.server.operation("memory.list", told["access_token"])).status_code == 401


async def test_a_token_for_the_whole_server_works_everywhere(database: Database) -> None:
    folder, environment = place(database)
    async with living(folder, **environment) as ada:
        client = (await ada.register())["client_id"]
        await ada.sign_in()
        token = (await ada.tokens(client, resource=None))["access_token"]

        assert (await ada.server.operation("memory.list", token)).status_code == 200
        for path, tool in (("/mcp", "list_memories"), ("/mcp/tea/", "list_memories"), ("/api/mcp", "list_projects")):
            assert (await called(ada, token, path, tool)).status_code == 200, path


async def test_every_end_counts_from_the_next_request_on(database: Database) -> None:
    folder, environment = place(database)
    async with living(folder, **environment) as ada, served(folder, **environment) as other:
        app, me = ada.server.app, local_owner()
        await ada.sign_in()

        async def status(token: str) -> set[int]:
            answers = [await server.operation("memory.list", token) for server in (ada.server, other)]
            return {answer.status_code for answer in answers}

        async def fresh() -> tuple[str, str]:
            client = str((await ada.register())["client_id"])
            return client, str((await ada.tokens(client, resource=None))["access_token"])

        # The other server has an address of its own, so what is for the whole of the first is not for it.
        _, token = await fresh()
        assert await status(token) == {200, 401}
        await as_(app, me, "user.disable", name="ada")
        assert await status(token) == {401}
        await as_(app, me, "user.add", name="eve", role="owner")
        await as_(app, me, "user.disable", name="ada", enable=True)
        assert await status(token) == {200, 401}
        (grant,) = (await as_(app, me, "grant.list")).model_dump()["grants"]
        assert (grant["user"], grant["client"], grant["banks"]) == ("ada", "Tea timer", None)
        assert grant["last_used_at"] is not None
        # Taken back by one process, refused by another.
        await as_(other.app, me, "grant.revoke", id=grant["id"])
        assert await status(token) == {401}
        client, token = await fresh()
        await as_(other.app, me, "client.revoke", client_id=client)
        assert await status(token) == {401}
        listed = (await as_(app, me, "client.list")).model_dump()["clients"]
        assert [one["revoked_at"] is not None for one in listed] == [True, False]
        assert (await ada.refresh(client, "x")).json()["error"] == "invalid_client"
        page = await ada.http.get(AUTHORIZE, params=ada.asking(client))
        assert page.status_code == 400


async def test_rights_of_the_person_narrow_a_token_at_every_request(database: Database) -> None:
    folder, environment = place(database)
    async with living(folder, "editor", **environment) as ada:
        app, me = ada.server.app, local_owner()
        await as_(app, me, "bank.create", name="default")
        client = (await ada.register())["client_id"]
        await ada.sign_in()
        token = (await ada.tokens(client, resource=None))["access_token"]

        assert (await ada.server.operation("memory.retain", token, content="Tea.")).status_code == 200
        await as_(app, me, "user.role", name="ada", role="reader")
        await as_(app, me, "user.role", name="ada", role="editor", remove=True)
        assert (await ada.server.operation("memory.retain", token, content="Tea.")).status_code == 403
        assert (await ada.server.operation("memory.list", token)).status_code == 200
        await as_(app, me, "user.role", name="ada", role="owner")
        # More rights of the person give the client no more than it was allowed.
        assert (await ada.server.operation("key.list", token)).status_code == 403
        assert (await ada.server.operation("bank.create", token, name="new")).status_code == 403


async def test_a_bank_that_is_unticked_stays_closed_whatever_it_is_called(database: Database) -> None:
    folder, environment = place(database)
    async with living(folder, **environment) as ada:
        app, me = ada.server.app, local_owner()
        for bank in ("api", "web"):
            await as_(app, me, "bank.create", name=bank)
        client = (await ada.register())["client_id"]
        await ada.sign_in()
        asked = ada.asking(client, resource=None)
        page = await ada.http.get(AUTHORIZE, params=asked)
        ids = [value for name, value in ticked(page.text) if name == "bank"]
        assert len(ids) == 3
        assert ids[-1] == "*"
        code = query(await ada.allow(asked, untick=(ids[1],)))["code"]
        token = (await ada.redeem(client, code)).json()["access_token"]

        assert (await ada.server.operation("memory.list", token, bank="api")).status_code == 200
        for bank in ("web", "later"):
            assert (await ada.server.operation("memory.list", token, bank=bank)).status_code == 403
        await as_(app, me, "bank.alias", bank="api", name="backend")
        assert (await ada.server.operation("memory.list", token, bank="backend")).status_code == 200


async def test_deleting_is_never_ticked_and_counts_once_it_is(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        client = (await ada.register())["client_id"]
        await ada.sign_in()
        asked = ada.asking(client, scope="memory:read memory:delete", resource=None)
        page = await ada.http.get(AUTHORIZE, params=asked)
        assert [value for name, value in ticked(page.text) if name == "scope"] == ["memory:read"]
        code = query(await ada.allow(asked, tick=("memory:delete",)))["code"]
        token = (await ada.redeem(client, code)).json()["access_token"]

        told = await ada.server.operation("memory.forget", token, ids=["1"])
        assert told.status_code != 403, told.text


async def test_a_client_steps_up_by_asking_for_more(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        await as_(ada.server.app, local_owner(), "bank.create", name="default")
        client = (await ada.register(scope="memory:read"))["client_id"]
        await ada.sign_in()
        first = await ada.tokens(client, scope="memory:read")
        second = await ada.tokens(client, scope="memory:read memory:write")

        assert (first["scope"], second["scope"]) == ("memory:read", "memory:read memory:write")
        assert [(await called(ada, one["access_token"], tool="retain")).status_code for one in (first, second)] == [
            403,
            200,
        ]


async def test_without_people_nothing_of_it_is_there(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        for path in (
            "/.well-known/oauth-authorization-server",
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource/mcp",
            AUTHORIZE,
            "/console/signin",
        ):
            assert (await server.http.get(path)).status_code == 404, path
        for path in ("register", "token", "revoke", "introspect"):
            assert (await server.http.post(f"/api/auth/mcp/{path}", json={})).status_code == 404, path
        assert (await server.operation("memory.list")).status_code == 200
        key = (await made(server.app, "laptop"))["secret"]
        refused = await server.operation("memory.list")
        assert refused.headers["www-authenticate"] == 'Bearer realm="keepsake"'
        assert (await server.operation("memory.list", key)).status_code == 200


@pytest.mark.parametrize("path", ["", "/", "/mcp", "/mcp/", "/mcp/tea/", "/kiro/mcp", "/api/mcp"])
async def test_an_endpoint_says_who_guards_it(tmp_path: Path, path: str) -> None:
    async with living(tmp_path) as ada:
        told = (await ada.http.get(f"/.well-known/oauth-protected-resource{path}")).json()

        assert told["resource"] == ada.base + (path if path != "/" else "")
        assert told["authorization_servers"] == [ada.base]
        assert "admin" not in told["scopes_supported"]
        server = (await ada.http.get(f"/.well-known/oauth-authorization-server{path}")).json()
        assert server["issuer"] == ada.base
        if path.strip("/"):
            refused = await ada.http.post(path, json={}, headers={"Authorization": "Bearer x"})
            header = refused.headers["www-authenticate"]
            assert f'resource_metadata="{ada.base}/.well-known/oauth-protected-resource{path}"' in header
            assert 'error="invalid_token"' in header
            assert "memory:read" in header


async def test_what_is_no_endpoint_has_no_document(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        for path in ("/v1/operations/memory.list", "/nothing", "/kiro", "//evil.example"):
            answer = await ada.http.get(f"/.well-known/oauth-protected-resource{path}")
            assert answer.status_code == 404, path


async def test_the_server_tells_what_it_offers(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        told = (await ada.http.get("/.well-known/oauth-authorization-server")).json()

        assert told["code_challenge_methods_supported"] == ["S256"]
        assert told["token_endpoint_auth_methods_supported"] == ["none", "client_secret_post", "client_secret_basic"]
        assert told["authorization_response_iss_parameter_supported"] is True
        assert told["client_id_metadata_document_supported"] is True
        for name in ("authorization", "token", "registration", "revocation", "introspection"):
            assert told[f"{name}_endpoint"].startswith(f"{ada.base}/api/auth/mcp/")


async def test_behind_a_proxy_the_public_address_counts(tmp_path: Path) -> None:
    async with living(tmp_path, KEEPSAKE_PUBLIC_URL="https://memory.example/") as ada:
        told = (await ada.http.get("/.well-known/oauth-protected-resource/mcp")).json()
        assert told["resource"] == "https://memory.example/mcp"
        form = await ada.http.get("/console/signin", headers={"Host": "memory.example"})
        cookie = form.headers["set-cookie"]
        assert cookie.startswith("__Host-keepsake_form=")
        assert all(word in cookie for word in ("Secure", "HttpOnly", "SameSite=lax", "Path=/"))
        # The proxy may speak to us under another name than the browser to it.
        given = {"csrf": hidden(form.text, "csrf"), "user": "ada", "password": PASSWORD}
        headers = {"Origin": "https://memory.example", "Cookie": cookie.partition(";")[0]}
        entered = await ada.server.http.post("/console/signin", data=given, headers=headers)
        assert (entered.status_code, entered.headers["location"]) == (303, "/console")
        assert entered.headers["set-cookie"].startswith("__Host-keepsake=")


async def test_what_is_stored_is_no_secret(database: Database) -> None:
    folder, environment = place(database)
    async with living(folder, **environment) as ada:
        client = await ada.register(token_endpoint_auth_method="client_secret_post")
        await ada.sign_in()
        code = await ada.code(client["client_id"])
        told = (await ada.redeem(client["client_id"], code, client_secret=client["client_secret"])).json()
        session = ada.http.cookies["keepsake"]

        stored = ""
        for table in ("oauth_clients", "oauth_grants", "oauth_tokens", "web_sessions", "passwords", "audit", "tries"):
            rows = await ada.server.app.store.read(1, lambda tx, table=table: tx.all(f"SELECT * FROM {table}"))  # type: ignore[misc]  # bound early
            stored += json.dumps([dict(row) for row in rows])
        secrets = (code, told["access_token"], told["refresh_token"], client["client_secret"], session, PASSWORD)
        assert [secret for secret in secrets if secret in stored] == []
        assert "$argon2id$v=19$m=65536,t=3,p=4$" in stored


async def test_two_people_do_not_share_a_browser(tmp_path: Path) -> None:
    async with living(tmp_path) as ada, browser(ada.server) as other:
        await as_(ada.server.app, local_owner(), "user.add", name="eve", role="reader")
        await as_(ada.server.app, local_owner(), "user.password", name="eve", password="another long password")
        client = (await ada.register())["client_id"]
        await ada.sign_in()
        asked = ada.asking(client)
        page = await ada.http.get(AUTHORIZE, params=asked)
        eve = Person(ada.server, other)
        await eve.sign_in("eve", "another long password")

        # Her form is of no use in the other's browser.
        form = {"csrf": hidden(page.text, "csrf"), "allow": "yes", "scope": "memory:read", "bank": "*"}
        refused = await other.post(AUTHORIZE, params=asked, data=form, headers={"Origin": ada.base})
        assert refused.status_code == 403
        assert "location" not in refused.headers


async def test_a_session_is_of_one_client(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        await ada.sign_in()
        tokens = [(await ada.tokens((await ada.register())["client_id"]))["access_token"] for _ in range(2)]
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}

        async def asked(token: str, method: str, params: object, **headers: str) -> httpx.Response:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            given = {"Accept": "application/json", "Authorization": f"Bearer {token}", **headers}
            return await ada.server.http.post("/mcp", json=message, headers=given)

        begun = await asked(tokens[0], "initialize", hello)
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        answers = [await asked(token, "tools/list", {}, **session) for token in tokens]

        assert [answer.status_code for answer in answers] == [200, 404]
