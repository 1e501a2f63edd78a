"""What is past its time ends by itself: proposals, with their audit entries, and what signing in leaves behind."""

from typing import TYPE_CHECKING

from keepsake.context import App
from keepsake.core.lazy import lazy
from keepsake.core.principal import Principal
from keepsake.ops import background
from keepsake.store import embeddings, oauth, proposals, web_sessions
from keepsake.store.engine import Tx
from keepsake.store.proposals import End

if TYPE_CHECKING:
    from keepsake.ops import proposals as proposing
else:
    proposing = lazy("keepsake.ops.proposals")

#: How many proposals end in one sweep; the next one goes on.
BATCH = 500


async def sweep(app: App) -> int:
    """End what is past its time, in every org; tells how much that was."""
    ended = 0
    for org in await app.store.engine.look(embeddings.orgs):
        ended += await _proposals(app, org) + await _sign_ins(app, org)
    return ended


async def _proposals(app: App, org: int) -> int:
    ctx = app.ctx(Principal(org, background.NAME, frozenset()), surface="")
    late = await app.store.read(org, lambda tx: proposals.overdue(tx, org, ctx.now, BATCH))
    # One by one: each belongs to the chain of its bank, and may have been used up meanwhile.
    done = [await proposing.ended(ctx, row, End(proposing.state_of(ctx, row), (row.state,))) for row in late]
    return sum(done)


async def _sign_ins(app: App, org: int) -> int:
    """Codes, tokens, registrations that nobody used, and sessions; all of them are good for nothing already."""
    now = app.now()

    async def body(tx: Tx) -> int:
        return (
            await oauth.forget_tokens(tx, org, now)
            + await oauth.forget_clients(tx, org, now)
            + await web_sessions.forget(tx, org, now)
        )

    # It makes no ids, so that a process which only waits need not hold a slot for them.
    return await app.store.engine.write(org, body)
