"""Two orgs on one server, and everyone who may or may not come to its doors."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
from starlette.applications import Starlette
from starlette.routing import Route

from keepsake.context import App
from keepsake.core.principal import Principal, local_owner
from keepsake.ops import authorizing, clients, signing_in
from keepsake.ops.authorizing import Asked, Redemption
from keepsake.ops.signing_in import Entered
from keepsake.store.engine import Tx
from keepsake.surfaces.console import site as console
from keepsake.surfaces.front import Endpoint
from keepsake.surfaces.http import Site
from keepsake.tools.dialect import Dialect
from tests.auth.conftest import Json, as_, bearer, opened
from tests.auth.flowing import CALLBACK, PASSWORD, challenge, place
from tests.conftest import Database
from tests.isolation.declared import DEFAULT, EVERY, Claim

BASE = "http://127.0.0.1"
#: The bank that everyone asks for, and the one that some have instead.
SHARED, MINE = "shared", "mine"
OTHER_ORG = 2
#: What is counted and leaves no trace of a refusal.
VOLATILE = {"counters", "handed_out", "key_uses", "mcp_sessions", "nodes", "tries"}
VERIFIER = "v" * 43


@dataclass(frozen=True)
class Door:
    """A dialect at the path where it is served."""

    name: str
    path: str
    dialect: Dialect

    def at(self, bank: str) -> str:
        return self.path.replace("{bank_id:path}", f"{bank}/")


@dataclass
class Stage:
    """A site in this process, and who there is."""

    app: App
    http: httpx.AsyncClient
    doors: list[Door]
    #: By name: the bearer, and what it was made for.
    people: dict[str, tuple[str | None, Claim]] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    sessions: dict[tuple[str, str], str] = field(default_factory=dict)
    #: What the shared bank is called where clients choose one by its id.
    workspace: str = ""
    #: The owner's browser, and the pages that it can open.
    cookie: str = ""
    pages: list[str] = field(default_factory=list)

    def headers(self, who: str, bank: str = SHARED) -> dict[str, str]:
        return {"Accept": "application/json", "X-Bank-Id": bank, **bearer(self.people[who][0])}

    async def operation(self, who: str, id: str, arguments: Json, bank: str = SHARED) -> httpx.Response:
        return await self.http.post(f"/v1/operations/{id}", json=arguments, headers=self.headers(who, bank))

    async def mcp(self, who: str, door: Door, method: str, params: Json, bank: str = SHARED) -> httpx.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = self.headers(who, bank) | await self._session(who, door)
        if door.dialect.workspace:
            headers[door.dialect.workspace] = self.workspace
        return await self.http.post(door.at(bank), json=message, headers=headers)

    async def _session(self, who: str, door: Door) -> dict[str, str]:
        """The session that a door asks for, begun once."""
        if not door.dialect.needs_session or not self.people[who][1].is_valid:
            return {}
        if (who, door.name) not in self.sessions:
            opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
            begun = await self.http.post(door.at(SHARED), json=opening, headers=self.headers(who))
            self.sessions[who, door.name] = begun.headers["mcp-session-id"]
        return {"Mcp-Session-Id": self.sessions[who, door.name]}

    async def fingerprint(self, org: int) -> dict[str, object]:
        """How many rows each table has for an org, and where its audit chains end."""
        counting = " UNION ALL ".join(
            f"SELECT '{table}' AS what, count(*) AS held FROM {table} WHERE org = :org" for table in self.tables
        )

        async def body(tx: Tx) -> dict[str, object]:
            rows = await tx.all(counting, org=org)
            heads = await tx.all("SELECT bank, n, hash FROM audit_heads WHERE org = :org ORDER BY bank", org=org)
            return {row["what"]: row["held"] for row in rows} | {"heads": heads}

        return await self.app.store.read(org, body)


@asynccontextmanager
async def staged(database: Database) -> AsyncIterator[Stage]:
    """Everyone before one server, over one store."""
    folder, environment = place(database)
    wanted = {"KEEPSAKE_RATE_LIMIT": "1000000", **environment}
    async with opened(Path(folder), **wanted) as living:
        # Answers that tell how long ago something was are the same however slow the machine is.
        moment = living.now()
        app = replace(living, now=lambda: moment)
        site = Site(app)
        http = httpx.AsyncClient(transport=httpx.ASGITransport(site.asgi()), base_url=BASE)
        stage = Stage(app, http, doors(site))
        stage.tables = await _tables(app, database.engine)
        await _peopled(stage)
        row = await app.store.read(1, lambda tx: tx.one("SELECT ws_hex FROM banks WHERE name = :name", name=SHARED))
        stage.workspace = f"ws_{row['ws_hex']}" if row else ""
        stage.cookie = (await _signed_in(app)).id
        stage.pages = [
            one.path
            for one in console.routes(app)
            if isinstance(one, Route) and "GET" in (one.methods or ()) and "{" not in one.path
        ]
        failed: Exception | None = None
        async with site.running(Starlette()), http:
            try:
                yield stage
            except Exception as error:
                # Told outside, because every manager of the site would wrap it once more.
                failed = error
        if failed is not None:
            raise failed


def doors(site: Site) -> list[Door]:
    """Every dialect where it is served, found in the site's own paths; the plainest path of each."""
    found: dict[int, Door] = {}
    for route in site.routes():
        endpoint = getattr(route.app, "endpoint", None) if isinstance(route, Route) else None
        if not isinstance(route, Route) or not isinstance(endpoint, Endpoint):
            continue
        names = set(route.param_convertors)
        if names <= {"bank_id"} and id(endpoint.dialect) not in found:
            name = f"{endpoint.dialect.name} at {route.path}" if names else endpoint.dialect.name
            found[id(endpoint.dialect)] = Door(name, route.path, endpoint.dialect)
    return list(found.values())


