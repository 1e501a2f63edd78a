"""Every dialect, by name."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from keepsake.core.lazy import lazy
from keepsake.tools.dialect import Dialect

if TYPE_CHECKING:
    from keepsake.tools import checkstack, hindsight, keepsake, keystone, kiro, xerotier
else:
    checkstack = lazy("keepsake.tools.checkstack")
    hindsight = lazy("keepsake.tools.hindsight")
    keepsake = lazy("keepsake.tools.keepsake")
    keystone = lazy("keepsake.tools.keystone")
    kiro = lazy("keepsake.tools.kiro")
    xerotier = lazy("keepsake.tools.xerotier")


class Dialects(Mapping[str, Dialect]):
    """Dialects by name; a stdio server speaks one of them, and does not wait for the others to be loaded."""

    def __init__(self, known: Mapping[str, Callable[[], Dialect]]) -> None:
        self._known = known

    def __getitem__(self, name: str) -> Dialect:
        return self._known[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, name: object) -> bool:
        return name in self._known


#: Dialects as an endpoint serves them.
DIALECTS = Dialects(
    {
        "keepsake": lambda: keepsake.KEEPSAKE,
        "hindsight": lambda: hindsight.MULTI,
        "kiro": lambda: kiro.KIRO,
        "keystone": lambda: keystone.KEYSTONE,
        "checkstack": lambda: checkstack.CHECKSTACK,
        "xerotier": lambda: xerotier.XEROTIER,
    }
)
#: The same, bound to one bank by path or flag, where that changes the tools.
BOUND = Dialects({"keepsake": lambda: keepsake.BOUND, "hindsight": lambda: hindsight.SINGLE})
#: What `keepsake stdio` and `keepsake call` speak unless told otherwise.
DEFAULT = "keepsake"
