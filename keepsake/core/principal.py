"""Who is asking: resolved anew on every request, and only ever narrowed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from keepsake.core.operation import AUDIT, SCOPES

LOCAL_ORG = 1
EVERY_SCOPE = frozenset(SCOPES)
#: What a key gets unless told otherwise.
DEFAULT_SCOPES = EVERY_SCOPE - {"admin", "memory:delete"}


@dataclass(frozen=True, slots=True)
class Rights:
    """What a person's roles open now: in the whole org, and more of it at single banks."""

    everywhere: frozenset[str] = frozenset()
    at: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def anywhere(self) -> frozenset[str]:
        """Every scope that is opened somewhere."""
        return self.everywhere.union(*self.at.values())


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
    #: The API key's id, or a number that stands for an external user; the local owner has none and is not rate limited.
    key: int | None = None
    #: The person whose credential it is, and what they may do now; None for a credential that stands for itself.
    person: int | None = None
    rights: Rights | None = None
    #: The OAuth client that acts for the person.
    client: int | None = None

    def __post_init__(self) -> None:
        if "admin" in self.scopes and AUDIT not in self.scopes:
            object.__setattr__(self, "scopes", self.scopes | {AUDIT})

    def narrowed(
        self, scopes: frozenset[str] | None = None, banks: frozenset[str] | None = None, may_destroy: bool = True
    ) -> "Principal":
        """Return the same principal with at most these rights."""
        kept = self.scopes if scopes is None else self.scopes & scopes
        reach = self.banks
        if banks is not None:
            reach = banks if reach is None else reach & banks
        return replace(self, scopes=kept, banks=reach, may_destroy=self.may_destroy and may_destroy)

    def acting(self, scopes: frozenset[str]) -> "Principal":
        """Return the same principal where it has these scopes: reaching those banks only, as far as it may in all."""
        rights = self.rights
        if rights is None:
            return self
        if scopes <= rights.everywhere:
            return self.narrowed(scopes=rights.everywhere)
        reach = {bank: rights.everywhere | more for bank, more in rights.at.items()}
        reach = {bank: held for bank, held in reach.items() if scopes <= held and self.sees(bank)}
        return self.narrowed(scopes=_common(reach.values()), banks=frozenset(reach))

    @property
    def is_manager(self) -> bool:
        """Whether it manages the whole org, not only some of its banks."""
        return "admin" in self.scopes and self.banks is None

    def sees(self, bank: str) -> bool:
        """Tell whether a bank of this name is within reach."""
        return self.banks is None or bank in self.banks


def _common(held: Iterable[frozenset[str]]) -> frozenset[str]:
    """What all of these have; nothing when there are none."""
    found = list(held)
    return frozenset.intersection(*found) if found else frozenset()


def local_owner(org: int = LOCAL_ORG) -> Principal:
    """The person at this machine, who may do everything."""
    return Principal(org=org, name="local", scopes=EVERY_SCOPE, may_destroy=True)
