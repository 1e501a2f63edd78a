"""A credential becomes a Principal, anew on every request."""

import hashlib
import hmac

from keepsake.core import clock
from keepsake.core.errors import Unauthenticated
from keepsake.core.principal import EVERY_SCOPE, LOCAL_ORG, Principal, local_owner
from keepsake.settings import Settings
from keepsake.store import keys
from keepsake.store.engine import Tx
from keepsake.store.store import Store

#: The tenant key is counted under this id; no stored key has it.
TENANT = 0


async def principal(store: Store, settings: Settings, token: str | None, *, open_door: bool) -> Principal:
    """Find out who asks; `open_door` says that no credential is needed while none exists."""
    if token is not None:
        return _tenant(settings, token) or await _key_holder(store, token)
    if open_door and not await credentials_exist(store, settings):
        return local_owner()
    raise Unauthenticated(
        "A credential is needed. Send `Authorization: Bearer <key>`; `keepsake key create` makes one."
    )


async def credentials_exist(store: Store, settings: Settings) -> bool:
    """Whether the open door of loopback is closed."""
    return bool(settings.tenant_api_key) or await store.engine.look(keys.any_active)


def _tenant(settings: Settings, token: str) -> Principal | None:
    if not settings.tenant_api_key or not hmac.compare_digest(token.encode(), settings.tenant_api_key.encode()):
        return None
    return Principal(org=LOCAL_ORG, name="tenant", scopes=EVERY_SCOPE, may_destroy=True, key=TENANT)


async def _key_holder(store: Store, token: str) -> Principal:
    sha256 = hashlib.sha256(token.encode()).hexdigest()

    async def find(tx: Tx) -> keys.Key | None:
        return await keys.by_hash(tx, sha256)

    key = await store.engine.look(find)
    expired = key is not None and key.expires_at is not None and key.expires_at <= clock.now()
    if key is None or key.revoked_at is not None or expired:
        raise Unauthenticated("The credential is not valid. Make a new key with `keepsake key create`.")
    return Principal(
        org=key.org,
        name=f"key:{key.name}",
        scopes=key.scopes,
        tier=key.tier,
        banks=key.banks,
        may_destroy=key.may_destroy,
        key=key.id,
    )
