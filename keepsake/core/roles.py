"""Roles: what a person may do in an org or a bank; they add up."""

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from keepsake.core.operation import AUDIT, SCOPES

Role = Literal["owner", "editor", "reader", "approver", "auditor"]
NAMES: tuple[Role, ...] = get_args(Role)
# `inference` opens nothing by itself, so it is withheld from nobody who may read.
_READER = frozenset(scope for scope in SCOPES if scope.endswith(":read")) | {"inference"}
_EDITOR = _READER | {"memory:write", "bank:admin", "watch:write", "exec:invoke"}
#: What each role opens. Who approves decides there, but opens no scope by that.
_SCOPES: Mapping[str, frozenset[str]] = {
    "reader": _READER,
    "editor": _EDITOR,
    "owner": frozenset({*SCOPES, AUDIT}),
    "auditor": frozenset({AUDIT}),
}
#: What each role is for, in a sentence.
MEANING: Mapping[Role, str] = {
    "owner": "everything but deciding on what others propose; deleting and managing people and keys included",
    "editor": "reading, writing, and managing banks and checks",
    "reader": "reading",
    "approver": "deciding on what others propose",
    "auditor": "reading the audit log",
}


def scopes(roles: Iterable[str]) -> frozenset[str]:
    """The scopes that roles open together."""
    return frozenset().union(*(_SCOPES.get(role, frozenset()) for role in roles))
