"""Whether a newer statement repeats an older one, contradicts it so that both cannot hold, or leaves it standing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from keepsake.core import names, when
from keepsake.core.stem import stem

Verdict = Literal["same", "contradicts", "unclear", "other"]
#: How surely an attribute has one value at a time: always, mostly, or not at all.
Hold = Literal["one", "mostly", "many"]

#: Below this similarity two statements are not about the same thing, whatever their words.
RELATED = 0.1
#: From here on a likely contradiction is worth a person's look.
NEAR = 0.7
#: Two tastes exclude each other only when they are of a kind: tea and coffee, not tea and dark mode.
KIN = 0.8
#: From here on one more word in a long statement changes nothing.
ALIKE = 0.9


@dataclass(frozen=True, slots=True)
class Frame:
    """Who, which attribute and how it was said, which value; `hold` tells whether another value excludes this one."""

    subject: tuple[str, ...]
    attribute: str
    said: str
    value: tuple[str, ...]
    hold: Hold


@dataclass(frozen=True, slots=True)
class Change:
    """A statement that something became something else."""

    subject: tuple[str, ...]
    verb: str
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A text as the rules read it; `denied` holds before which words a negation stands."""

    words: tuple[str, ...]
    stems: tuple[str, ...]
    speaker: str
    proper: frozenset[str]
    denied: tuple[int, ...]
    is_changed: bool
    is_plain: bool
    is_past: bool
    frame: Frame | None
    change: Change | None


