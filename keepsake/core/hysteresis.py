"""When a check is down and when it is up again: not by one sample, and not ten times in an hour."""

from dataclasses import dataclass
from typing import Literal

from keepsake.core.clock import MINUTE

State = Literal["new", "up", "down"]
Turn = Literal["opens", "resolves"]
#: An incident that comes back so soon, or within so many intervals, is the same one.
SOON, SOON_RUNS = 15 * MINUTE, 10
#: How far an incident that keeps coming back is made harder to resolve.
MOST_FLAPS = 4


@dataclass(frozen=True, slots=True)
class Limits:
    """Failures in a row that open an incident, and successes in a row that resolve it."""

    open_after: int
    resolve_after: int
    #: How often the incident came back already.
    flaps: int = 0

    @property
    def to_resolve(self) -> int:
        """What is flapping must hold for longer before it is believed."""
        return self.resolve_after * (1 + min(self.flaps, MOST_FLAPS))


@dataclass(frozen=True, slots=True)
class Standing:
    """How a check stands."""

    state: State = "new"
    #: Successes in a row; failures are negative.
    streak: int = 0
    #: Since when it is in this state.
    since: int = 0

    def after(self, ok: bool, at: int, limits: Limits) -> "tuple[Standing, Turn | None]":
        """How it stands after one more sample, and what that turns."""
        same = (self.streak > 0) is ok
        streak = self.streak + (1 if ok else -1) if same or not self.streak else (1 if ok else -1)
        if self.state != "down" and -streak >= limits.open_after:
            return Standing("down", streak, at), "opens"
        if self.state == "down" and streak >= limits.to_resolve:
            return Standing("up", streak, at), "resolves"
        if self.state == "new" and ok:
            return Standing("up", streak, at), None
        return Standing(self.state, streak, self.since), None


def is_same(resolved_at: int, at: int, every: int) -> bool:
    """Whether an incident that opens so soon after the last one was resolved is that one again."""
    return at - resolved_at <= max(SOON, SOON_RUNS * every)
