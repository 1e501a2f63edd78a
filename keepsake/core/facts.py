"""Cutting a note into facts, each with its exact place in the text, and telling what kind of fact it is."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from keepsake.core import names

FactType = Literal["world", "experience", "opinion"]


@dataclass(frozen=True, slots=True)
class Span:
    """A fact: `text[start:end]`, under which headings it stood, and who said it when the text names a speaker."""

    start: int
    end: int
    heading: str = ""
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together; `level` is a heading's depth, or 10 and the indent of an item or a code block."""

    kind: Literal["heading", "item", "turn", "whole", "prose"]
    start: int
    end: int
    level: int = 9
    speaker: str = ""


#: A turn of a conversation stays one fact up to this many characters.
LONG_TURN = 500
#: A sentence is joined to the one it leans on while both have no more characters than this.
LONG_JOIN = 320
#: A line shorter than this ends by itself when the next one begins anew; a longer one was wrapped.
SHORT_LINE = 50
#: A heading, and a line that ends in a colon before a list, has no more characters than this.
LONG_LEAD = 100

_FENCE = re.compile(r"\s{0,8}(```+|~~~+)")
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(?=\S)")
_ITEM = re.compile(r"(\s*)(?:[-*+•–]|\d{1,3}[.)])\s+(?=\S)")
_ROW = re.compile(r"\s*\|.*\|?\s*$")
_RULE = re.compile(r"\s*([-*_=])(?:\s*\1){2,}\s*$")
_PAIR = re.compile(r"\s*[\w .-]{1,30}:\s")
_LINE = re.compile(r"[^\n]*\n?")
#: Where a sentence may end: a sign, what closes, and a blank; in Chinese and Japanese the sign alone.
_END = re.compile(r"[.!?؟।]+[\"'”’»)\]*_`]*(?=\s)|[。！？]+[」』”’）]*|(?<=\S)[^\S\n]*\n")
_SHIELD = re.compile(r"`[^`]{1,300}`|\"[^\"]{1,300}\"|“[^“”]{1,300}”|«[^«»]{1,300}»|\([^()]{1,200}\)")
_WORD = re.compile(r"\w[\w'’-]*")
_NEVER_ENDS = frozenset(
    """mr mrs ms dr prof st rev gen col capt lt sen rep gov e.g eg i.e ie cf vs viz approx ca esp incl excl al resp
    dept univ ave blvd""".split()
)
_ENDS_BEFORE_WORDS = frozenset(
    "no nos fig figs p pp vol ch sec art eq ref jan feb mar apr jun jul aug sep oct nov dec".split()
)
_MAY_END = frozenset("etc inc ltd co corp jr sr a.m p.m u.s u.k e.u ph.d b.sc m.sc bros est".split())
_LEANS = re.compile(
    r"[\"'“‘(]?(?:(?:this|that|these|those)(?!\s+(?:\w+\s+)?(?:week|month|year|morning|afternoon|evening|quarter|time"
    r"|spring|summer|autumn|fall|winter|weekend|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b)"
    r"|it|they|he|she|him|his|her|hers|its|their|theirs|them|however|but|and|or|so|then|thus|therefore|hence|also|because"
    r"|which|instead|otherwise|afterwards?|moreover|furthermore|besides|nevertheless|nonetheless|still|yet|such|both"
    r"|neither|either|similarly|likewise|consequently|meanwhile|additionally|as a result|for (?:example|instance)"
    r"|in (?:addition|contrast|particular|other words)|on the other hand|that's why|the (?:former|latter|same))"
    r"(?:['’]\w+)?(?![\w'’-])",
    re.IGNORECASE,
)


def split(text: str) -> list[Span]:
    """Cut a note into facts; headings become the context of what stands under them."""
    spans = list(_placed(text, list(_blocks(text))))
    if not spans and (bare := _stripped(text, 0, len(text))):
        return [bare]
    return spans


def sentences(text: str, fact: Span) -> list[Span]:
    """The sentences of a fact, each with its exact place."""
    return list(_sentences(text, fact))