_FILLERS = frozenset(
    "a an the that please really very quite just simply so also already finally again recently".split()
)
_CHANGED = frozenset("now currently nowadays instead anymore henceforth".split())
_HEDGES = frozenset(
    """almost another any believe believes both could each either every hope hopes hoping if kind many may maybe might
    most mostly nearly occasionally often one other others perhaps planning probably seem seems several
    should some sometimes sort think thinks thought unless usually want wants when whenever wish would""".split()
)
_PAST = frozenset("was were did had went met saw made got took came gave said told wrote ran bought left began".split())
_BE = frozenset("is are be been being am".split())
_TOKEN = re.compile(r"[^\s,;:!?()\"“”«»]+")
_BREAK = re.compile(r"[.!]\s+\S|[?;\n]|:\s+\S.*,")
_LISTS = frozenset("and or too plus & besides".split())
_TAILS = frozenset("since because as but which who while after until so if instead rather not where due than".split())
_POINTING = frozenset("it this that these those there he she they here what who which you".split())
#: Countries and kinds of places, which may hold the other value.
_WIDE_STEMS = frozenset(
    stem(word)
    for word in """africa america argentina asia australia austria belgium brazil building california canada china city
    cloud country denmark england europe finland florida france germany greece home house india ireland israel italy
    japan korea mexico netherlands norway office poland portugal russia spain sweden texas turkey uk us usa""".split()
)
_ATTRIBUTES = frozenset(
    """address age birthday boss branch budget capacity capital ceiling ceo cfo color colour cost count cto deadline
    default depth email endpoint frequency headquarters height host hostname interval lead leader length limit location
    manager maximum minimum name nickname number owner password phone port price quota rate region retention salary size
    status surname threshold timeout timezone title total url username version weight width""".split()
)
#: Attributes whose values are plain words; the value of another is a name or a number.
_WORDED = frozenset(map(stem, "status colour color frequency branch default favourite favorite version".split()))
_SCOPES = frozenset("in on at for with by from to near during under over within of inside across".split())
_SELVES = frozenset("i we me us my our mine ours myself".split())
#: One more of these words makes another statement.
_TURNING = _HEDGES | frozenset("without except only less fewer more than before after until unlike all".split())
_PARTLY = frozenset("only just yet all every everyone always necessarily".split())
_NUMBER = re.compile(r"(?P<mark>[$€£]?)\d+(?:[.,]\d+)*(?P<unit>[a-z%°]*)")
_OPPOSITES = {
    frozenset(pair.split("/"))
    for pair in """enabled/disabled on/off open/closed true/false allowed/forbidden required/optional alive/dead
    public/private active/inactive supported/unsupported available/unavailable married/divorced""".split()
}
_COUNTED_BY = frozenset("is are has have costs takes allows supports needs requires lasts weighs equals holds".split())
#: Attribute, how it holds, and how it is said. Verbs stand in the present: what was is no contradiction of what is.
_RELATIONS: tuple[tuple[str, Hold, str], ...] = (
    ("place", "one", r"(?:is|are) (?:located|based|headquartered|situated) (?:in|at|on)|(?:lives?|resides?) (?:in|at)"),
    ("host", "mostly", r"(?:is|are) (?:hosted|stored|kept) (?:on|in|at|by|with)|listens? on"),
    ("owner", "one", r"(?:is|are) (?:owned|managed|led) by|reports? to"),
    ("name", "one", r"(?:is|are) (?:called|named)"),
    ("setting", "one", r"(?:is|are) (?:set|capped|limited) (?:to|at)|defaults? to|points? to|resolves? to"),
    ("hour", "one", r"(?:starts?|ends?|opens?|closes?|begins?) at|expires? (?:after|in)"),
    ("price", "one", r"costs?|weighs?"),
    ("job", "mostly", r"works? (?:at|for|as)|stud(?:ies|y) at|belongs? to|(?:is|are) (?:written in|maintained by)"),
    ("home", "mostly", r"(?:runs?|rely|relies|deploys?) on|(?:is|are) (?:deployed|run|running|built) (?:on|to|with)"),
    ("taste", "mostly", r"prefers?"),
    ("use", "many", r"uses?"),
    ("place", "one", r"(?:is|are) (?:in|at)"),
    ("is", "one", r"(?:is|are|equals?)"),
)
_FRAMES = [
    (name, hold, re.compile(rf"(?P<subject>\S+(?: \S+){{0,6}}?) (?P<said>{said}) (?P<value>\S+(?: \S+){{0,11}})"))
    for name, hold, said in _RELATIONS
]
_SOME, _FEW = r"\S+(?: \S+){0,6}?", r"\S+(?: \S+){0,4}?"
_BECAME = r"(?:was|were|is|are|got|has been|have been)"
_VERB = r"(?:have |has |had )?(?P<verb>moved|switched|migrated|relocated|changed|transitioned|shifted)(?: over| away)?"
_CHANGES = [
    re.compile(said)
    for said in (
        rf"(?P<subject>{_SOME}) {_VERB} from (?P<old>{_FEW}) (?:to|onto) (?P<new>\S.*)",
        rf"(?P<subject>{_SOME}) {_VERB} (?:to|onto|into) (?P<new>\S.*)(?P<old>)",
        rf"(?P<subject>{_SOME}) (?:have |has )?(?P<verb>replaced) (?P<old>{_FEW}) (?:with|by) (?P<new>\S.*)",
        rf"(?P<subject>)(?P<old>{_FEW}) {_BECAME} (?P<verb>replaced) (?:with|by) (?P<new>\S.*)",
        rf"(?P<subject>{_SOME}) {_BECAME} (?P<verb>renamed)(?: from (?P<old>{_FEW}))? to (?P<new>\S.*)",
    )
]
#: Which attributes each verb of change ends.
_ENDS = {
    **dict.fromkeys(("moved", "relocated"), ("place", "host", "home")),
    **dict.fromkeys(("switched", "migrated", "transitioned", "shifted"), ("home", "host", "taste", "use")),
    "changed": ("setting", "is", "hour", "name"),
    "renamed": ("name",),
}


