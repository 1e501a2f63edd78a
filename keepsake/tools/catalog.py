"""Every dialect, by name."""

from keepsake.tools import hindsight, kiro
from keepsake.tools.dialect import Dialect

#: Dialects as an endpoint serves them.
DIALECTS: dict[str, Dialect] = {"hindsight": hindsight.MULTI, "kiro": kiro.KIRO}
#: The same, bound to one bank by path or flag, where that changes the tools.
BOUND: dict[str, Dialect] = {"hindsight": hindsight.SINGLE}
#: What `keepsake stdio` and `keepsake call` speak unless told otherwise.
DEFAULT = "hindsight"