async def _tables(app: App, engine: str) -> list[str]:
    """Every table that has an org."""
    asked = (
        "SELECT m.name AS name FROM sqlite_master m JOIN pragma_table_info(m.name) p ON p.name = 'org'"
        " WHERE m.type = 'table' AND m.name NOT LIKE '%\\_fts%' ESCAPE '\\'"
        if engine == "sqlite"
        else "SELECT c.relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org'"
        " WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition"
    )
    rows = await app.store.read(1, lambda tx: tx.all(asked))
    return sorted({row["name"] for row in rows} - VOLATILE)


async def _peopled(stage: Stage) -> None:
    app, me, them = stage.app, local_owner(), local_owner(OTHER_ORG)
    await app.store.engine.claim(
        lambda tx: tx.run("INSERT INTO orgs (org, name, external, created_at) VALUES (2, 'other', NULL, 0)")
    )
    for bank in (SHARED, MINE):
        await as_(app, me, "bank.create", name=bank)
    await as_(app, them, "bank.create", name="theirs")

    async def key(who: Principal, name: str, claim: Claim, **more: object) -> None:
        given = {"scopes": sorted(claim.scopes), "allow_destructive": claim.may_destroy, "tier": claim.tier, **more}
        if claim.banks is not None:
            given["banks"] = sorted(claim.banks)
        told = (await as_(app, who, "key.create", name=name, **given)).model_dump()
        stage.people[name] = (told["secret"], claim)

    for role in ("owner", "reader", "editor", "auditor"):
        await as_(app, me, "user.add", name=role, role=role)
        await key(me, role, Claim(roles={None: role}), user=role)
    await as_(app, me, "user.add", name="elsewhere", role="editor", bank=MINE)
    await key(me, "other bank", Claim(roles={MINE: "editor"}), user="elsewhere")
    await as_(app, me, "user.add", name="landlord", role="owner", bank=MINE)
    await key(me, "owner of another bank", Claim(roles={MINE: "owner"}), user="landlord")
    reads = frozenset({"memory:read", "watch:read"})
    await key(me, "narrowed", Claim(scopes=reads, banks=frozenset({SHARED}), may_destroy=False))
    await key(me, "core", Claim(tier="core"))
    await key(me, "may not delete", Claim(may_destroy=False))
    await key(them, "other org", Claim(org=OTHER_ORG, scopes=DEFAULT, may_destroy=False))
    await key(them, "admin of another org", Claim(org=OTHER_ORG, scopes=EVERY))
    for ended in ("expired", "revoked", "shut-out"):
        await as_(app, me, "user.add", name=ended, role="owner")
        await key(me, ended, Claim(is_valid=False), user=ended)
    await as_(app, me, "key.revoke", name="revoked")
    await as_(app, me, "user.disable", name="shut-out")
    await app.store.write(1, lambda tx: tx.run("UPDATE api_keys SET expires_at = 1 WHERE org = 1 AND name = 'expired'"))
    stage.people["anonymous"] = (None, Claim(is_valid=False))
    await as_(app, me, "user.password", name="owner", password=PASSWORD)
    asked = frozenset({"memory:read", "memory:write"})
    stage.people["client"] = (await _token(app, asked, BASE), Claim(scopes=asked, may_destroy=False))
    elsewhere = await _token(app, asked, "https://elsewhere.example/mcp")
    stage.people["wrong audience"] = (elsewhere, Claim(is_valid=False))


async def _signed_in(app: App) -> Entered:
    entered = await signing_in.sign_in(app, "owner", PASSWORD, "10.0.0.1")
    assert isinstance(entered, Entered)
    return entered


async def _token(app: App, scopes: frozenset[str], resource: str) -> str:
    """An access token of the owner's, for a resource."""
    signed = await signing_in.signed_in(app, (await _signed_in(app)).id)
    assert signed
    told = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"}
    client = (await clients.register(app, told, "10.0.0.1")).client
    ctx = app.ctx(await signing_in.principal(app, signed))
    asked = Asked(client, CALLBACK, challenge(VERIFIER), scopes, resource, None)
    code = await authorizing.consent(ctx, asked, scopes, None)
    return (await authorizing.redeem(app, client, Redemption(code, CALLBACK, VERIFIER))).access
