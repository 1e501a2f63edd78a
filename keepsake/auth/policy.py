"""Whether a principal may run an operation; asked by every listing and every call."""

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


def in_tier(principal: Principal, operation: AnyOperation) -> bool:
    """Whether the key's tier knows the operation, at whatever endpoint."""
    return principal.tier not in TIERS or operation.id in TIERS[principal.tier]


def check_scopes(principal: Principal, operation: AnyOperation) -> None:
    """Refuse when a scope is missing, and name it."""
    if missing := sorted(operation.scopes - principal.scopes):
        raise Forbidden(f"this credential lacks the scope {', '.join(missing)}. Ask its owner for a key that has it.")


def check_bank(principal: Principal, bank: str) -> None:
    """Refuse a bank beyond the credential's reach."""
    if not principal.sees(bank):
        raise Forbidden("this credential does not reach that bank. Use one of the banks it was made for.")


def check_destructive(principal: Principal, operation: AnyOperation) -> None:
    """Refuse a deletion by a credential that was not made for it."""
    if operation.effect is Effect.DESTRUCTIVE and not principal.may_destroy:
        raise Forbidden("this credential may not delete. Use a key made with --allow-destructive.")


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
