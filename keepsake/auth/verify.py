"""A credential becomes a Principal, anew on every request."""

import hashlib
import hmac
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from keepsake.auth.keys import PREFIX
from keepsake.core import clock, roles
from keepsake.core.errors import Unauthenticated
from keepsake.core.lazy import lazy
from keepsake.core.principal import EVERY_SCOPE, LOCAL_ORG, Principal, Rights, local_owner
from keepsake.settings import Settings
from keepsake.store import keys
from keepsake.store.engine import Tx
from keepsake.store.store import Store

if TYPE_CHECKING:
    from keepsake.auth import oauth as rules
    from keepsake.auth.external import Issuers
    from keepsake.store import oauth, users
else:
    rules = lazy("keepsake.auth.oauth")
    oauth = lazy("keepsake.store.oauth")
    users = lazy("keepsake.store.users")

#: The tenant key is counted under this id; no stored key has it.
TENANT = 0


async def principal(
    store: Store,
    settings: Settings,
    token: str | None,
    *,
    open_door: bool,
    issuers: "Issuers | None" = None,
    resources: Callable[[], Collection[str]] = tuple,
) -> Principal:
    """Find out who asks; `open_door`: no credential is needed while none exists, `issuers`: who else may vouch.

    `resources`: tells as what we are addressed, which an OAuth token must have been made for.
    """
    if token is not None and (tenant := _tenant(settings, token)):
        return tenant
    if token is not None and issuers is not None and not token.startswith(PREFIX) and issuers.may_know(token):
        return await issuers.principal(token)
    if token is not None and rules.is_access(token):
        return await _client_of(store, token, resources())
    if token is not None:
        return await _key_holder(store, token)
    if open_door and not await credentials_exist(store, settings):
        return local_owner()
    raise Unauthenticated(
        "A credential is needed. Send `Authorization: Bearer <key>`; `keepsake key create` makes one."
    )


async def credentials_exist(store: Store, settings: Settings) -> bool:
    """Whether the open door of loopback is closed."""
    return bool(settings.tenant_api_key or settings.jwt_issuers) or await store.engine.look(keys.any_active)


def _tenant(settings: Settings, token: str) -> Principal | None:
    if not settings.tenant_api_key or not hmac.compare_digest(token.encode(), settings.tenant_api_key.encode()):
        return None
    return Principal(org=LOCAL_ORG, name="tenant", scopes=EVERY_SCOPE, may_destroy=True, key=TENANT)


async def _key_holder(store: Store, token: str) -> Principal:
    sha256 = hashlib.sha256(token.encode()).hexdigest()

    async def find(tx: Tx) -> "tuple[keys.Key | None, users.Standing | None]":
        key = await keys.by_hash(tx, sha256)
        if key is None or key.person is None:
            return key, None
        await tx.within(key.org)
        return key, await users.standing(tx, key.org, key.person)

    key, standing = await store.engine.look(find)
    expired = key is not None and key.expires_at is not None and key.expires_at <= clock.now()
    if key is None or key.revoked_at is not None or expired:
        raise Unauthenticated("The credential is not valid. Make a new key with `keepsake key create`.")
    who = Principal(
        org=key.org,
        name=f"key:{key.name}",
        scopes=key.scopes,
        tier=key.tier,
        banks=key.banks,
        may_destroy=key.may_destroy,
        key=key.id,
    )
    return who if key.person is None else _limited(who, key.person, standing)


async def _client_of(store: Store, token: str, resources: Collection[str]) -> Principal:
    """A client that acts for a person: what its token, their consent and their own rights all allow."""
    sha256, now = rules.hashed(token), clock.now()
    here = {rules.trimmed(one) for one in resources}

    async def find(tx: Tx) -> "tuple[oauth.Held, frozenset[str] | None, users.Standing | None] | None":
        held = await oauth.held(tx, sha256, now)
        if held is None or rules.trimmed(held.grant.resource) not in here:
            return None
        org, banks = held.grant.org, held.grant.banks
        await tx.within(org)
        reach = None if banks is None else await oauth.bank_names(tx, org, banks)
        return held, reach, await users.standing(tx, org, held.grant.person)

    found = await store.engine.look(find)
    if found is None:
        raise Unauthenticated("The token is not valid here. Ask for a new one, for this address.")
    held, reach, standing = found
    grant = held.grant
    who = Principal(
        org=grant.org,
        name="client",
        scopes=grant.scopes & held.token.scopes,
        banks=reach,
        # Whoever ticks that a client may delete has said so knowingly: it is never ticked for them.
        may_destroy="memory:delete" in grant.scopes,
        key=grant.id,
        client=grant.client,
    )
    return _limited(who, grant.person, standing)


async def of_person(store: Store, who: Principal, person: int) -> Principal:
    """A credential of a person, which may do no more than that person may at this moment."""
    return _limited(who, person, await store.read(who.org, lambda tx: users.standing(tx, who.org, person)))


def _limited(who: Principal, person: int, standing: "users.Standing | None") -> Principal:
    if standing is None or standing.is_shut_out:
        raise Unauthenticated(
            "The credential is not valid: the person it belongs to is shut out. Ask an owner of the org."
        )
    at = {bank: roles.scopes(names) for bank, names in standing.roles.items() if bank is not None}
    rights = Rights(roles.scopes(standing.roles.get(None, ())), at)
    narrowed = who.narrowed(scopes=rights.anywhere)
    return replace(narrowed, name=f"user:{standing.name}", person=person, rights=rights)
