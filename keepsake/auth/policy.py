"""Whether a principal may run an operation; asked by every listing and every call."""

from keepsake.core import proposal
from keepsake.core.errors import Forbidden
from keepsake.core.operation import AnyOperation, Effect
from keepsake.core.principal import Principal

_CORE = frozenset(
    "memory.recall memory.search memory.records memory.retain bank.list bank.get session.bind calc.evaluate web.search"
    " web.fetch web.inspect".split()
)
_EXEC = frozenset("exec.invoke exec.run exec.get exec.cancel".split())
_INTEL = frozenset(
    "artifact.create artifact.update artifact.get artifact.list brief.get brief.analyze milestone.list milestone.record"
    " decision.list decision.record graph.get graph.relate code.search code.overview code.read".split()
)
#: The operations that the tools of a key's tier name; sets, not a ladder. `all` is not narrowed.
TIERS = {"core": _CORE, "exec": _CORE | _EXEC, "intel": _CORE | _INTEL}

#: What carries other operations is asked about those, so it belongs to every tier.
GATE = frozenset("proposal.create proposal.apply proposal.get".split())


#: What a person does on their account's own page alone, whatever credential of theirs asks.
PAGE = frozenset("user.sessions user.end_session user.change_password grant.mine grant.withdraw".split())


def check_page(operation: AnyOperation, is_on_page: bool) -> None:
    """Refuse who is not the person themselves, signed in on a page of ours."""
    if operation.id in PAGE and not is_on_page:
        raise Forbidden("an account is managed on its own page in the console, by the person, who has signed in.")


def in_tier(principal: Principal, operation: AnyOperation) -> bool:
    """Whether the key's tier knows the operation, at whatever endpoint."""
    return principal.tier not in TIERS or operation.id in TIERS[principal.tier] | GATE


def is_within(principal: Principal, tier: str) -> bool:
    """Whether a key's tier holds what belongs to this one."""
    return tier == "core" or principal.tier in ("all", tier)


def check_scopes(principal: Principal, operation: AnyOperation) -> None:
    """Refuse when a scope is missing, and name it."""
    if not operation.scopes <= principal.scopes:
        missing = sorted(operation.named_scopes - principal.scopes)
        reason = f"this credential lacks the scope {', '.join(missing)}.{_instead(principal, operation)}"
        raise Forbidden(reason, operation.named_scopes)


def _instead(principal: Principal, operation: AnyOperation) -> str:
    """What to do where a right is missing."""
    ask = " Ask its owner for a key that has it"
    if may_propose(principal, operation):
        return f"{ask}, or {_proposing(operation)}"
    if proposal.is_proposable(operation):
        return (
            f"{ask}: such a key can do this, or `propose` it, and `apply` it once `proposal_status` says that it may."
        )
    return f"{ask}."


def _proposing(operation: AnyOperation) -> str:
    return (
        f"call `propose` with operation {operation.id}: another person can then approve it, as `proposal_status` tells,"
        " and `apply` makes the change."
    )


def may_propose(principal: Principal, operation: AnyOperation) -> bool:
    """Whether a principal may ask for this change, for others to decide where it destroys."""
    is_known = proposal.is_proposable(operation) and in_tier(principal, operation)
    return is_known and proposal.scopes(operation) <= principal.scopes


def check_proposing(principal: Principal, operation: AnyOperation) -> None:
    """Refuse a proposal by a credential that lacks what asking for the change needs."""
    needed = proposal.scopes(operation)
    if missing := sorted(needed - principal.scopes):
        told = f"to `propose` {operation.id} this credential lacks the scope {', '.join(missing)}."
        raise Forbidden(f"{told} Ask its owner for a key that has it.", needed)


def is_open(operation: AnyOperation) -> bool:
    """Whether it may run where changes are made by proposals alone."""
    return operation.effect in (Effect.READ, Effect.GATE)


def check_gate(operation: AnyOperation) -> None:
    """Refuse a change where changes are made by proposals alone."""
    if not is_open(operation):
        raise Forbidden(
            f"{operation.id} changes what is stored, and here a call only reads. Call `propose` with it, then `apply`."
        )


def check_bank(principal: Principal, bank: str) -> None:
    """Refuse a bank beyond the credential's reach."""
    if not principal.sees(bank):
        raise Forbidden("this credential does not reach that bank. Use one of the banks it was made for.")


def may_make(principal: Principal) -> bool:
    """Whether a bank that is not there is made by the first write to it."""
    return "bank:admin" in principal.scopes


def check_making(principal: Principal, bank: str) -> None:
    """Refuse to make a bank for a credential that may make none."""
    if not may_make(principal):
        told = f"the bank {bank!r} does not exist and this credential may not create banks (bank:admin)."
        raise Forbidden(
            f"{told} Ask its owner to create it, or for a key that has the scope.", frozenset({"bank:admin"})
        )


def check_manager(principal: Principal, what: str) -> None:
    """Refuse what belongs to the whole org to whoever manages some of its banks only."""
    if not principal.is_manager:
        raise Forbidden(f"only who manages the whole org {what}.")


def check_destructive(principal: Principal, operation: AnyOperation) -> None:
    """Refuse a deletion by a credential that was not made for it."""
    if operation.effect is Effect.DESTRUCTIVE and not principal.may_destroy:
        raise Forbidden(
            f"this credential may not delete. Use a key made with --allow-destructive, or {_proposing(operation)}"
        )


def may(principal: Principal, operation: AnyOperation) -> bool:
    """Whether an operation should be offered at all."""
    if not in_tier(principal, operation):
        return False
    try:
        check_scopes(principal, operation)
        check_destructive(principal, operation)
    except Forbidden:
        return False
    return True
