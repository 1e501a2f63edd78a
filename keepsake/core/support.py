"""Whether a text says what a language model takes from it: words, numbers, names, times, and what is denied."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from keepsake.core import facts, names, when
from keepsake.core import text as texts
from keepsake.core.clock import DAY, SECOND
from keepsake.core.facts import FactType, Span
from keepsake.core.stem import stem
from keepsake.core.when import Window

Fault = Literal["words", "numbers", "negation", "doubt", "entity", "time"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact as a language model tells it, and where in the note it says to have found it."""

    start: int
    end: int
    text: str
    type: FactType
    entities: tuple[str, ...] = ()
    #: The time it speaks of, ISO 8601; empty for none.
    time: str = ""


@dataclass(frozen=True, slots=True)
class Ground:
    """What claims rest on: a note, what was said before it, and the moment its relative words count from."""

    note: str
    before: str
    at: int


#: Characters of the note on either side of a span whose words a claim may use.
NEAR = 300
#: Words that say little and that a sentence may need.
_LIGHT = frozenset(
    stem(word)
    for word in """use used using become became make made get got say said says tell told called named one ones person
    people thing things user someone something its time day date year month""".split()
)
_DENIES = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nowhere|neither|nor|without|cannot|hardly|barely|isnt|dont|didnt|wont"
    r"|refus\w+|declin\w+|stopp\w+|den(?:y|ies|ied))\b|n['’]t\b",
    re.IGNORECASE,
)
_DOUBTS = re.compile(
    r"\b(?:if|unless|might|could|would|should|maybe|perhaps|possibly|probably|likely|unlikely|almost|nearly|plan\w*"
    r"|hop(?:e|es|ed|ing)|wants?|wanted|wish\w*|consider\w*|think\w*|thought|believ\w*|claim\w*|suspect\w*|doubt\w*"
    r"|alleged\w*|supposed\w*|rumou?r\w*|try|tries|tried|trying|intend\w*|promis\w*|propos\w*|suggest\w*)\b|\?",
    re.IGNORECASE,
)
#: The month begins with a capital.
_MAY = re.compile(r"\bmay\b")
_FIGURE = re.compile(r"\w*\d(?:[\w]|[.,:/%-](?=\w))*")
_WORD = re.compile(r"\w+|['’]\w+")
_MARKED = ("code", "file", "url", "email", "ticket", "version")
_HE, _SHE = frozenset("he him his".split()), frozenset("she her hers".split())
_JOINS = frozenset("and but so then also however".split())
#: Before a place; and, in the sentence of he or she itself, before whoever is not its subject.
_PLACES = frozenset("in at from near into".split())
_OTHERS = _PLACES | frozenset("to with for of by about on".split())


def fault(claim: Claim, ground: Ground) -> Fault | None:
    """What is wrong with a claim; None when its span supports it."""
    span = ground.note[claim.start : claim.end]
    windows = when.windows(span, ground.at)
    dated = {word for window in windows for word in _dated(window)}
    if _figures(claim.text) - _figures(span) - dated or _identifiers(claim.text, span):
        return "numbers"
    if not _words(claim.text) <= _allowed(claim, ground) | {stem(word) for word in dated}:
        return "words"
    if not _is_one_of(_DENIES, claim.text, span):
        return "negation"
    if _doubts(span) and not _doubts(claim.text):
        return "doubt"
    known = _plain(f"{ground.note} {ground.before}")
    if any(not _plain(name).strip() or _plain(name) not in known for name in claim.entities):
        return "entity"
    return None if not claim.time or _agrees(claim.time, windows, ground.at) else "time"


def _words(told: str) -> set[str]:
    return {word for word in texts.lexemes(told) if word not in _LIGHT}


def _allowed(claim: Claim, ground: Ground) -> set[str]:
    """The words of the span, of what stands beside it, and of every name in the note and before it."""
    near = ground.note[max(0, claim.start - NEAR) : claim.end + NEAR]
    named = [mention.name for part in (ground.note, ground.before) for mention in names.entities(part)]
    return set(texts.lexemes(" ".join((near, *named))))


def _figures(told: str) -> set[str]:
    """The numbers of a text, without what groups their digits."""
    return {re.sub(r"(?<=\d),(?=\d{3})", "", found.rstrip(".,:/-")).lower() for found in _FIGURE.findall(told)}


