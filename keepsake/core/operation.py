"""A use case as a declaration: id, effect, scopes, input and output models, docs."""

import inspect
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from pydantic import BaseModel

C = TypeVar("C")
G = TypeVar("G", bound=BaseModel)
R = TypeVar("R", bound=BaseModel)


class Effect(StrEnum):
    """What running an operation does to stored facts."""

    READ = "read"
    MUTATE = "mutate"
    DESTRUCTIVE = "destructive"
    GATE = "gate"


SCOPES: dict[str, str] = {
    "memory:read": "Read memories, documents, models, directives, artifacts, decisions and jobs.",
    "memory:write": "Change memories, documents, models, directives, artifacts, decisions and jobs.",
    "memory:delete": "Delete memories, documents, models, directives, artifacts and decisions.",
    "bank:admin": "Create, update, alias, sync and delete banks.",
    "watch:read": "Read incidents, checks and anomalies.",
    "watch:write": "Add checks and acknowledge incidents.",
    "research:read": "Use whatever leaves the machine: the web and GitHub.",
    "exec:invoke": "Ask for enrolled commands to be run.",
    "inference": "Admission to the xerotier endpoint; opens nothing else.",
    "admin": "Manage keys, users, clients, enrolment, settings and the audit log.",
}
#: Reading the audit log: held by whoever has `admin`, opened by the role auditor, and never given by name.
AUDIT = "audit"


@dataclass(frozen=True, slots=True)
class Operation(Generic[C, G, R]):
    """One use case, callable as the function it was made from."""

    id: str
    effect: Effect
    scopes: frozenset[str]
    run: Callable[[C, G], Awaitable[R]]
    given: type[G]
    result: type[R]
    docs: str
    #: It makes its change in several transactions, so that a crash may leave it half made.
    in_parts: bool = False

    @property
    def named_scopes(self) -> frozenset[str]:
        """The scopes by the names that a credential is given them by."""
        return frozenset("admin" if scope == AUDIT else scope for scope in self.scopes)

    async def __call__(self, ctx: C, given: G) -> R:
        return await self.run(ctx, given)


AnyOperation = Operation[typing.Any, typing.Any, typing.Any]
REGISTRY: dict[str, AnyOperation] = {}


def operation(
    id: str, *, effect: Effect, scope: str, in_parts: bool = False
) -> Callable[[Callable[[C, G], Awaitable[R]]], Operation[C, G, R]]:
    """Declare a use case; several scopes are separated by blanks and all needed."""
    scopes = frozenset(scope.split())
    if unknown := scopes - SCOPES.keys() - {AUDIT}:
        raise ValueError(f"Operation {id} names unknown scopes: {sorted(unknown)}.")

    def declare(run: Callable[[C, G], Awaitable[R]]) -> Operation[C, G, R]:
        if id in REGISTRY:
            raise ValueError(f"Operation {id} is declared twice.")
        hints = typing.get_type_hints(run)
        docs = inspect.getdoc(run) or ""
        declared = Operation(id, effect, scopes, run, hints["given"], hints["return"], docs, in_parts)
        REGISTRY[id] = declared
        return declared

    return declare