def verdict(older: str, newer: str, similarity: float) -> Verdict:
    """Judge two statements; `similarity` is that of their meanings, from 0 to 1."""
    if older == newer:
        return "same"
    before, after = _read(older), _read(newer)
    if _is_same(before, after, similarity):
        return "same"
    if similarity < RELATED or not (before.is_plain and after.is_plain) or not _one_voice(before, after):
        return "other"
    for judge in (_by_change, _by_negation, _by_word, _by_frame):
        found = judge(before, after)
        is_taste = bool(after.frame and after.frame.attribute == "taste")
        if (similarity < NEAR and found == "unclear") or (similarity < KIN and is_taste):
            return "other"
        if found:
            return found
    return "other"


@lru_cache(maxsize=4096)
def _read(text: str) -> Statement:
    """Read a statement: its words without fillers, its tone, and what it says of whom."""
    spoken = names.speaker(text)
    body = (text[spoken.end + 1 :] if spoken else text).strip()
    raw = [word for token in _TOKEN.findall(body) if (word := token.strip(".*_`'’…-"))]
    said = [part for word in raw for part in _expanded(word.lower().replace("’", "'"))]
    words, denied, is_changed = _toned(said)
    proper = frozenset(word.lower() for word in raw[1:] if word[0].isupper())
    is_single = 2 <= len(said) <= 30 and not _BREAK.search(body)
    is_told = said[:1] not in (["a"], ["an"], ["do"], ["never"], ["not"], ["no"]) and not _POINTING & set(said[:1])
    is_partly = any(one == "not" and after in _PARTLY for one, after in pairwise(said))
    return Statement(
        words=words,
        stems=tuple(stem(word) for word in words),
        speaker=names.folded(spoken.name) if spoken else "",
        proper=proper,
        denied=denied,
        is_changed=is_changed,
        is_plain=is_single and is_told and not is_partly and _HEDGES.isdisjoint({*said} - ({"may"} & proper)),
        is_past=_is_past(words),
        frame=_framed(words) if is_single else None,
        change=_change(words) if is_single else None,
    )


def _expanded(word: str) -> tuple[str, ...]:
    """Write a contraction in full; a possessive loses its ending."""
    if word in ("cannot", "can't"):
        return ("can", "not")
    if word.endswith("n't"):
        return ("will" if word == "won't" else word[:-3], "not")
    base, _, ending = word.rpartition("'")
    if not base:
        return (word,)
    if ending == "s":
        return (base, "is") if base in _POINTING or base in ("where", "how") else (base,)
    full = {"re": "are", "m": "is", "ve": "have", "ll": "will", "d": "would"}.get(ending)
    return (base, full) if full else (word,)


def _toned(said: Sequence[str]) -> tuple[tuple[str, ...], tuple[int, ...], bool]:
    """The words without negations, change words and fillers; where words are denied; whether something changed."""
    words: list[str] = []
    denied: list[int] = []
    is_changed = False
    for before, word, after in zip(["", *said], said, [*said[1:], ""], strict=False):
        is_over = _is_over(before, word, after)
        is_changed = is_changed or is_over
        if is_over or word in ("not", "never", "no"):
            denied.append(len(words))
        elif word in _CHANGED or (word == "more" and before == "any") or (word == "any" and after == "more"):
            is_changed = True
        elif (word == "longer" and before == "no") or (word == "to" and before == "used" and words[-1:] != ["used"]):
            continue
        elif word not in _FILLERS and not (word in ("do", "does") and after in ("not", "")):
            words.append("is" if word == "am" else word)
    return tuple(words), tuple(denied), is_changed


def _is_over(before: str, word: str, after: str) -> bool:
    """Tell `no longer`, `used to` and `stopped using`."""
    if word in ("stopped", "quit", "ceased"):
        return after.endswith("ing")
    return (word == "no" and after == "longer") or (word == "used" and after == "to" and before not in _BE)


