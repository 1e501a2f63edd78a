"""OAuth clients: how they register or are read from their document, how they prove who they are, and their end."""

import json
import secrets
from dataclasses import dataclass, replace

from pydantic import Field

from keepsake.auth import oauth as rules
from keepsake.auth import policy
from keepsake.auth.oauth import Described, Refused
from keepsake.context import App, Changed, Ctx
from keepsake.core import clock, log
from keepsake.core.clock import DAY, HOUR
from keepsake.core.errors import NotFound, Unavailable
from keepsake.core.models import Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.principal import LOCAL_ORG, Principal
from keepsake.core.text import Clean
from keepsake.services import safefetch
from keepsake.services.safefetch import Fetch
from keepsake.store import oauth, passwords
from keepsake.store.engine import Tx
from keepsake.store.oauth import Client

__all__ = ["Client", "Fetch"]
#: Registrations from one address in an hour, and those in all that nobody has consented to yet.
PER_ADDRESS, MOST_UNUSED = 30, 1_000
#: How long a client that nobody consents to is kept, and one that is used.
UNUSED_TTL, USED_TTL = DAY, 90 * DAY
#: For how long a metadata document is believed, and for how long when it cannot be read.
FRESH, STALE = HOUR, DAY
_ANYONE = Principal(LOCAL_ORG, "anonymous", frozenset())
fetched: Fetch = safefetch.fetched


@dataclass(frozen=True, slots=True)
class Registered:
    """A new client; its secret, where it has one, is shown only here."""

    client: Client
    described: Described
    secret: str


async def register(app: App, told: object, address: str) -> Registered:
    """Take a client that describes itself, for as long as it takes to be consented to."""
    described = rules.registered(told)
    secret = "" if described.method == "none" else secrets.token_urlsafe(32)
    now, digest = app.now(), app.store.digest(f"address\0{address}")
    if await app.store.write(LOCAL_ORG, lambda tx: passwords.tried(tx, LOCAL_ORG, "register", digest, now, HOUR)) > (
        PER_ADDRESS
    ):
        raise Refused("temporarily_unavailable", "Too many registrations from this address. Try again later.", 429)

    async def body(tx: Tx) -> Changed[Client | None]:
        if await oauth.unused(tx, LOCAL_ORG, now) >= MOST_UNUSED:
            return Changed(None, 0, [])
        client = Client(
            org=LOCAL_ORG,
            id=app.store.new_id(),
            client_id=secrets.token_urlsafe(24),
            kind="registered",
            name=described.name,
            redirects=described.redirects,
            method=described.method,
            secret=rules.hashed(secret) if secret else "",
            created_at=now,
            read_at=now,
            expires_at=now + UNUSED_TTL,
        )
        await oauth.put_client(tx, client)
        return Changed(client, 0, [client.id])

    client = await app.ctx(_ANYONE, surface="web").running("client.register").change(body)
    if client is None:
        raise Refused("temporarily_unavailable", "Too many clients wait for consent. Try again later.", 429)
    return Registered(client, described, secret)


async def met(app: App, client_id: str, fetch: Fetch) -> Client:
    """The client of an id; one that is a document's address is read there, when it has not been for a while."""
    now = app.now()
    known = await app.store.read(LOCAL_ORG, lambda tx: oauth.client(tx, LOCAL_ORG, client_id))
    is_document = app.settings.client_documents and rules.is_document(client_id)
    if known is not None and known.revoked_at is not None:
        raise Refused("invalid_client", "This client was shut out by an owner of this server.")
    if is_document and (known is None or now - known.read_at > FRESH):
        return await _read(app, client_id, known, fetch)
    if known is None or not known.is_alive(now):
        raise Refused("invalid_client", "No client of this id is registered here. The client must register again.")
    return known


