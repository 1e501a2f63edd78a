"""Who is asking: resolved anew on every request, and only ever narrowed."""

from dataclasses import dataclass, replace

from keepsake.core.operation import SCOPES

LOCAL_ORG = 1
EVERY_SCOPE = frozenset(SCOPES)
#: What a key gets unless told otherwise.
DEFAULT_SCOPES = EVERY_SCOPE - {"admin", "memory:delete"}


@dataclass(frozen=True, slots=True)
class Principal:
    """The rights of one request."""

    org: int
    name: str
    scopes: frozenset[str]
    tier: str = "all"
    #: Names of the banks it may touch; None means every bank of the org.
    banks: frozenset[str] | None = None
    may_destroy: bool = False
    #: The API key's id; the local owner has none and is not rate limited.
    key: int | None = None

    def narrowed(
        self, scopes: frozenset[str] | None = None, banks: frozenset[str] | None = None, may_destroy: bool = True
    ) -> "Principal":
        """Return the same principal with at most these rights."""
        kept = self.scopes if scopes is None else self.scopes & scopes
        reach = self.banks
        if banks is not None:
            reach = banks if reach is None else reach & banks
        return replace(self, scopes=kept, banks=reach, may_destroy=self.may_destroy and may_destroy)

    def sees(self, bank: str) -> bool:
        """Tell whether a bank of this name is within reach."""
        return self.banks is None or bank in self.banks


def local_owner(org: int = LOCAL_ORG) -> Principal:
    """The person at this machine, who may do everything."""
    return Principal(org=org, name="local", scopes=EVERY_SCOPE, may_destroy=True)