def _is_past(words: Sequence[str]) -> bool:
    """Tell an event from a state; `is limited` is a state."""
    return any(
        word in _PAST
        or (word.endswith("ed") and len(word) > 4 and not {*words[max(0, at - 2) : at]} & _BE and word != "need")
        for at, word in enumerate(words)
    )


def _framed(words: tuple[str, ...]) -> Frame | None:
    """Find the one attribute a statement gives a value to."""
    line = " ".join(words)
    for attribute, hold, said in _FRAMES:
        match = said.fullmatch(line)
        if not match:
            continue
        subject, value, said_as = (tuple(match[part].split()) for part in ("subject", "value", "said"))
        if attribute == "is" and (not _names_attribute(subject) or value[0] in _SCOPES):
            return None
        if attribute == "place":
            said_as = said_as[-1:]
        return Frame(_key(subject), attribute, " ".join(_key(said_as)), value, hold)
    return None


def _names_attribute(subject: Sequence[str]) -> bool:
    """Tell whether a subject is something with one value: a limit, a name, the capital of a country."""
    place = next((at for at, word in enumerate(subject) if word in _SCOPES), len(subject))
    head = subject[place - 1] if place else ""
    return head in _ATTRIBUTES or not {"favourite", "favorite", "default"}.isdisjoint(subject[:place])


def _change(words: tuple[str, ...]) -> Change | None:
    line = " ".join(words)
    for said in _CHANGES:
        if match := said.fullmatch(line):
            old, new = (match["old"] or "").split(), _told(match["new"].split())[0]
            return Change(_key(match["subject"].split()), match["verb"], _key(old), new)
    return None


