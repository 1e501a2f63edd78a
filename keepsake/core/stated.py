"""Decisions and rules that a person states in a prompt; only plain statements count, never pasted text or questions."""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["decision", "constraint", "rejected", "heuristic"]
#: A longer prompt carries pasted text; only its first paragraph is the person's own.
LONGEST = 1_500
SHORTEST_WORDS, LONGEST_SENTENCE = 3, 400
_FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_ENDS = re.compile(r"(?<=[.!;])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!vs\.)\s+|\n+")
_LEAD = re.compile(
    r"^(?:[-*•]\s+|\d+[.)]\s+)?(?:(?:ok(?:ay)?|so|and|but|also|please|note|remember|important|from now on"
    r"|(?:in|for) (?:this|our) (?:project|repo(?:sitory)?|code ?base))[,:]?\s+)*",
    re.IGNORECASE,
)
_WHO = r"(?:we|i|the team)"
_RULES: tuple[tuple[Kind, str], ...] = (
    (
        "rejected",
        rf"{_WHO} (?:already |have |'ve )*tried\b.*\b(?:fail|did(?:n't| not)|does(?:n't| not)|broke|too slow)",
    ),
    ("rejected", r"(?:do not|don't|never) (?:try|attempt|propose|suggest)\b.*\bagain\b"),
    ("rejected", rf"{_WHO} (?:have |'ve )?(?:rejected|ruled out|decided against|gave up on|dropped the idea)\b"),
    ("decision", rf"{_WHO}(?: have|'ve)? (?:decided|agreed|settled on|chose|chosen)\b"),
    (
        "decision",
        rf"{_WHO}(?: are|'re| am|'m) (?:going with|standardi[sz]ing on|switching to|moving to|sticking with)\b",
    ),
    ("decision", r"(?:the )?decision(?: is)?:? "),
    ("constraint", r"never (?!mind\b|ever mind\b)\w+"),
    ("constraint", r"always (?!been\b|was\b|is\b|were\b|had\b|thought\b|wondered\b)\w+"),
    (
        "constraint",
        r"(?:do not|don't) (?:ever )?(?:use|add|commit|push|touch|edit|modify|change|import|call|log|store)\b",
    ),
    ("constraint", r"[^?]{3,120}\bmust (?:not|never|always)\b"),
    ("heuristic", r"prefer \w+.*\b(?:over|to|instead of|rather than)\b"),
    ("heuristic", rf"{_WHO} (?:usually|generally|prefer(?: to)?)\b"),
)
_TABLE = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _RULES)
#: Words that tie an order to the task at hand: no rule for later.
_LOCAL = re.compile(
    r"\b(?:this|that|these|those|here|yet|now|today|it|them|for the moment|until|above|below|first)\b", re.IGNORECASE
)
#: Where the task is the whole project, the order holds.
_WIDE = re.compile(
    r"\bthis (?:project|repo(?:sitory)?|code ?base|team|app(?:lication)?|service)\b|\bfrom now on\b", re.I
)


@dataclass(frozen=True, slots=True)
class Stated:
    """What a person stated."""

    kind: Kind
    text: str


def found(prompt: str) -> list[Stated]:
    """The decisions and rules in a prompt, in its own words."""
    told = _FENCED.sub("\n", prompt).strip("\n")
    if len(told) > LONGEST:
        told = told.split("\n\n", 1)[0]
        if len(told) > LONGEST:
            return []
    made = [Stated(kind, said) for said in _sentences(told) if (kind := _kind(said))]
    return list(dict.fromkeys(made))


def _sentences(told: str) -> list[str]:
    # Quoted lines, logs and tables are someone else's words.
    own = [line for line in told.splitlines() if not re.match(r"\s*(?:>|\||\$|#\s|at )|\s{4,}", line)]
    parts = [" ".join(part.split()) for part in _ENDS.split("\n".join(own))]
    return [part for part in parts if len(part.split()) >= SHORTEST_WORDS and len(part) <= LONGEST_SENTENCE]


def _kind(said: str) -> Kind | None:
    if said.endswith("?") or '"' in said[:2]:
        return None
    bare = _LEAD.sub("", said)
    kind = next((kind for kind, pattern in _TABLE if pattern.match(bare)), None)
    if kind in ("constraint", "heuristic") and _LOCAL.search(_WIDE.sub("", bare)):
        return None
    return kind
