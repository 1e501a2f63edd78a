"""A proposal's states, driven at random against a small model of what is allowed."""

from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, consumes, invariant, multiple, rule

from keepsake.context import Ctx
from keepsake.core import proposal
from keepsake.core.clock import HOUR, MINUTE
from keepsake.core.errors import KeepsakeError
from keepsake.core.principal import local_owner
from tests.machine import Machine


@dataclass
class Made:
    """A proposal as it should stand."""

    id: str
    token: str
    name: str
    is_destructive: bool
    state: str
    expires_at: int

    def at(self, now: int) -> str:
        return "expired" if self.state in proposal.OPEN and now >= self.expires_at else self.state


class Proposals(Machine):
    """Banks are made by proposals, and deleted by proposals that a person at the machine approves."""

    proposals = Bundle("proposals")

    def __init__(self) -> None:
        super().__init__()
        self.banks: set[str] = set()
        self.every: list[Made] = []
        self.count = 0

    @property
    def agent(self) -> Ctx:
        return self.app.ctx(local_owner())

    @property
    def at_the_machine(self) -> Ctx:
        return self.app.ctx(local_owner(), surface="cli")

    def tried(self, ctx: Ctx, operation: str, /, **given: object) -> str:
        """The code of its refusal; nothing when it was done."""
        try:
            self.run(ctx, operation, **given)
        except KeepsakeError as error:
            return error.code
        return ""

    @rule(target=proposals)
    def propose_a_bank(self) -> Made:
        self.count += 1
        name = f"bank-{self.count}"
        return self._made(name, is_destructive=False, operation="bank.create", arguments={"name": name})

    @rule(target=proposals)
    def propose_to_delete_one(self) -> object:
        if not self.banks:
            return multiple()
        name = min(self.banks)
        return self._made(name, is_destructive=True, operation="bank.delete", arguments={"bank": name})

    def _made(self, name: str, *, is_destructive: bool, **given: object) -> Made:
        told = self.run(self.agent, "proposal.create", **given)
        for one in self.every:
            one.state = one.at(self.now)
        state = "pending_approval" if is_destructive else "auto_ok"
        assert told["state"] == state
        until = self.now + proposal.LASTS[state]  # type: ignore[index]  # one of the states
        made = Made(str(told["id"]), str(told["token"]), name, is_destructive, state, until)
        self.every.append(made)
        return made

    @rule(made=proposals)
    def apply(self, made: Made) -> None:
        done = self.tried(self.agent, "proposal.apply", token=made.token)

        state = made.at(self.now)
        if state not in proposal.READY:
            assert done == "conflict"
            made.state = state
        else:
            assert done == ""
            made.state = "succeeded"
            (self.banks.discard if made.is_destructive else self.banks.add)(made.name)
            # With a bank goes whatever was to be changed in it.
            for other in self.every:
                if made.is_destructive and other.name == made.name and other.state in proposal.OPEN:
                    other.state = "revoked"

    @rule(made=proposals, approve=st.booleans())
    def decide(self, made: Made, approve: bool) -> None:
        done = self.tried(self.at_the_machine, "proposal.decide", id=made.id, approve=approve)

        assert (done == "") == (made.at(self.now) == "pending_approval")
        if done == "":
            made.state = "approved" if approve else "rejected"
            made.expires_at = self.now + proposal.LASTS["approved"] if approve else made.expires_at

    @rule(made=proposals)
    def decide_as_the_agent(self, made: Made) -> None:
        assert self.tried(self.agent, "proposal.decide", id=made.id, approve=True) != ""

    @rule(made=proposals)
    def apply_as_another(self, made: Made) -> None:
        other = replace(local_owner(), name="key:other", key=77)

        assert self.tried(self.app.ctx(other), "proposal.apply", token=made.token) == "not_found"

    @rule(made=consumes(proposals))
    def cancel(self, made: Made) -> None:
        done = self.tried(self.agent, "proposal.cancel", id=made.id)

        assert (done == "") == (made.at(self.now) in proposal.OPEN)

    @rule(by=st.sampled_from([MINUTE, 10 * MINUTE, 15 * MINUTE, HOUR, 24 * HOUR]))
    def wait(self, by: int) -> None:
        self.now += by

    @rule(made=proposals)
    def look(self, made: Made) -> None:
        told = self.run(self.agent, "proposal.get", id=made.id)

        assert told["state"] == made.at(self.now)

    @invariant()
    def only_what_was_agreed_to_has_happened(self) -> None:
        banks = self.run(self.agent, "bank.list")["banks"]
        assert isinstance(banks, list)
        assert {bank["name"] for bank in banks} - {"default"} == self.banks


TestProposals = Proposals.TestCase
TestProposals.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
