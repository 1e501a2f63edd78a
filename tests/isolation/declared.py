"""What each call should come to, worked out from declarations and the model's tables, never by asking the product."""

from collections.abc import Mapping
from dataclasses import dataclass

from keepsake.core.operation import SCOPES, AnyOperation, Effect
from keepsake.ops import everything

#: Every operation of the product; other tests declare some of their own in the same process.
REGISTRY = {id: one for id, one in everything.REGISTRY.items() if not id.startswith("probe.")}
EVERY = frozenset(SCOPES)
#: What a key gets unless told otherwise.
DEFAULT = EVERY - {"admin", "memory:delete"}
_READS = frozenset({"memory:read", "watch:read", "research:read", "inference"})
_EDITS = _READS | {"memory:write", "bank:admin", "watch:write", "exec:invoke"}
#: The roles of the model; `audit` stands for what only `admin` and an auditor may read.
ROLES: Mapping[str, frozenset[str]] = {
    "reader": _READS,
    "editor": _EDITS,
    "owner": EVERY | {"audit"},
    "auditor": frozenset({"audit"}),
}
#: The operations of the ten tools that a key of the tier core has; what carries others is in every tier.
CORE = frozenset(
    "memory.recall memory.search memory.records memory.retain bank.list bank.get session.bind calc.evaluate"
    " web.search web.fetch web.inspect proposal.create proposal.apply proposal.get".split()
)
#: Operations for whoever has their scope in the whole org: a reach of some banks is not enough.
WHOLE = frozenset(
    "bank.create user.add user.list user.disable user.password user.invite user.invitations user.uninvite client.list"
    " client.revoke exec.enrol exec.tools exec.remove invocation.settle".split()
)
#: What a person does on their account's page alone: no credential opens it.
PAGE = frozenset("user.sessions user.end_session user.change_password grant.mine grant.withdraw".split())
#: What has a gate of its own, or is the gate, is not proposed.
GATED = ("exec.", "proposal.", "approval.", "user.", "grant.")
#: What the cells propose.
CARRIED = "memory.retain"


@dataclass(frozen=True)
class Claim:
    """What a credential was made for."""

    is_valid: bool = True
    org: int = 1
    scopes: frozenset[str] = EVERY
    banks: frozenset[str] | None = None
    may_destroy: bool = True
    tier: str = "all"
    #: The roles of the person it belongs to, by bank; None stands for the whole org. No person may do all of it.
    roles: Mapping[str | None, str] | None = None

    def at(self, place: str | None) -> frozenset[str]:
        """The scopes at a bank, or in the whole org."""
        own = self.scopes | {"audit"} if "admin" in self.scopes else self.scopes
        if place is not None and self.banks is not None and place not in self.banks:
            return frozenset()
        if self.roles is None:
            return own
        places = {None, place}
        return own & frozenset().union(*(ROLES[role] for bank, role in self.roles.items() if bank in places))

    @property
    def anywhere(self) -> frozenset[str]:
        """The scopes somewhere."""
        places: set[str | None] = {None, *(self.roles or {})}
        return frozenset().union(*(self.at(place) for place in places))

    @property
    def is_limited(self) -> bool:
        """Whether it reaches some banks only."""
        return self.banks is not None or (self.roles is not None and None not in self.roles)


@dataclass(frozen=True)
class Call:
    """An operation at a door, on a bank."""

    operation: AnyOperation
    bank: str | None
    #: The door lets nothing through but reading and the gate.
    is_gated: bool = False
    #: A scope that the door wants of everyone.
    admission: str = ""
    #: The bank that the request works in, where the door has clients choose one.
    workspace: str | None = None
    #: The tool proposes what its caller may only ask for.
    is_proposable: bool = False


def expected(claim: Claim, call: Call, registry: Mapping[str, AnyOperation]) -> str:
    """How a call ends: unauthenticated, unplaced, unknown, forbidden or admitted."""
    if not claim.is_valid:
        return "unauthenticated"
    if call.admission and call.admission not in claim.anywhere:
        return "forbidden"
    if call.workspace is not None and (claim.org != 1 or "memory:read" not in claim.at(call.workspace)):
        return "unplaced"
    if claim.tier == "core" and call.operation.id not in CORE:
        return "unknown"
    return "admitted" if call.operation.id not in PAGE and _may(claim, call, registry) else "forbidden"


def _may(claim: Claim, call: Call, registry: Mapping[str, AnyOperation]) -> bool:
    operation = call.operation
    if call.is_proposable and _asking(operation) <= (claim.anywhere if call.bank is None else claim.at(call.bank)):
        return True
    if operation.effect is Effect.GATE:
        return _may_propose(claim, operation, call.bank, registry)
    if call.is_gated and operation.effect is not Effect.READ:
        return False
    if operation.effect is Effect.DESTRUCTIVE and not claim.may_destroy:
        return False
    if operation.id in WHOLE and (claim.banks is not None or not operation.scopes <= claim.at(None)):
        return False
    return operation.scopes <= (claim.anywhere if call.bank is None else claim.at(call.bank))


def _may_propose(claim: Claim, gate: AnyOperation, bank: str | None, registry: Mapping[str, AnyOperation]) -> bool:
    """To propose is to have what the change needs, where a deletion needs no more than writing."""
    if gate.id == "proposal.create":
        return registry[CARRIED].scopes <= claim.at(bank)
    return any(_asking(one) <= claim.anywhere for one in registry.values() if _is_proposable(one, claim))


def _is_proposable(operation: AnyOperation, claim: Claim) -> bool:
    if claim.tier == "core" and operation.id not in CORE:
        return False
    changes = operation.effect in (Effect.MUTATE, Effect.DESTRUCTIVE)
    return changes and "admin" not in operation.scopes and not operation.id.startswith(GATED)


def _asking(operation: AnyOperation) -> frozenset[str]:
    if "memory:delete" not in operation.scopes:
        return operation.scopes
    return operation.scopes - {"memory:delete"} | {"memory:write"}
