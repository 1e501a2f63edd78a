"""Documents cut into sections under their headings, with their lines: Markdown, reStructuredText, AsciiDoc, plain."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: Characters after which a section is cut at the next empty line, and at any line.
LONG, LONGEST = 1_600, 3_200
#: Sections of one document, and headings that its title names.
MOST, DEEP = 400, 3
SUFFIXES = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".asciidoc")
_BETWEEN = " › "
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HASHES = re.compile(r" {0,3}(#{1,6})\s+(\S.*?)\s*#*\s*$")
_EQUALS = re.compile(r"(={1,6})\s+(\S.*?)\s*$")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})\s*$")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}\s*$")
_RULES = ("---", "...")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document: the headings above it, what it says, and its first and last line, counted from 1."""

    title: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, the line it begins at, how many lines it takes, and how deep it is."""

    line: int
    takes: int
    level: int
    title: str


def split(path: str, told: str, most: int = MOST) -> list[Section]:
    """The sections of a document, in order; a document that says nothing has none."""
    lines = told.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found = list(_headings(path.lower(), lines))
    above: list[Heading] = []
    sections: list[Section] = []
    ends = [one.line for one in found] + [len(lines)]
    sections += _cut("", lines, _after_front_matter(lines), ends[0])
    for one, end in zip(found, ends[1:], strict=True):
        above = [*(each for each in above if each.level < one.level), one]
        title = _BETWEEN.join(each.title for each in above[-DEEP:])
        sections += _cut(title, lines, one.line + one.takes, end, one.line)
    return sections[:most]


def _after_front_matter(lines: Sequence[str]) -> int:
    """The line behind the settings that some tools want at the top of a document."""
    if lines and lines[0].strip() == "---":
        for n, line in enumerate(lines[1:60], 1):
            if line.strip() in _RULES:
                return n + 1
    return 0


def _headings(path: str, lines: Sequence[str]) -> Iterator[Heading]:
    if path.endswith((".md", ".markdown", ".mdx")):
        return _markdown(lines)
    if path.endswith((".adoc", ".asciidoc")):
        return _asciidoc(lines)
    return _underlined(lines)


def _markdown(lines: Sequence[str]) -> Iterator[Heading]:
    fence = ""
    for n in range(_after_front_matter(lines), len(lines)):
        line = lines[n]
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        elif not fence and (match := _HASHES.match(line)):
            yield Heading(n, 1, len(match[1]), match[2])
        elif not fence and n and (match := _SETEXT.match(line)) and _is_title(lines, n - 1):
            yield Heading(n - 1, 2, 1 if "=" in match[1] else 2, lines[n - 1].strip())


def _is_title(lines: Sequence[str], n: int) -> bool:
    """Whether a line over a rule is a heading: alone, and no item, table or heading itself."""
    line = lines[n].strip()
    is_alone = n == 0 or not lines[n - 1].strip()
    return bool(line) and is_alone and not line.startswith(("#", "-", "*", ">", "|", "+", "`"))


def _asciidoc(lines: Sequence[str]) -> Iterator[Heading]:
    is_block = False
    for n, line in enumerate(lines):
        if line.rstrip() in ("----", "....", "====", "****", "____", "++++"):
            is_block = not is_block
        elif not is_block and (match := _EQUALS.match(line)):
            yield Heading(n, 1, len(match[1]), match[2])


def _underlined(lines: Sequence[str]) -> Iterator[Heading]:
    """Titles over a line of signs, which may stand above them as well; whose sign comes first is the highest."""
    levels: dict[tuple[str, bool], int] = {}
    for n in range(1, len(lines)):
        rule, title = lines[n].rstrip(), lines[n - 1].rstrip()
        if not _UNDERLINE.match(rule) or not title.strip() or _UNDERLINE.match(title):
            continue
        over = n >= 2 and lines[n - 2].rstrip() == rule
        # Text that happens to stand over a rule is longer than the rule, indented, or goes on above.
        is_bare = over or (n < 2 or not lines[n - 2].strip())
        if not is_bare or len(rule) < len(title.strip()) or (title[0] == " " and not over):
            continue
        level = levels.setdefault((rule[0], over), len(levels) + 1)
        yield Heading(n - 2, 3, level, title.strip()) if over else Heading(n - 1, 2, level, title.strip())


def _cut(title: str, lines: Sequence[str], start: int, end: int, first: int | None = None) -> Iterator[Section]:
    """The lines under one heading, in parts that a reader takes in at once; `first` is where the heading stands."""
    part: list[str] = []
    at, size, is_fenced = start, 0, False
    for n in range(start, end):
        line = lines[n]
        is_fenced ^= bool(_FENCE.match(line))
        is_full = size > LONGEST or (size > LONG and not line.strip() and not is_fenced)
        if is_full and part:
            yield from _section(title, part, at, first)
            part, at, size, first = [], n, 0, None
        part.append(line)
        size += len(line) + 1
    yield from _section(title, part, at, first)


def _section(title: str, part: Sequence[str], at: int, first: int | None) -> Iterator[Section]:
    filled = [n for n, line in enumerate(part) if line.strip()]
    if filled:
        told = "\n".join(line.rstrip() for line in part[filled[0] : filled[-1] + 1])
        start = at + filled[0] if first is None else first
        yield Section(title, told, start + 1, at + filled[-1] + 1)