async def _read(app: App, client_id: str, known: Client | None, fetch: Fetch) -> Client:
    now = app.now()
    try:
        told = json.loads(await fetch(client_id))
    except (Unavailable, ValueError, RecursionError) as error:
        log.info("no document of a client", reason=type(error).__name__)
        if known is not None and now - known.read_at <= STALE:
            return known
        raise Refused("invalid_client", "The client's metadata document cannot be read.") from None
    described = rules.documented(told, client_id)

    async def body(tx: Tx) -> Changed[Client]:
        id = known.id if known else app.store.new_id()
        client = Client(
            org=LOCAL_ORG,
            id=id,
            client_id=client_id,
            kind="document",
            name=described.name,
            redirects=described.redirects,
            method="none",
            secret="",
            created_at=known.created_at if known else now,
            read_at=now,
            expires_at=now + USED_TTL,
        )
        await oauth.put_client(tx, client)
        # Another process may have met it first, under an id of its own.
        return Changed(await oauth.client(tx, LOCAL_ORG, client_id) or client, 0, [id])

    return await app.ctx(_ANYONE, surface="web").running("client.read").change(body)


async def authenticated(app: App, client_id: str, secret: str | None) -> Client:
    """The client that asks for tokens, if it is the one it says."""
    client = await app.store.read(LOCAL_ORG, lambda tx: oauth.client(tx, LOCAL_ORG, client_id))
    if client is None or not client.is_alive(app.now()):
        raise Refused("invalid_client", "No such client. Register again.", 401)
    is_proven = not secret if client.method == "none" else rules.is_secret(client.secret, secret or "")
    if not is_proven:
        raise Refused("invalid_client", "The client did not prove who it is.", 401)
    return client


class OAuthClient(Result):
    """A program that people let use their memories."""

    client_id: str = Field(description="What it calls itself by.")
    name: str = Field(description="The name that it gave itself; nobody vouches for it.")
    kind: str = Field(description="registered, or document for one that is known by its metadata document.")
    redirects: list[str] = Field(description="Where it is answered.")
    created_at: str = Field(description="When it was first met, ISO 8601.")
    expires_at: str = Field(description="When it is forgotten unless it is used, ISO 8601.")
    revoked_at: str | None = Field(description="Since when it is shut out; null means it is not.")
    grants: int = Field(description="How many consents of people it has now.")


class ListClients(Given):
    """Nothing to say."""


class Clients(Result):
    """The OAuth clients."""

    clients: list[OAuthClient] = Field(description="Newest first.")


@operation("client.list", effect=Effect.READ, scope="admin")
async def list_(ctx: Ctx, given: ListClients) -> Clients:
    """List the OAuth clients that have registered here or were read from their document, newest first."""
    policy.check_manager(ctx.principal, "sees its clients")

    async def body(tx: Tx) -> Clients:
        now, held = ctx.now, await oauth.grants(tx, ctx.org)
        living = [grant.client for grant in held if grant.revoked_at is None and grant.expires_at > now]
        return Clients(clients=[_shown(one, living.count(one.id)) for one in await oauth.clients(tx, ctx.org)])

    return await ctx.read(body)


class RevokeClient(Given):
    """Which client."""

    client_id: Clean = Field(min_length=1, max_length=rules.LONGEST, description="The client's id, as listed.")


@operation("client.revoke", effect=Effect.MUTATE, scope="admin")
async def revoke(ctx: Ctx, given: RevokeClient) -> OAuthClient:
    """Shut an OAuth client out; every token it holds is refused from the next request on."""
    policy.check_manager(ctx.principal, "shuts clients out")

    async def body(tx: Tx) -> Changed[OAuthClient]:
        found = await oauth.client(tx, ctx.org, given.client_id)
        if found is None or await oauth.revoke_client(tx, ctx.org, given.client_id, ctx.now) is None:
            raise NotFound("No such client that is not shut out already. client.list tells the clients.")
        return Changed(_shown(replace(found, revoked_at=ctx.now), 0), 0, [found.id])

    return await ctx.change(body)


def _shown(client: Client, grants: int) -> OAuthClient:
    return OAuthClient(
        client_id=client.client_id,
        name=client.name,
        kind=client.kind,
        redirects=list(client.redirects),
        created_at=clock.iso(client.created_at),
        expires_at=clock.iso(client.expires_at),
        revoked_at=None if client.revoked_at is None else clock.iso(client.revoked_at),
        grants=grants,
    )
