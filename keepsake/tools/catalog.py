"""Every dialect, by name."""

from keepsake.tools import hindsight
from keepsake.tools.dialect import Dialect

#: Dialects as an endpoint serves them.
DIALECTS: dict[str, Dialect] = {"hindsight": hindsight.MULTI}
#: The same, bound to one bank by path or flag, where that changes the tools.
BOUND: dict[str, Dialect] = {"hindsight": hindsight.SINGLE}
#: What `keepsake stdio` and `keepsake call` speak unless told otherwise.
DEFAULT = "hindsight"
