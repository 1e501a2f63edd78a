"""The tools of the gate: listed in checkstack, and callable by name in every dialect."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from keepsake.core.lazy import lazy
from keepsake.core.principal import Principal
from keepsake.ops import approvals, proposals
from keepsake.tools.dialect import Tool, table

if TYPE_CHECKING:
    from keepsake.ops import everything
else:
    everything = lazy("keepsake.ops.everything")


def _offers(principal: Principal) -> Mapping[str, str]:
    """What a principal may propose, of everything there is."""
    return proposals.offers(principal) if everything.REGISTRY else {}


TOOLS = table(
    Tool(
        "propose",
        proposals.create,
        hint="Use it for every change: look at the diff that comes back, then call apply.",
        offers=_offers,
        chooses="operation",
    ),
    Tool(
        "apply",
        proposals.apply,
        hint="It takes nothing but the token of propose, and works once.",
        offers=_offers,
        needs_bank=False,
    ),
    Tool(
        "proposal_status",
        approvals.get,
        hint="Use it while a proposal waits for an approver.",
        needs_bank=False,
    ),
)
