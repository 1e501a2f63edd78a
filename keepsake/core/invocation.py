"""An invocation's life: its states, which follow which, and what makes two requests the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, get_args

from keepsake.core.clock import SECOND
from keepsake.core.enrolment import Policy
from keepsake.core.proposal import canonical

State = Literal[
    "awaiting_approval",
    "queued",
    "running",
    "succeeded",
    "failed",
    "timed_out",
    "denied",
    "expired",
    "cancelled",
    "unknown",
]
STATES: tuple[State, ...] = get_args(State)
#: States that something still follows by itself.
OPEN: tuple[State, ...] = ("awaiting_approval", "queued", "running")
#: States in which nothing has been run yet.
WAITING: tuple[State, ...] = ("awaiting_approval", "queued")
#: How long whoever runs it may be silent before nobody knows what became of it.
LEASE = 30 * SECOND
#: Which may follow which; the end of an unknown one is what an operator finds, or whoever ran it tells late.
FOLLOWS: Mapping[State, frozenset[State]] = {
    "awaiting_approval": frozenset({"queued", "denied", "expired", "cancelled"}),
    "queued": frozenset({"running", "expired", "cancelled"}),
    "running": frozenset({"succeeded", "failed", "timed_out", "cancelled", "unknown"}),
    "unknown": frozenset({"succeeded", "failed", "timed_out", "cancelled"}),
}


@dataclass(frozen=True, slots=True)
class Decision:
    """One yes or no, and by whom or what."""

    by: str
    how: Literal["person", "self", "elicitation", "sampling"]
    approve: bool
    at: int
    reason: str = ""
    #: The person, so that two decisions are never one person's.
    person: int | None = None


def begun(policy: Policy) -> State:
    """How it begins."""
    return "queued" if policy == "none" else "awaiting_approval"


def decided(policy: Policy, decisions: Sequence[Decision]) -> State:
    """Where decisions lead: one no ends it, and some policies want more than one yes."""
    if any(not one.approve for one in decisions):
        return "denied"
    needed = 2 if policy == "two-persons" else 1
    return "queued" if len({(one.by, one.how) for one in decisions}) >= needed else "awaiting_approval"


def now_is(state: State, expires_at: int, lease_until: int, now: int) -> State:
    """The state that a stored one has become by the passing of time."""
    if state in WAITING and expires_at <= now:
        return "expired"
    return "unknown" if state == "running" and lease_until <= now else state


def same(credential: str, session: str, tool: str, arguments: Mapping[str, object]) -> str:
    """What two requests have in common that are one; the session is the bank where there is none."""
    return sha256(canonical([credential, session, tool, arguments]).encode()).hexdigest()
