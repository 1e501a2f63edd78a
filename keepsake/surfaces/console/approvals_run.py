"""What an agent wants to run, as whoever decides on it has to see it: exactly what will happen, and what led to it."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from keepsake.ops.invocations import Decided, Handed, Request

#: Who must agree, in a sentence.
POLICIES: Mapping[str, str] = {
    "none": "Nobody has to agree.",
    "person": "One approver has to agree.",
    "other-person": "One approver has to agree who is not the person that asked, however few people are here.",
    "two-persons": "Two approvers have to agree.",
    "elicitation": "The asking client puts it to the person who uses it.",
    "sampling": "The asking client’s model is asked to approve.",
}
#: How it is told what has become of one.
STANDS: Mapping[str, str] = {
    "queued": "Approved. It waits for its turn.",
    "running": "It runs.",
    "succeeded": "It ran, and succeeded.",
    "failed": "It ran, and failed.",
    "timed_out": "It ran too long and was ended.",
    "denied": "Denied. Nothing was run.",
    "expired": "Its time ran out. Nothing was run.",
    "cancelled": "Whoever asked has taken it back.",
    "unknown": "Nobody knows what became of it. It is not run again.",
}
#: Characters of an argument that stand in a title, and how many of them do.
SHORT, NAMED = 30, 2


@dataclass(frozen=True, slots=True)
class Run:
    """An invocation in all that there is to know before one decides."""

    request: Request
    #: Whether whoever looks has agreed already.
    has_agreed: bool

    @property
    def title(self) -> str:
        """What shall be run, with the arguments that are short enough to be read at a glance."""
        plain = ((name, told(value)) for name, value in self.request.arguments.items())
        short = [f"{name} {value}" for name, value in plain if value and len(value) <= SHORT and value.isprintable()]
        with_ = f" with {', '.join(short[:NAMED])}" if short else ""
        return f"Run {self.request.tool}{with_}"

    @property
    def is_command(self) -> bool:
        """Whether it is a command, and not a call over HTTP."""
        return self.request.does.startswith("[")

    @property
    def does(self) -> str:
        """The command as one would type it, each word kept apart, or the call as it will be sent."""
        return visible(shlex.join(json.loads(self.request.does)) if self.is_command else self.request.does)

    @property
    def words(self) -> int:
        """How many words the command has."""
        return len(json.loads(self.request.does)) if self.is_command else 0

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """The arguments exactly as they were given."""
        return [(visible(name), visible(told(value))) for name, value in self.request.arguments.items()]

    @property
    def policy(self) -> str:
        """Who must agree."""
        return POLICIES[self.request.policy]

    @property
    def needed(self) -> str:
        """How many more must."""
        return {0: "", 1: "One more person has to agree."}.get(self.request.needed, "Two people have to agree.")

    @property
    def handed(self) -> list[Handed]:
        """What came from outside and was read shortly before."""
        return self.request.handed

    @property
    def decisions(self) -> list[Decided]:
        """Who agreed so far, or did not."""
        return self.request.decisions

    @property
    def wants_another(self) -> bool:
        """Whether the person that asked may not decide however alone they are."""
        return self.request.policy in ("other-person", "two-persons")

    @property
    def is_going(self) -> bool:
        """Whether something is still to come of it by itself."""
        return self.request.status in ("queued", "running")


def told(value: object) -> str:
    """An argument as it was given: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def visible(text: str) -> str:
    """Words that cannot look like others: what has no shape, or turns the direction of writing, is spelt out."""
    return "".join(letter if letter.isprintable() or letter == "\n" else f"\\u{ord(letter):04x}" for letter in text)