def _key(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(stem(word) for word in words if word != "our")


def _told(value: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A value's stems, and where or when it is said to hold; reasons and comparisons are left out."""
    end = next((at for at, word in enumerate(value) if at and word in _TAILS), len(value))
    scope = next((at for at, word in enumerate(value) if 0 < at < end and word in _SCOPES), end)
    return _key(value[:scope]), _key(value[scope:end])


def _one_voice(before: Statement, after: Statement) -> bool:
    """What two people say of themselves is about two people."""
    return before.speaker == after.speaker or _SELVES.isdisjoint((*before.words, *after.words))


def _is_same(before: Statement, after: Statement, similarity: float) -> bool:
    """Tell a repetition: the same words, a part moved to the front, or one word more in a long statement."""
    first, second = before.stems, after.stems
    is_two = before.speaker != after.speaker and before.speaker and after.speaker
    if not first or is_two or before.denied != after.denied or not _one_voice(before, after):
        return False
    if first == second:
        return True
    if len(first) == len(second) >= 4 and similarity >= NEAR:
        turns = (at for at in range(1, len(first)) if first[at:] + first[:at] == second)
        return any(before.words[at] in _SCOPES or after.words[0] in _SCOPES for at in turns)
    short, long = sorted((before, after), key=lambda one: len(one.stems))
    extra = [word for word in long.words if stem(word) not in short.stems]
    is_small = len(extra) <= len(long.stems) // 8 and set(short.stems) <= set(long.stems)
    is_plain = all(word.isalpha() and word not in long.proper and word not in _TURNING for word in extra)
    return similarity >= ALIKE and bool(extra) and is_small and is_plain


def _by_change(before: Statement, after: Statement) -> Verdict | None:
    """`Deploys moved from Jenkins to …` ends what was said of Jenkins."""
    change, earlier = after.change, before.change
    if not change or before.denied or after.denied or (before.is_past and not earlier):
        return None
    had = before.frame or (earlier and Frame(earlier.subject, "", "", earlier.new, "one"))
    if not had or _times(change.new, after) != _times(had.value, before):
        return None
    value, _ = _told(had.value)
    is_subject = change.subject == had.subject
    if change.old:
        is_near = change.verb == "replaced" or is_subject or set(change.subject) <= set(before.stems)
        if not is_near or not set(change.old) <= set(value) or set(change.new) == set(value):
            return None
        return "contradicts" if is_subject else "unclear"
    if not is_subject or had.attribute not in _ENDS.get(change.verb, ()) or not _exclude(value, change.new):
        return None
    is_sure = had.attribute not in ("use", "taste") and _WIDE_STEMS.isdisjoint(value) == _WIDE_STEMS.isdisjoint(
        change.new
    )
    return "contradicts" if is_sure else "unclear"


def _by_negation(before: Statement, after: Statement) -> Verdict | None:
    """`We use Redis`, `We no longer use Redis`."""
    if bool(before.denied) == bool(after.denied) or before.stems != after.stems or len(before.stems) < 3:
        return None
    said = after if after.denied else before
    if said.words[said.denied[0] - 1] in _SCOPES:
        return None  # a man with no shirt is another man
    return "unclear" if before.is_past or after.is_past else "contradicts"


def _by_word(before: Statement, after: Statement) -> Verdict | None:
    """One word differs: open and closed, 60 and 100; what is counted at different times can both hold."""
    if len(before.stems) != len(after.stems) or before.denied or after.denied:
        return None
    places = [at for at, (old, new) in enumerate(zip(before.stems, after.stems, strict=True)) if old != new]
    if len(places) != 1 or before.is_past or after.is_past:
        return None
    at = places[0]
    pair, led = (before.words[at], after.words[at]), before.words[1:at]
    if frozenset(pair) in _OPPOSITES:
        return "contradicts" if led[-1:] and led[-1] in _BE else None
    old, new = (_NUMBER.fullmatch(word) for word in pair)
    is_count = (
        old and new and old.group("mark", "unit") == new.group("mark", "unit") and not _COUNTED_BY.isdisjoint(led)
    )
    is_timed = is_count and (_times(before.words, before) or _times(after.words, after))
    return "contradicts" if is_count and not is_timed else None


def _by_frame(before: Statement, after: Statement) -> Verdict | None:
    """One subject, one attribute, two values that exclude each other."""
    old, new = before.frame, after.frame
    if not old or not new or old.hold == "many" or (old.subject, old.said) != (new.subject, new.said):
        return None
    if before.denied or after.denied or before.is_past or after.is_past:
        return None
    is_dated = not {"deadlin", "birthdai"}.isdisjoint(old.subject)
    if not is_dated and (_times((old.said, *old.value), before) or _times((new.said, *new.value), after)):
        return None
    (was, was_where), (now, now_where) = _told(old.value), _told(new.value)
    if was_where != now_where or not _exclude(was, now) or not _LISTS.isdisjoint((*old.value, *new.value)):
        return None
    sorts = {_sort(old.value, before), _sort(new.value, after)}
    if len(sorts) > 1:
        return None
    is_vague = "word" in sorts and old.attribute in ("is", "place") and _WORDED.isdisjoint(old.subject)
    is_vague = is_vague or _WIDE_STEMS.isdisjoint(was) != _WIDE_STEMS.isdisjoint(now)
    is_sure = after.is_changed or (old.hold == "one" and not is_vague)
    return "contradicts" if is_sure else "unclear"


def _sort(value: Sequence[str], statement: Statement) -> Literal["number", "name", "word"]:
    """Values are compared with their like: `The lead is Bob` and `The lead is tired` can both hold."""
    if any(word[0].isdigit() for word in value):
        return "number"
    return "name" if value[0] in statement.proper else "word"


def _exclude(old: Sequence[str], new: Sequence[str]) -> bool:
    """Tell whether two values are short, and neither is part of the other."""
    is_short = 0 < len(old) <= 5 and 0 < len(new) <= 5
    return is_short and not set(old) <= set(new) and not set(new) <= set(old)


def _times(words: Sequence[str], statement: Statement) -> list[when.Window]:
    """The times among some words, with the capitals that months are known by."""
    return when.windows(" ".join(word.capitalize() if word in statement.proper else word for word in words), 0)
