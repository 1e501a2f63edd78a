"""From a person's consent to a client's tokens, and back; no operation, because clients speak OAuth here."""

from dataclasses import dataclass

from keepsake.auth import oauth as rules
from keepsake.auth import verify
from keepsake.auth.oauth import Refused, Secret
from keepsake.context import App, Changed, Ctx
from keepsake.core import log
from keepsake.core.clock import SECOND
from keepsake.core.errors import Unauthenticated
from keepsake.core.principal import LOCAL_ORG, Principal
from keepsake.ops.clients import USED_TTL
from keepsake.store import audit, banks, oauth, users
from keepsake.store.banks import Bank
from keepsake.store.engine import Tx
from keepsake.store.oauth import Client, Grant, Token


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks for, checked."""

    client: Client
    redirect: str
    challenge: str
    scopes: frozenset[str]
    resource: str
    state: str | None


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a client gets."""

    access: str
    refresh: str
    #: Seconds for which the access token holds.
    lasts: int
    scopes: frozenset[str]


async def reachable(ctx: Ctx) -> list[Bank]:
    """The banks that whoever consents can open to a client, by name."""
    rights = ctx.principal.rights
    held = await ctx.read(lambda tx: banks.listed(tx, ctx.org))
    if rights is None or rights.everywhere:
        return held
    return [bank for bank in held if bank.name in rights.at]


async def consent(ctx: Ctx, asked: Asked, scopes: frozenset[str], chosen: tuple[int, ...] | None) -> str:
    """Note what the person allows, and make the code that the client gets for it."""
    code, person = rules.made("code"), ctx.principal.person
    if person is None:
        raise Unauthenticated("Only a person who is signed in can consent.")

    async def body(tx: Tx) -> Changed[str]:
        now = ctx.now
        grant = Grant(
            org=ctx.org,
            id=ctx.store.new_id(),
            person=person,
            client=asked.client.id,
            scopes=scopes & asked.scopes,
            banks=chosen,
            resource=asked.resource,
            created_at=now,
            expires_at=now + rules.GRANT_TTL,
        )
        await oauth.insert_grant(tx, grant)
        await oauth.keep_client(tx, ctx.org, asked.client.id, now + USED_TTL)
        end = now + rules.CODE_TTL
        token = Token(
            ctx.org, code.sha256, "code", grant.id, grant.scopes, now, end, None, asked.redirect, asked.challenge
        )
        await oauth.insert_token(tx, token)
        return Changed(code.text, 0, [grant.id, asked.client.id], " ".join(sorted(grant.scopes)))

    return await ctx.running("grant.create").change(body)


@dataclass(frozen=True, slots=True)
class Redemption:
    """A code with what must come along."""

    code: str
    redirect: str
    verifier: str
    resource: str | None = None


async def redeem(app: App, client: Client, given: Redemption) -> Tokens:
    """Give tokens for a code, once."""
    now, sha256 = app.now(), rules.hashed(given.code)
    access, refresh = rules.made("access"), rules.made("refresh")

    async def body(tx: Tx) -> Tokens | Refused:
        code = await oauth.use(tx, LOCAL_ORG, "code", sha256, now)
        if code is None:
            return await _used_code(tx, sha256, now)
        grant = await _living(tx, code.grant_id, client, now)
        # Whatever is wrong, the code is used up: who guesses does not get to guess again.
        is_proven = rules.is_proven(code.challenge, given.verifier)
        if grant is None or code.redirect != given.redirect or not is_proven:
            return _invalid("The code is not valid for this client, redirect URI and verifier.")
        if not _is_for(grant, given.resource):
            return Refused("invalid_target", "The code was made for another resource.")
        return await _issue(tx, grant, access, refresh, now, grant.scopes)

    return _given(await app.store.write(LOCAL_ORG, body))


async def _used_code(tx: Tx, sha256: str, now: int) -> Refused:
    """A code that is used again was seen by someone else, so what came of it ends."""
    known = await oauth.token(tx, LOCAL_ORG, sha256)
    if known is not None and known.kind == "code" and known.used_at is not None:
        await _end(tx, known.grant_id, now, "code")
    return _invalid("The code is not valid, or was used already.")


async def refresh(app: App, client: Client, token: str, scope: str | None, resource: str | None) -> Tokens:
    """Give new tokens for a refresh token; each is used once, but for a short race between a client's own processes."""
    now, sha256 = app.now(), rules.hashed(token)
    # Derived, so that those who race get the same answer, though only hashes are kept.
    access = rules.named("access", app.store.digest(f"oauth access\0{token}"))
    successor = rules.named("refresh", app.store.digest(f"oauth refresh\0{token}"))

    async def body(tx: Tx) -> Tokens | Refused:
        known = await oauth.token(tx, LOCAL_ORG, sha256)
        if known is None or known.kind != "refresh" or known.expires_at <= now:
            return _invalid("The refresh token is not valid.")
        grant = await _living(tx, known.grant_id, client, now)
        if grant is None:
            return _invalid("The refresh token is not valid.")
        scopes = grant.scopes if scope is None else rules.wanted_scopes(scope)
        if not scopes <= grant.scopes:
            return Refused("invalid_scope", "The scope is wider than what was consented to.")
        if not _is_for(grant, resource):
            return Refused("invalid_target", "The refresh token was made for another resource.")
        if await oauth.use(tx, LOCAL_ORG, "refresh", sha256, now) is not None:
            await oauth.keep_client(tx, LOCAL_ORG, client.id, now + USED_TTL)
            return await _issue(tx, grant, access, successor, now, scopes)
        return await _used_refresh(tx, sha256, grant, now, (access, successor))

    return _given(await app.store.write(LOCAL_ORG, body))


