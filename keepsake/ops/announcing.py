"""Telling someone that something waits for approval: a signed call to the address that the operator configured."""

import asyncio
import hashlib
import hmac
import json
from typing import TYPE_CHECKING

from keepsake.context import App, Ctx
from keepsake.core import clock, log
from keepsake.core.errors import Unavailable
from keepsake.core.lazy import lazy
from keepsake.ops.proposals import page
from keepsake.store.invocations import Invocation

if TYPE_CHECKING:
    from keepsake.services import calling
else:
    calling = lazy("keepsake.services.calling")

SIGNATURE = "X-Keepsake-Signature"
TRIES, PAUSE_S = 3, 1.0


def waits(ctx: Ctx, row: Invocation) -> None:
    """Announce an invocation that waits; nobody waits for the announcement."""
    if ctx.app.settings.approval_webhook:
        ctx.app.later.do(_sent(ctx.app, row))


async def _sent(app: App, row: Invocation) -> None:
    # Arguments and reasons stay here: whoever decides signs in to see them.
    told = {
        "event": "approval.requested",
        "id": str(row.id),
        "tool": row.tool,
        "effect": row.effect,
        "policy": row.policy,
        "requested_by": row.principal,
        "expires_at": clock.iso(row.expires_at),
        "approval_url": page(app.settings, row.id),
    }
    body = json.dumps(told).encode()
    signed = hmac.new(app.settings.approval_secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {SIGNATURE: f"sha256={signed}"}
    wanted = calling.Call("POST", app.settings.approval_webhook, headers, body, timeout_s=10, anywhere=True)
    for attempt in range(1, TRIES + 1):
        try:
            async with asyncio.timeout(wanted.timeout_s):
                if await calling.call(wanted, _unheard) < 300:
                    return
        except (Unavailable, TimeoutError) as error:
            log.info("no announcement", attempt=attempt, error=type(error).__name__)
        await app.later.pause(PAUSE_S * 4 ** (attempt - 1))
    log.warning("an approval could not be announced", invocation=row.id)


async def _unheard(chunk: bytes) -> None:
    """What is answered is of no interest."""