def _identifiers(told: str, span: str) -> bool:
    """Whether a text has a file, an address or a name from code that the span does not have."""
    return any(one.kind in _MARKED and one.name.lower() not in span.lower() for one in names.entities(told))


def _dated(window: Window) -> Iterable[str]:
    """How the days at both ends of a window may be written."""
    for at in (window.start, window.end - 1):
        day = datetime.fromtimestamp(at // SECOND, UTC)
        yield from (str(day.year), str(day.month), str(day.day), f"{day:%Y-%m-%d}", f"{day:%Y-%m}", f"{day:%m}")
        yield from (f"{day:%d}", f"{day:%B}".lower(), f"{day:%b}".lower(), f"{day:%A}".lower())
        yield from (f"{day.day}{ending}" for ending in ("st", "nd", "rd", "th"))


def _is_one_of(pattern: re.Pattern[str], told: str, span: str) -> bool:
    """Whether a text is like one of the sentences of a span: both have what the pattern finds, or both have not."""
    whole = Span(0, len(span))
    had = {bool(pattern.search(span, one.start, one.end)) for one in facts.sentences(span, whole)}
    return bool(pattern.search(told)) in had


def _doubts(told: str) -> bool:
    return bool(_DOUBTS.search(told) or _MAY.search(told))


def _plain(told: str) -> str:
    """A text as names are looked for in it: folded words between blanks."""
    return f" {' '.join(texts.words(told))} "


def _agrees(told: str, windows: Sequence[Window], at: int) -> bool:
    """Whether the span names a time, or a more exact one; where it names none, only the note's own day may be told."""
    given = next(iter(when.windows(told, at)), None)
    if given is None:
        return False
    if not windows:
        return given.start < at + DAY and given.end > at - DAY
    return any(given.start == one.start or (given.start <= one.start and one.end <= given.end) for one in windows)


def window(claim: Claim, ground: Ground) -> Window | None:
    """The time that a claim speaks of, as its span tells it."""
    windows = when.windows(ground.note[claim.start : claim.end], ground.at)
    given = next(iter(when.windows(claim.time, ground.at)), None) if claim.time else None
    if given is None:
        return None
    return next((one for one in windows if given.start <= one.start < given.end), None)


def renamed(claim: Claim, ground: Ground) -> str | None:
    """The claim's sentence where it is its span with a name for he or she, and only one person can be meant."""
    own, said = _tokens(ground.note[claim.start : claim.end]), _tokens(claim.text)
    who = _meant(own, claim, ground)
    if who is None:
        return None
    i, j = (1 if own[0] in _JOINS and said[:1] != own[:1] else 0), 0
    while i < len(own):
        if own[i : i + 1] == said[j : j + 1]:
            j += 1
        elif own[i] in _HE | _SHE and (taken := _name_at(said, j, who, own[i])):
            j += taken
        else:
            return None
        i += 1
    is_whole = j == len(said) and _HE.union(_SHE).isdisjoint(said)
    return " ".join(claim.text.split()) if is_whole else None


def _tokens(told: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(told.casefold())]


def _meant(own: Sequence[str], claim: Claim, ground: Ground) -> list[str] | None:
    """The words of the only name that he or she in a span can stand for; None when nobody or more than one can be."""
    if not own or _HE.isdisjoint(own) == _SHE.isdisjoint(own):
        return None
    told = ground.note[: claim.end]
    found = {}
    for one in names.entities(told):
        before = told[: one.start].split()[-1:]
        is_other = not (_OTHERS if one.start >= claim.start else _PLACES).isdisjoint(before)
        if one.kind in ("person", "name") and not is_other:
            found[names.folded(one.name)] = one.name
    return _tokens(next(iter(found.values()))) if len(found) == 1 else None


def _name_at(said: Sequence[str], at: int, who: Sequence[str], pronoun: str) -> int:
    """How many words a name takes here, whole or its first part; 0 when it is not here."""
    for name in (who, who[:1]):
        end = at + len(name)
        if list(said[at:end]) == list(name):
            is_owned = pronoun in ("his", "her", "hers") and said[end : end + 1] == ["'s"]
            return len(name) + is_owned if is_owned or pronoun not in ("his", "hers") else 0
    return 0