async def _used_refresh(tx: Tx, sha256: str, grant: Grant, now: int, same: tuple[Secret, Secret]) -> Tokens | Refused:
    access, successor = same
    known = await oauth.token(tx, LOCAL_ORG, sha256)
    used_at = known.used_at if known and known.used_at is not None else 0
    if now - used_at > rules.LEEWAY:
        await _end(tx, grant.id, now, "refresh")
        return _invalid("The refresh token was used already. Whoever has it must sign in again.")
    log.info("refreshed again within the leeway", grant=grant.id)
    given = await oauth.token(tx, LOCAL_ORG, access.sha256)
    scopes = given.scopes if given else grant.scopes
    lasts = max(0, used_at + rules.ACCESS_TTL - now) // SECOND
    return Tokens(access.text, successor.text, lasts, scopes)


async def _living(tx: Tx, id: int, client: Client, now: int) -> Grant | None:
    """A grant of this client that holds, of someone who is not shut out."""
    grant = await oauth.grant(tx, LOCAL_ORG, id)
    if grant is None or grant.client != client.id or grant.revoked_at is not None or grant.expires_at <= now:
        return None
    user = await users.of_id(tx, LOCAL_ORG, grant.person)
    return grant if user is not None and user.disabled_at is None else None


async def _issue(tx: Tx, grant: Grant, access: Secret, refresh: Secret, now: int, scopes: frozenset[str]) -> Tokens:
    end = min(now + rules.ACCESS_TTL, grant.expires_at)
    await oauth.insert_token(tx, Token(grant.org, access.sha256, "access", grant.id, scopes, now, end))
    lasting = Token(grant.org, refresh.sha256, "refresh", grant.id, grant.scopes, now, grant.expires_at)
    await oauth.insert_token(tx, lasting)
    return Tokens(access.text, refresh.text, (end - now) // SECOND, scopes)


async def _end(tx: Tx, grant: int, now: int, what: str) -> None:
    if await oauth.revoke_grant(tx, LOCAL_ORG, grant, now):
        log.warning("ended a grant, because something of it was used twice", what=what, grant=grant)
        await audit.append(tx, audit.Entry(LOCAL_ORG, 0, now, "keepsake", "grant.revoke", [grant]))


async def revoke(app: App, client: Client, token: str) -> None:
    """End a token of this client: an access token alone, a refresh token with everything that came of its grant."""
    now, sha256 = app.now(), rules.hashed(token)

    async def body(tx: Tx) -> None:
        known = await oauth.token(tx, LOCAL_ORG, sha256)
        grant = await oauth.grant(tx, LOCAL_ORG, known.grant_id) if known else None
        if known is None or grant is None or grant.client != client.id:
            return
        if known.kind == "access":
            await oauth.delete_token(tx, LOCAL_ORG, sha256)
        elif await oauth.revoke_grant(tx, LOCAL_ORG, grant.id, now):
            entry = audit.Entry(LOCAL_ORG, 0, now, f"client:{client.id}", "grant.revoke", [grant.id])
            await audit.append(tx, entry)

    await app.store.write(LOCAL_ORG, body)


async def introspect(app: App, token: str, client: Client | None, issuer: str) -> dict[str, object]:
    """What a token is worth now; one of another client's is worth nothing to who asks."""
    now, sha256 = app.now(), rules.hashed(token)

    async def find(tx: Tx) -> tuple[Token, Grant, Client] | None:
        known = await oauth.token(tx, LOCAL_ORG, sha256)
        grant = await oauth.grant(tx, LOCAL_ORG, known.grant_id) if known else None
        owner = await oauth.client_of(tx, grant) if grant else None
        return (known, grant, owner) if known and grant and owner else None

    found = await app.store.read(LOCAL_ORG, find)
    if found is None or (client is not None and found[2].id != client.id) or not _holds(*found, now):
        return {"active": False}
    known, grant, owner = found
    try:
        who = await verify.of_person(
            app.store, Principal(grant.org, "client", grant.scopes & known.scopes), grant.person
        )
    except Unauthenticated:
        return {"active": False}
    told = {"scope": " ".join(sorted(who.scopes)), "client_id": owner.client_id, "sub": str(grant.person)}
    times = {"iat": known.created_at // SECOND, "exp": min(known.expires_at, grant.expires_at) // SECOND}
    place = {"aud": grant.resource, "iss": issuer, "username": who.name.removeprefix("user:")}
    return {"active": True, "token_type": "Bearer", **told, **times, **place}


def _holds(token: Token, grant: Grant, client: Client, now: int) -> bool:
    is_living = grant.revoked_at is None and grant.expires_at > now and client.revoked_at is None
    return token.kind != "code" and token.used_at is None and token.expires_at > now and is_living


def _is_for(grant: Grant, resource: str | None) -> bool:
    return resource is None or rules.trimmed(resource) == rules.trimmed(grant.resource)


def _invalid(reason: str) -> Refused:
    return Refused("invalid_grant", reason)


def _given(outcome: Tokens | Refused) -> Tokens:
    if isinstance(outcome, Refused):
        raise outcome
    return outcome