def leans(text: str, one: Span) -> bool:
    """Tell whether a sentence begins with a word that points at what stands before it."""
    return bool(_LEANS.match(text, one.start, one.end))


def _stripped(text: str, start: int, end: int) -> Span | None:
    """The span without the blanks around it, or None when nothing is left."""
    part = text[start:end]
    left = len(part) - len(part.lstrip())
    return Span(start + left, start + len(part.rstrip())) if left < len(part) else None


def _blocks(text: str) -> Iterator[Block]:
    """Read the layout: fences, tables, headings, items, turns, and prose between them."""
    lines = [(match.start(), match.end()) for match in _LINE.finditer(text) if match[0]]
    at = 0
    while at < len(lines):
        start, end = lines[at]
        line = text[start:end]
        if not line.strip():
            at += 1
            continue
        last = _whole(text, lines, at)
        if last > at:
            indent = len(line) - len(line.lstrip())
            yield Block("whole", start, lines[last - 1][1], 10 + indent)
            at = last
            continue
        if heading := _HEADING.match(line):
            yield Block("heading", start + heading.end(), end, len(heading[1]))
        elif _RULE.match(line):
            pass
        elif at + 1 < len(lines) and _is_underlined(text, lines, at):
            yield Block("heading", start, end, 1 if "=" in text[slice(*lines[at + 1])] else 2)
        else:
            last = _paragraph(text, lines, at)
            yield from _prose(text, start, lines[last - 1][1])
            at = last - 1
        at += 1


def _whole(text: str, lines: list[tuple[int, int]], at: int) -> int:
    """The line after a code fence or table that begins here, or this line when none does."""
    line = text[slice(*lines[at])]
    last = at
    if fence := _FENCE.match(line):
        mark = fence[1]
        last += 1
        while last < len(lines) and not text[slice(*lines[last])].strip().startswith(mark):
            last += 1
        return min(last + 1, len(lines))
    while last < len(lines) and _ROW.match(text[slice(*lines[last])]):
        last += 1
    return last if last > at + 1 else at


def _is_underlined(text: str, lines: list[tuple[int, int]], at: int) -> bool:
    """Tell a heading by the line of signs below it and the blank above."""
    line, below = text[slice(*lines[at])], text[slice(*lines[at + 1])]
    if not re.fullmatch(r"\s{0,3}(={3,}|-{3,})\s*", below) or len(line) > LONG_LEAD or _begins(line):
        return False
    return at == 0 or not text[slice(*lines[at - 1])].strip()


def _begins(line: str) -> bool:
    """Tell whether a line begins something of its own."""
    return bool(
        _ITEM.match(line) or _HEADING.match(line) or _FENCE.match(line) or _RULE.match(line) or names.speaker(line)
    )


def _paragraph(text: str, lines: list[tuple[int, int]], at: int) -> int:
    """The line after the last one that goes on with the item, turn or prose that begins here."""
    last = at + 1
    while last < len(lines):
        line = text[slice(*lines[last])]
        if not line.strip() or _begins(line) or _whole(text, lines, last) > last:
            break
        last += 1
    return last


def _prose(text: str, start: int, end: int) -> Iterator[Block]:
    """Tell items and turns from prose by how they begin."""
    item = _ITEM.match(text, start, end)
    inner = item.end() if item else start
    spoken = names.speaker(text[inner : min(end, inner + 200)])
    who = spoken.name if spoken else ""
    if item:
        yield Block("item", inner, end, 10 + len(item[1].expandtabs(4)), who)
    else:
        yield Block("turn" if spoken else "prose", inner, end, speaker=who)


