"""A decision as it is told and kept: its words for every search, its parts for who asks about decisions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

Kind = Literal["decision", "constraint", "heuristic", "rejected"]
#: How a decision stands when it is recorded; `superseded` it becomes when another takes its place.
Given = Literal["proposed", "accepted", "blocked", "rejected", "reversed"]
Status = Literal["proposed", "accepted", "blocked", "rejected", "reversed", "superseded"]
KINDS: tuple[Kind, ...] = ("decision", "constraint", "heuristic", "rejected")
STATUSES: tuple[Given, ...] = ("proposed", "accepted", "blocked", "rejected", "reversed")
#: The tag, and the category, of what stands in the way of other work.
BLOCKER = "blocker"
_HEADED = re.compile(r"^(Why|Considered):[ \t]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Alternative:
    """What was considered and not taken."""

    option: str
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, and why."""

    title: str
    decision: str = ""
    rationale: str = ""
    alternatives: Sequence[Alternative] = ()
    status: Given = "accepted"

    @property
    def told(self) -> str:
        """The whole of it in words, so that every search finds it and nobody sees half."""
        considered = [
            f"Considered: {one.option.strip()}{f' ({one.why_not.strip()})' if one.why_not.strip() else ''}"
            for one in self.alternatives
        ]
        why = f"Why: {self.rationale.strip()}" if self.rationale.strip() else ""
        rest = [part for part in (self.decision.strip(), why, *considered) if part]
        title = self.title.strip()
        # Where lines run together, the title must not run into what follows it.
        return "\n".join([f"{title}." if rest and title[-1:].isalnum() else title, *rest])

    @property
    def parts(self) -> dict[str, object]:
        """Its parts as they are kept."""
        options = [{"option": one.option.strip(), "why_not": one.why_not.strip()} for one in self.alternatives]
        kept: dict[str, object] = {
            "decision": self.decision.strip(),
            "rationale": self.rationale.strip(),
            "alternatives": options,
            "status": self.status,
        }
        return {name: part for name, part in kept.items() if part}


def usual(kind: str) -> Given:
    """How a decision of a kind stands where nobody says so."""
    return "rejected" if kind == "rejected" else "accepted"


def status(kind: str, parts: Mapping[str, object], is_superseded: bool) -> Status:
    """How a kept decision stands; one that was stated in passing says nothing of it, and holds."""
    if is_superseded:
        return "superseded"
    said = parts.get("status")
    return cast("Status", said) if said in STATUSES else usual(kind)


def alternatives(parts: Mapping[str, object]) -> list[Alternative]:
    """What was considered, as it is kept."""
    kept = parts.get("alternatives")
    found = [one for one in kept if isinstance(one, dict)] if isinstance(kept, list) else []
    return [Alternative(str(one.get("option", "")), str(one.get("why_not", ""))) for one in found]


def reworded(told: str, title: str, parts: Mapping[str, object]) -> Decision:
    """A correction of a kept decision, as `told` tells one; reasons that it does not speak of stay what they were."""
    head, *pairs = _HEADED.split(told.strip())
    first, _, rest = head.strip().partition("\n")
    said = list(zip(pairs[::2], (one.strip() for one in pairs[1::2]), strict=True))
    why, kept = str(parts.get("rationale", "")), alternatives(parts)
    if said:
        why = "\n".join(text for name, text in said if name == "Why")
        kept = [_option(text) for name, text in said if name == "Considered" and text]
    stands = cast("Given", status("decision", parts, False))
    return Decision(title if first == f"{title}." else first or title, rest.strip(), why, kept, stands)


def _option(told: str) -> Alternative:
    option, _, why_not = told[:-1].partition(" (") if told.endswith(")") else (told, "", "")
    return Alternative(option, why_not) if why_not else Alternative(told)
