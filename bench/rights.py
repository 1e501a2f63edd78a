"""CPU that it costs to find out who asks and what they may do, over the same call by the local owner."""

import asyncio
import os
import secrets
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench import speed
from keepsake import context, dispatch, settings
from keepsake.auth import oauth as rules
from keepsake.auth import verify
from keepsake.context import App
from keepsake.core.clock import DAY
from keepsake.core.principal import LOCAL_ORG, Principal, local_owner
from keepsake.store import oauth, users
from keepsake.store.engine import Tx

CALLS, PERSON, CLIENT, RESOURCE = 2_000, "bench", "bench-client", "http://127.0.0.1"


def measured(url: str = "") -> dict[str, float]:
    """Milliseconds of CPU that a person's key, and a client's token, add to a call."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = settings.load({}, data_dir=Path(folder), database_url=url or None)
        return asyncio.run(_measured(loaded, url))


async def _measured(loaded: settings.Settings, url: str) -> dict[str, float]:
    async with context.open(loaded) as app:
        key, token = await _credentials(app)

        async def owner() -> Principal:
            return local_owner()

        async def bearer(secret: str) -> Principal:
            found = await verify.principal(
                app.store, loaded, secret, open_door=False, resources=lambda: frozenset({RESOURCE})
            )
            # What the surface asks before the call, and dispatch again within it.
            dispatch.admitted(app.ctx(found), "bank.get", {"bank": "bench"})
            return found

        spent = speed.spent(os.getpid(), url)
        ways: dict[str, Callable[[], Awaitable[Principal]]] = {
            "owner": owner,
            "key": lambda: bearer(key),
            "token": lambda: bearer(token),
        }
        cost = {name: await _per_call(app, who, spent) for name, who in ways.items()}
    return {name: cost[name] - cost["owner"] for name in ("key", "token")}


async def _per_call(app: App, who: Callable[[], Awaitable[Principal]], spent: Callable[[], float]) -> float:
    for warm in (True, False):
        before = spent()
        for _ in range(CALLS // 10 if warm else CALLS):
            await dispatch.call(app.ctx(await who()), "bank.get", {"bank": "bench"})
    return (spent() - before) * 1000 / CALLS


async def _credentials(app: App) -> tuple[str, str]:
    """A key and an access token of one person, who is an editor at one bank."""

    async def run(operation: str, **given: object) -> dict[str, object]:
        return (await dispatch.call(app.ctx(local_owner()), operation, given)).model_dump()

    await run("bank.create", name="bench")
    await run("user.add", name=PERSON, role="editor", bank="bench")
    key = await run("key.create", name=PERSON, user=PERSON)
    access = rules.named("access", secrets.token_hex(32))

    async def granted(tx: Tx) -> None:
        now, ends = app.now(), app.now() + DAY
        person = await users.named(tx, LOCAL_ORG, PERSON)
        assert person is not None
        client = oauth.Client(
            LOCAL_ORG, app.store.new_id(), CLIENT, "registered", CLIENT, (), "none", "", now, now, ends
        )
        await oauth.put_client(tx, client)
        scopes = frozenset({"memory:read"})
        grant = oauth.Grant(LOCAL_ORG, app.store.new_id(), person.id, client.id, scopes, None, RESOURCE, now, ends)
        await oauth.insert_grant(tx, grant)
        await oauth.insert_token(tx, oauth.Token(LOCAL_ORG, access.sha256, "access", grant.id, scopes, now, ends))

    await app.store.write(LOCAL_ORG, granted)
    return str(key["secret"]), access.text