def _placed(text: str, blocks: list[Block]) -> Iterator[Span]:
    """Turn blocks into facts, carrying headings and speakers along."""
    above: list[tuple[int, str]] = []
    is_talk = sum(block.kind == "turn" for block in blocks) > 1
    speaker = ""
    for block, after in zip(blocks, [*blocks[1:], None], strict=False):
        bare = _stripped(text, block.start, block.end)
        if not bare:
            continue
        above = [one for one in above if one[0] < block.level]
        speaker = block.speaker or (speaker if is_talk and block.kind != "heading" else "")
        if _leads(text, block, bare, after):
            above.append((block.level, text[bare.start : bare.end].rstrip(":")))
        else:
            heading = " > ".join(title for _, title in above)
            yield from _facts(text, block, replace(bare, heading=heading, speaker=speaker))


def _leads(text: str, block: Block, bare: Span, after: Block | None) -> bool:
    """Tell whether a block only introduces what follows: a heading, or a line such as `These:` before a list."""
    if not after:
        return False
    if block.kind == "heading":
        return after.kind != "heading" or after.level > block.level
    if after.kind not in ("item", "whole") or after.level <= block.level or text[bare.end - 1] != ":":
        return False
    return bare.end - bare.start <= LONG_LEAD and len(list(_sentences(text, bare))) == 1


def _facts(text: str, block: Block, bare: Span) -> Iterator[Span]:
    """The facts of one block."""
    if block.kind in ("whole", "item", "heading") or (block.kind == "turn" and bare.end - bare.start <= LONG_TURN):
        yield bare
        return
    held: Span | None = None
    for one in _sentences(text, bare):
        if held and _joins(text, held, one):
            held = replace(held, end=one.end)
            continue
        if held:
            yield held
        held = one
    if held:
        yield held


def _joins(text: str, held: Span, one: Span) -> bool:
    """Tell whether a sentence belongs to the one before it."""
    if _is_scrap(text[held.start : held.end]) or _is_scrap(text[one.start : one.end]):
        return True
    return leans(text, one) and one.end - held.start <= LONG_JOIN


def _is_scrap(sentence: str) -> bool:
    """Tell a fragment that says nothing by itself; a word of a language without blanks counts by its letters."""
    return len(_WORD.findall(sentence)) < 3 and (sentence.isascii() or len(sentence) < 6)


def _sentences(text: str, bare: Span) -> Iterator[Span]:
    """Cut where a sentence ends, not where only a sign stands."""
    shields = [match.span() for match in _SHIELD.finditer(text, bare.start, bare.end)]
    start = bare.start
    shield = 0
    for match in _END.finditer(text, bare.start, bare.end):
        end = match.end()
        while shield < len(shields) and shields[shield][1] <= match.start():
            shield += 1
        if shield < len(shields) and shields[shield][0] < match.start() and end < shields[shield][1]:
            continue
        if not _is_end(text, start, match, bare.end):
            continue
        if one := _stripped(text, start, end):
            yield replace(bare, start=one.start, end=one.end)
        start = end
    if one := _stripped(text, start, bare.end):
        yield replace(bare, start=one.start, end=one.end)


def _is_end(text: str, start: int, match: re.Match[str], limit: int) -> bool:
    """Tell whether a sign ends its sentence, by the word before it and the one after."""
    end = match.end()
    after = text[end : min(limit, end + 80)].lstrip()
    if not after:
        return True
    if match[0].endswith("\n"):
        is_short = match.start() - text.rfind("\n", 0, match.start()) <= SHORT_LINE
        return (is_short and not after[0].islower()) or bool(_PAIR.match(after))
    if match[0][0] in "。！？":
        return True
    if after[0].islower() and not text[start:end].lstrip()[:1].islower():
        return False
    if ".." in match[0] or text[match.start() - 1] == "…":
        return False
    return match[0][0] != "." or _is_stop(text[max(start, match.start() - 40) : match.start()], after)


def _is_stop(before: str, after: str) -> bool:
    """Tell a full stop from the dot of an abbreviation or an initial."""
    word = before.rsplit(None, 1)[-1].lstrip("\"'“‘([*_") if before.strip() else ""
    plain = word.lower()
    following = _WORD.match(after.lstrip("\"'“‘([*_"))
    is_starter = following is not None and following[0].lower() in names.NEVER
    if plain in _NEVER_ENDS:
        return False
    if plain in _ENDS_BEFORE_WORDS:
        return not after[0].isdigit()
    is_initial = len(word) == 1 and word.isupper() and word != "I"
    if is_initial or plain in _MAY_END or re.fullmatch(r"(?:[A-Za-z]\.)+[A-Za-z]", word):
        return is_starter
    return bool(word)


