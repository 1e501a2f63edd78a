"""The background as an actor: it works within one bank, for no caller."""

from keepsake.context import App, Ctx
from keepsake.core.principal import EVERY_SCOPE, Principal, local_owner
from keepsake.store import banks
from keepsake.store.engine import Tx

NAME = "background"
#: Whoever runs stdio servers and hooks on this machine.
LOCAL = local_owner().name


def ctx(app: App, org: int, bank: str, operation: str) -> Ctx:
    """The context in which the background does an operation."""
    reach = frozenset({bank})
    return app.ctx(Principal(org=org, name=NAME, scopes=EVERY_SCOPE, banks=reach), bank, surface="").running(operation)


async def bank(app: App, org: int, id: int) -> banks.Bank | None:
    """A bank by its number; None when it has been deleted."""

    async def body(tx: Tx) -> banks.Bank | None:
        return next((bank for bank in await banks.listed(tx, org) if bank.id == id), None)

    return await app.store.read(org, body)
