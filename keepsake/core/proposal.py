"""A proposal's life: its states, how long each may last, and how it is written down."""

import json
import secrets
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Literal, get_args

from keepsake.core.clock import HOUR, MINUTE
from keepsake.core.operation import AnyOperation, Effect

State = Literal[
    "auto_ok",
    "pending_approval",
    "approved",
    "rejected",
    "expired",
    "revoked",
    "cancelled",
    "claimed",
    "succeeded",
    "failed",
    "unknown",
]
STATES: tuple[State, ...] = get_args(State)
#: States from which it can still be applied, at once or once someone has approved it.
OPEN: tuple[State, ...] = ("auto_ok", "pending_approval", "approved")
#: States in which a token is good.
READY: tuple[State, ...] = ("auto_ok", "approved")
#: How long each open state lasts.
LASTS: Mapping[State, int] = {"auto_ok": 10 * MINUTE, "pending_approval": 24 * HOUR, "approved": 15 * MINUTE}
#: After so long without an end, whoever claimed it must have crashed.
RUNS = 15 * MINUTE
PREFIX = "ks_prop_"
#: Operations that have a gate of their own, or are this one; and what people alone do, for themselves.
_GATED = ("exec.", "proposal.", "approval.", "user.", "grant.")


def begun(effect: Effect) -> State:
    """How a proposal begins: what destroys waits for another person."""
    return "pending_approval" if effect is Effect.DESTRUCTIVE else "auto_ok"


def now_is(state: State, expires_at: int, claimed_at: int | None, now: int) -> State:
    """The state that a stored one has become by the passing of time."""
    if state in OPEN and expires_at <= now:
        return "expired"
    if state == "claimed" and claimed_at is not None and claimed_at + RUNS <= now:
        return "unknown"
    return state


def is_proposable(operation: AnyOperation) -> bool:
    """Whether an operation can be asked for by a proposal at all."""
    changes = operation.effect in (Effect.MUTATE, Effect.DESTRUCTIVE)
    return changes and "admin" not in operation.scopes and not operation.id.startswith(_GATED)


def scopes(operation: AnyOperation) -> frozenset[str]:
    """What is needed to propose it: deleting is the approver's to allow, so there who may write may ask."""
    if operation.effect is not Effect.DESTRUCTIVE or "memory:delete" not in operation.scopes:
        return operation.scopes
    return operation.scopes - {"memory:delete"} | {"memory:write"}


@lru_cache(maxsize=256)
def version(operation: AnyOperation) -> str:
    """A hash over everything that an operation's declaration promises."""
    declared = [operation.id, operation.effect, sorted(operation.scopes), operation.given.model_json_schema()]
    return sha256(canonical(declared).encode()).hexdigest()


def canonical(value: object) -> str:
    """JSON that is the same whenever it means the same."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def parsed(arguments: str) -> dict[str, object]:
    """Arguments as they were written down."""
    found: dict[str, object] = json.loads(arguments)
    return found


def new_token() -> str:
    """256 random bits that nobody can guess."""
    return PREFIX + secrets.token_hex(32)


def hashed(token: str) -> str:
    """What is kept of a token."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()