_PAST = (
    r"(?:(?!need|feed|speed|breed|exceed|proceed|succeed|embed|indeed)\w{2,}ed|went|met|saw|was|were|had|did|made|got"
    r"|took|came|gave|found|told|said|wrote|ran|built|bought|left|began|sent|spent|knew|heard|lost|won|paid|drove|flew"
    r"|ate|drank|slept|taught|caught|kept|held|became|broke|spoke|chose|led|sold|stood|sat|swam|sang|fell|grew|rode"
    r"|woke|quit)"
)
#: What agents do to code; said of a bridge, "was built" is no experience, so that one needs a subject.
_WORK = (
    r"executed|deployed|merged|tested|fixed|migrated|restarted|reverted|installed|upgraded|refactored|debugged|reviewed"
    r"|committed|pushed|investigated"
)
_DONE = (
    r"ran|asked|added|removed|updated|renamed|implemented|created|wrote|built|changed|moved|rewrote|switched|replaced"
    r"|configured|enabled|disabled|met|visited|attended|finished|completed|started|tried"
)
_EXPERIENCE = re.compile(
    rf"(?:\b(?:I|we)(?:['’](?:ve|d)| have| had)?(?: (?:just|also|already|finally|recently|then|all|both|really|even|"
    rf"\w+ly))* {_PAST}\b"
    rf"|\b(?:user|assistant|agent|customer|client|claude|codex|copilot)(?: (?:just|also|then|\w+ly))? {_PAST}\b"
    rf"|\b(?:was|were|been|got) (?:\w+ly )?(?:run|rerun|rebuilt|{_WORK})\b"
    rf"|^\W*(?:{_WORK}|{_DONE})\b"
    r"|\b(?:my|our) \w+(?: \w+)? (?:went|was|were)\b)",
    re.IGNORECASE,
)
_OPINION = re.compile(
    r"(?:\b(?:prefer(?:s|red|ence|ences)?|favou?rites?|opinions?|decided|decision|chose|opted|agreed (?:to|that|on)"
    r"|should|ought to|thinks?|thought|believes?|feels? (?:that|like)|felt (?:that|like)|likes|loves|hates|dislikes?"
    r"|enjoys?|adores?|admires?|recommends?|suggests?|wants?|wishes|hopes?|doubts?|suspects?|disagrees?|seems?|imo|imho"
    r"|in my view|better|worse|best|worst|overrated|underrated|rather than|worth"
    r"|too (?:slow|big|small|complex|complicated|expensive)"
    r"|convinced|would rather)\b"
    r"|\b(?:I|we|you|they|people|users) (?:(?:really|also|still|just|always|both|don['’]t|do not|\w+ly) )*"
    r"(?:like|love|hate|liked|loved|hated|enjoyed|want)\b"
    r"|\b(?:is|are|was|were|looks?|sounds?|['’]s|['’]re) (?:(?:so|very|really|too|quite|pretty|such an?|an?|not) )*"
    r"(?:good|bad|great|terrible|awful|amazing|awesome|beautiful|ugly|elegant|confusing|annoying|boring|horrible|nice|lovely"
    r"|wonderful|fantastic|cool|fun|important|essential|delicious|impressive|disappointing|inspiring|ideal|perfect)\b)",
    re.IGNORECASE,
)


def fact_type(text: str) -> FactType:
    """Tell what the world is like from what someone did and from what someone holds; the first sign decides."""
    spoken = names.speaker(text)
    said = text[spoken.end + 1 :] if spoken else text
    did, holds = _EXPERIENCE.search(said), _OPINION.search(said)
    if did and (not holds or did.end() < holds.end()):
        return "experience"
    return "opinion" if holds else "world"
