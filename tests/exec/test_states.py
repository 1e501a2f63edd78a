"""An invocation's states, driven at random against a small model of what is allowed."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, invariant, rule

from keepsake.context import Ctx
from keepsake.core import invocation
from keepsake.core.clock import DAY, MINUTE, SECOND
from keepsake.core.errors import KeepsakeError
from keepsake.ops import outcomes, running
from keepsake.store import invocations
from keepsake.store.invocations import Due
from tests.exec.executing import agent, enrolled, owner
from tests.machine import Machine

#: Seconds in which the same request is the same run, and for which an approval and then a turn may be waited for.
WINDOW, PATIENCE, TURN = 600, 3_600, 500


@dataclass
class Made:
    """An invocation as it should stand."""

    id: str
    text: str
    tool: str
    state: str
    since: int
    expires_at: int
    lease_until: int = 0
    runs: int = 0
    seen: list[str] = field(default_factory=list)

    def is_held(self, now: int) -> bool:
        """Whether the same request would be this one; what was never begun in time makes room for another."""
        return self.state != "expired" and now < self.since + WINDOW * SECOND

    def at(self, now: int) -> str:
        return invocation.now_is(self.state, self.expires_at, self.lease_until, now)  # type: ignore[arg-type]  # a state


class Invocations(Machine):
    """Two tools, one that runs at once and one that a person agrees to; whoever runs them may die at any point."""

    made = Bundle("made")

    def __init__(self) -> None:
        super().__init__()
        self.every: list[Made] = []
        self.held: dict[str, Any] = {}
        for name, more in {"free": {}, "asks": {"effect": "mutate", "approval": "person"}}.items():
            given: dict[str, Any] = {"approval_s": PATIENCE, "window_s": WINDOW, "queue_s": TURN}
            self.loop.run_until_complete(enrolled(self.app, name, concurrency=100, **given, **more))

    def tried(self, ctx: Ctx, operation: str, /, **given: object) -> dict[str, Any] | str:
        """What it gives, or the code of its refusal."""
        try:
            return self.run(ctx, operation, **given)
        except KeepsakeError as error:
            return error.code

    @rule(target=made, tool=st.sampled_from(["free", "asks"]), text=st.sampled_from(["a", "b"]))
    def ask(self, tool: str, text: str) -> Made:
        told = self.tried(agent(self.app), "exec.invoke", tool=tool, arguments={"text": text})
        assert isinstance(told, dict)
        same = [one for one in self.every if (one.tool, one.text) == (tool, text)]
        known = next((one for one in same if one.is_held(self.now)), None)
        if known is not None:
            assert (told["id"], told["status"]) == (known.id, known.at(self.now))
            return known
        state, lasts = ("queued", TURN * SECOND) if tool == "free" else ("awaiting_approval", PATIENCE * SECOND)
        assert told["status"] == state and told["id"] not in {one.id for one in self.every}
        new = Made(told["id"], text, tool, state, self.now, self.now + lasts)
        self.every.append(new)
        return new

    @rule(made=made, approve=st.booleans())
    def decide(self, made: Made, approve: bool) -> None:
        done = self.tried(owner(self.app), "approval.decide", id=made.id, approve=approve)

        assert isinstance(done, dict) == (made.at(self.now) == "awaiting_approval")
        if isinstance(done, dict):
            made.state = "queued" if approve else "denied"
            made.expires_at = self.now + TURN * SECOND if approve else made.expires_at

    @rule(made=made)
    def decide_as_the_agent(self, made: Made) -> None:
        assert isinstance(self.tried(agent(self.app), "approval.decide", id=made.id, approve=True), str)

    @rule(made=made)
    def cancel(self, made: Made) -> None:
        done = self.tried(agent(self.app), "exec.cancel", id=made.id)

        assert isinstance(done, dict)
        if made.at(self.now) in invocation.WAITING:
            made.state = "cancelled"
        assert done["status"] == made.at(self.now)

    @rule(made=made)
    def start(self, made: Made) -> None:
        """Someone takes it to run it, and may never be heard of again."""
        try:
            due = Due(1, int(made.id), made.tool, "queued", made.expires_at)
            found = self.loop.run_until_complete(running._started(self.app, due, set()))
        except running.Busy:
            assert made.at(self.now) != "queued"
            return
        assert found is not None and made.at(self.now) == "queued"
        self.held[made.id] = found
        made.state, made.lease_until, made.runs = "running", self.now + invocation.LEASE, made.runs + 1

    @rule(made=made, state=st.sampled_from(["succeeded", "failed", "timed_out", "cancelled"]))
    def end(self, made: Made, state: Any) -> None:
        """Whoever runs it tells its end, perhaps after everybody gave it up."""
        if made.id not in self.held:
            return
        execution = running.Execution(self.app, *self.held.pop(made.id))
        self.loop.run_until_complete(execution._end(outcomes.Came(state, "")))
        if made.state in ("running", "unknown"):
            made.state = state

    @rule()
    def sweep(self) -> None:
        """Someone writes down what time has made of them."""
        due = self.loop.run_until_complete(
            self.app.store.engine.look(lambda tx: invocations.due(tx, self.now, 100)),
        )
        for one in due:
            if one.state != "queued" or one.expires_at <= self.now:
                self.loop.run_until_complete(running._lapsed(self.app, one))
        for made in self.every:
            made.state = made.at(self.now)

    @rule(made=made, status=st.sampled_from(["succeeded", "failed"]))
    def settle(self, made: Made, status: str) -> None:
        done = self.tried(owner(self.app), "invocation.settle", id=made.id, status=status)

        assert isinstance(done, dict) == (made.at(self.now) == "unknown")
        made.state = status if isinstance(done, dict) else made.state

    @rule(by=st.sampled_from([SECOND, MINUTE, 11 * MINUTE, 16 * MINUTE, DAY]))
    def wait(self, by: int) -> None:
        self.now += by

    @invariant()
    def everyone_sees_what_is(self) -> None:
        for made in self.every:
            told = self.tried(agent(self.app), "exec.get", id=made.id)
            assert isinstance(told, dict)
            assert told["status"] == made.at(self.now)
            assert made.runs <= 1
            if made.seen and made.seen[-1] != told["status"]:
                # What lies between two looks may have passed unseen, but nothing leads back.
                assert _leads(made.seen[-1], told["status"]), (made.seen, told["status"])
            made.seen.append(told["status"])


def _leads(one: str, other: str) -> bool:
    """Whether a state may become another, by whatever way."""
    reached, todo = set[str](), [one]
    while todo:
        for to in invocation.FOLLOWS.get(todo.pop(), ()):  # type: ignore[call-overload]  # a state
            if to not in reached:
                reached.add(to)
                todo.append(to)
    return other in reached


TestInvocations = Invocations.TestCase
TestInvocations.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
