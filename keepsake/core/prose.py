"""What a document of a repository says in sentences: without badges, tables, code and the signs of its markup."""

import re
from collections.abc import Callable, Iterator

from keepsake.core import cite

#: Sentences shorter than this are labels; longer ones are cut.
LEAST, LONGEST = 20, 400
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_RULE = re.compile(r"^\s*(?:[=~^\"'`#*+_-]{3,}|[|+][-=|+:\s]+)\s*$")
#: Headings, directives and their options, tables, HTML, lines that only link or show a picture.
_BARE = re.compile(
    r"^\s*(?:#{1,6}\s|\.\.(?:\s|$)|:[\w-]+:(?:\s|$)|\||<[^>]+>\s*$|!?\[[^\]]*\](?:[(:\[].*)?$|https?://\S+$)"
)
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")
_PICTURE = re.compile(r"!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])")
_LINK = re.compile(
    r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])|\[([^\W\d_][^\]]+)\](?!:)|`([^`<]+?)\s*<[^>`]+>`__?|:[\w:+-]+:`~?\.?([^`]+)`"
    r"|``([^`]+)``"
)
_SIGNS = re.compile(r"</?[a-zA-Z][^>]*>|\*\*|__(?=\S)|(?<=\S)__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|`_?_?")
_PRESCRIBES = re.compile(
    r"\b(?:must|should|shall|never|always|do not|don't|is required|are required)\b"
    r"|^(?:please|use|run|keep|write|follow|add|include|prefer|avoid|make sure|ensure|test|name)\b",
    re.IGNORECASE,
)
_UNSETTLED = re.compile(
    r"\b(?:TODO|FIXME|XXX|TBD)\b|(?i:\b(?:to be decided|undecided|not (?:yet )?decided|open question|not yet (?:clear"
    r"|settled|supported|implemented|done|known)|still (?:open|missing|unclear|to do)|known (?:issue|problem"
    r"|limitation)|remains? to be|we (?:have to|must|need to) decide)\b)"
)


def paragraphs(section: str) -> Iterator[str]:
    """The paragraphs and bullets of a section, each on one line."""
    held: list[str] = []
    is_code = False
    lines = section.splitlines()
    for n, line in enumerate(lines):
        is_fence = bool(_FENCE.match(line))
        is_code ^= is_fence
        # A line over a rule is a heading of reStructuredText.
        is_head = n + 1 < len(lines) and bool(line.strip()) and not held and bool(_RULE.match(lines[n + 1]))
        is_out = is_code or is_fence or is_head or not line.strip() or bool(_RULE.match(line) or _BARE.match(line))
        is_bullet = bool(_BULLET.match(line))
        if (is_out or is_bullet) and held:
            yield plain(" ".join(held))
            held = []
        if not is_out and (held or is_bullet or not line.startswith(("    ", "\t"))):
            held.append(_BULLET.sub("", line).strip())
    if held:
        yield plain(" ".join(held))


def plain(told: str) -> str:
    """A text without the signs of Markdown and reStructuredText."""
    told = _LINK.sub(lambda match: next(part for part in match.groups() if part), _PICTURE.sub("", told))
    return " ".join(_SIGNS.sub("", told).split())


def sentences(section: str) -> list[str]:
    """The sentences of a section that are more than a label, or an introduction to what is left out here."""
    told = [one for paragraph in paragraphs(section) for one in cite.sentences(paragraph)]
    kept = [one for one in told if len(one) >= LEAST and " " in one and not one.endswith(":")]
    return [cite.shortened(one, LONGEST) for one in dict.fromkeys(kept)]


def statements(section: str) -> list[str]:
    """The sentences that ask nothing."""
    return [one for one in sentences(section) if not one.endswith("?")]


def prescribing(section: str) -> list[str]:
    """The sentences that say what to do or to leave."""
    return [one for one in sentences(section) if _PRESCRIBES.search(one)]


def unsettled(section: str) -> list[str]:
    """The sentences that say what is not done, not decided or not known."""
    return [one for one in sentences(section) if _UNSETTLED.search(one)]


Reading = Callable[[str], list[str]]
