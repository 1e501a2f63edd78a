"""Markdown as pages show it: all of it is escaped, a small part becomes HTML, and links lead only where told."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

#: Characters that are read as Markdown; more is shown as it is.
LONGEST = 100_000
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})")
_ITEM = re.compile(r"^[ \t]*(?:([-*+])|(\d{1,3})[.)])[ \t]+(.*)$")
_HEAD = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?)[ \t#]*$")
_QUOTE = re.compile(r"^ {0,3}>[ \t]?(.*)$")
#: What stands out within a line: code, links, numbers of sources, what is stressed, and signs that mean themselves.
_INLINE = re.compile(
    r"(?P<tick>`+)(?P<code>(?:(?!\n\n).)+?)(?<!`)(?P=tick)(?!`)"
    r"|\\(?P<plain>[\[\]()*_`\\#>~-])"
    r"|\[(?P<told>[^\]\n]{1,300})\]\((?P<url>https?://[^)\s]{1,2000})\)"
    r"|\[(?P<cited>\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]"
    r"|\*\*(?P<strong>[^*\n]+)\*\*"
    r"|(?<![\w*])[*_](?P<soft>[^*_\n]+)[*_](?![\w*])",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Sources:
    """What numbers in square brackets stand for, and where links may lead."""

    #: By number: where it is on the page, and its name.
    cited: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    links: frozenset[str] = frozenset()


NONE = Sources()


def markdown(text: str, sources: Sources = NONE, heading: str = "h3") -> Markup:
    """A text of someone's or of a model's, as HTML that can do nothing."""
    if len(text) > LONGEST:
        return Markup("<pre>{}</pre>").format(text)
    # What was made harmless before must not be shown with the signs that made it so.
    lines = text.replace("\r\n", "\n").replace("&lt;", "<").split("\n")
    return Markup("").join(_blocks(lines, sources, heading))


def _blocks(lines: Sequence[str], sources: Sources, heading: str) -> list[Markup]:
    made: list[Markup] = []
    at = 0
    while at < len(lines):
        taker = next((take for matches, take in _TAKERS if matches.match(lines[at])), _paragraph)
        if not lines[at].strip():
            at += 1
            continue
        block, at = taker(lines, at, sources)
        made.append(block if taker is not _heading else Markup("<{0}>{1}</{0}>").format(Markup(heading), block))
    return made


def _run(lines: Sequence[str], at: int, fits: Callable[[str], bool]) -> int:
    """Where a run of lines that fit ends."""
    end = at
    while end < len(lines) and fits(lines[end]):
        end += 1
    return end


def _fenced(lines: Sequence[str], at: int, sources: Sources) -> tuple[Markup, int]:
    found = _FENCE.match(lines[at])
    assert found is not None
    end = _run(lines, at + 1, lambda line: not line.strip().startswith(found[1]))
    # A reader without a mouse must be able to scroll it.
    return Markup('<pre tabindex="0"><code>{}</code></pre>').format("\n".join(lines[at + 1 : end])), end + 1


def _heading(lines: Sequence[str], at: int, sources: Sources) -> tuple[Markup, int]:
    found = _HEAD.match(lines[at])
    assert found is not None
    return inline(found[1], sources), at + 1


def _quoted(lines: Sequence[str], at: int, sources: Sources) -> tuple[Markup, int]:
    end = _run(lines, at, lambda line: bool(_QUOTE.match(line)))
    told = "\n".join(_QUOTE.sub(r"\1", line) for line in lines[at:end])
    return Markup('<blockquote class="span">{}</blockquote>').format(inline(told, sources)), end


def _listed(lines: Sequence[str], at: int, sources: Sources) -> tuple[Markup, int]:
    items: list[list[str]] = []
    is_numbered = bool(_found(lines[at])[2])
    while at < len(lines) and lines[at].strip() and not _HEAD.match(lines[at]):
        fence, found = _FENCE.match(lines[at]), _ITEM.match(lines[at])
        if fence:
            end = _run(lines, at + 1, lambda line: not line.strip().startswith(fence[1]))  # noqa: B023
            items[-1].append("\n".join(line.strip() for line in lines[at : end + 1]))
            at = end
        elif found:
            items.append([found[3]])
        else:
            items[-1].append(lines[at].strip())
        at += 1
    name = Markup("ol" if is_numbered else "ul")
    told = Markup("").join(Markup("<li>{}</li>").format(_item(item, sources)) for item in items)
    return Markup("<{0}>{1}</{0}>").format(name, told), at


def _found(line: str) -> re.Match[str]:
    found = _ITEM.match(line)
    assert found is not None
    return found


def _item(parts: Sequence[str], sources: Sources) -> Markup:
    """What one item of a list says; lines of code within it stay lines."""
    said = Markup("")
    for part in parts:
        if _FENCE.match(part):
            said += _fenced(part.split("\n"), 0, sources)[0]
        else:
            said += (" " if said else "") + inline(part, sources)
    return said


def _paragraph(lines: Sequence[str], at: int, sources: Sources) -> tuple[Markup, int]:
    def goes_on(line: str) -> bool:
        return bool(line.strip()) and not any(matches.match(line) for matches, _ in _TAKERS)

    end = max(at + 1, _run(lines, at, goes_on))
    return Markup("<p>{}</p>").format(inline("\n".join(lines[at:end]), sources)), end


Take = Callable[[Sequence[str], int, Sources], tuple[Markup, int]]
_TAKERS: tuple[tuple[re.Pattern[str], Take], ...] = (
    (_FENCE, _fenced),
    (_HEAD, _heading),
    (_QUOTE, _quoted),
    (_ITEM, _listed),
)


def inline(text: str, sources: Sources = NONE) -> Markup:
    """One stretch of text."""
    made, at = Markup(""), 0
    for found in _INLINE.finditer(text):
        made += escape(text[at : found.start()]) + _one(found, sources)
        at = found.end()
    return made + escape(text[at:])


def _one(found: re.Match[str], sources: Sources) -> Markup:
    if found["code"] is not None:
        return Markup("<code>{}</code>").format(found["code"].strip())
    if found["plain"] is not None:
        return escape(found["plain"])
    if found["url"] is not None:
        told = escape(found["told"])
        is_known = found["url"] in sources.links
        return Markup('<a href="{}" rel="noreferrer">{}</a>').format(found["url"], told) if is_known else told
    if found["cited"] is not None:
        return _cited(found, sources)
    if found["strong"] is not None:
        return Markup("<strong>{}</strong>").format(inline(found["strong"], sources))
    return Markup("<em>{}</em>").format(inline(found["soft"], sources))


def _cited(found: re.Match[str], sources: Sources) -> Markup:
    numbers = [int(one) for one in re.findall(r"\d+", found["cited"])]
    if not all(number in sources.cited for number in numbers):
        return escape(found[0])
    link = Markup('<a class="cite" href="{}" aria-label="Source {}: {}">{}</a>')
    return Markup("").join(
        link.format(sources.cited[number][0], number, sources.cited[number][1], number) for number in numbers
    )
