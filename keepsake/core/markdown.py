"""Answers in Markdown: what of them is prose, and their citations, links and quotations made safe."""

import re
from collections.abc import Callable, Collection, Mapping
from itertools import pairwise

from keepsake.core import cite

_CODE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|(?<!`)(?P<tick>`+)(?!`)(?:(?!\n\n).)+?(?<!`)(?P=tick)(?!`)",
    re.DOTALL | re.MULTILINE,
)
_CITED = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\](?!\()")
#: The mark of a list item, and where a sentence ends: citations behind its full stop belong to it.
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+|\s*>\s+")
_END = re.compile(r"[.!?…](?:[*_\"')]*)(?:\s*\[\d[\d,; ]*\])*(?=\s+\S)")
_LINK = re.compile(r"(?P<image>!?)\[(?P<told>[^\]\n]*)\]\((?P<url>[^)\s]*)[^)\n]*\)")
_REFERENCE = re.compile(r"^\s{0,3}\[[^\]\n]+\]:\s+\S+.*$", re.MULTILINE)
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_BARE = re.compile(r"\bhttps?://[^\s<>)\]]+")
_NUMBER = re.compile(r"\[(\d[\d,; ]*)\]")


def prose(answer: str) -> str:
    """The answer with blanks in the place of code, where `[1]` is no citation."""
    return _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), answer)


def masked(answer: str) -> str:
    """The answer with one long word in the place of code, line ends included."""
    return _CODE.sub(lambda code: "x" * len(code[0]), answer)


def unfenced(text: str) -> str:
    """A text without its blocks of code."""
    return _CODE.sub(lambda code: "\n" if code["fence"] else code[0], text)


def cited(answer: str) -> list[int]:
    """The numbers that an answer cites, each once, in order."""
    return cite.cited(prose(answer))


def _outside_code(answer: str, change: Callable[[str], str]) -> str:
    """An answer changed everywhere but in its code."""
    made, at = [], 0
    for code in _CODE.finditer(answer):
        made += [change(answer[at : code.start()]), code[0]]
        at = code.end()
    return "".join((*made, change(answer[at:])))


def renumbered(answer: str, numbers: Mapping[int, int]) -> str:
    """An answer with other numbers; those that have none are left out."""

    def group(match: re.Match[str]) -> str:
        kept = [numbers[int(n)] for n in re.findall(r"\d+", match[1]) if int(n) in numbers]
        return "".join(f"[{n}]" for n in dict.fromkeys(kept))

    return _outside_code(answer, lambda text: _CITED.sub(group, text))


def without(answer: str, gone: Collection[int]) -> str:
    """An answer without the sentences that rest on these numbers alone, nor the numbers themselves."""
    if not set(gone) & set(cited(answer)):
        return answer
    shown, kept = prose(answer), []
    at = 0
    for line in answer.splitlines(keepends=True):
        left = _left(line, shown[at : at + len(line)], gone)
        at += len(line)
        if left is not None:
            kept.append(left)
    text = renumbered("".join(kept), {n: n for n in cited(answer) if n not in gone})
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _left(line: str, shown: str, gone: Collection[int]) -> str | None:
    """What of a line may stay; None where nothing does."""
    if not set(cite.cited(shown)) & set(gone):
        return line
    item = _ITEM.match(shown)
    start = item.end() if item else 0
    ends = [match.end() for match in _END.finditer(shown, start)]
    bounds = [start, *ends, len(line)]
    kept = []
    for begin, end in pairwise(bounds):
        numbers = cite.cited(shown[begin:end])
        if not numbers or any(n not in gone for n in numbers):
            kept.append(line[begin:end])
    if not "".join(kept).strip():
        return None
    ending = "" if line[-1:] != "\n" or (kept and kept[-1].endswith("\n")) else "\n"
    return line[:start] + "".join(kept).lstrip() + ending


def harmless(answer: str, known: Collection[str]) -> str:
    """An answer that loads and leads nowhere but to what it may cite: no images, no foreign links, no HTML."""

    def link(match: re.Match[str]) -> str:
        told = f"[{match['told']}]" if match["told"].isdigit() else match["told"]
        return match[0] if not match["image"] and match["url"] in known else told

    def bare(match: re.Match[str]) -> str:
        url = match[0].rstrip(".,;:!?'\"")
        return match[0] if url in known else f"`{url}`{match[0][len(url) :]}"

    def change(text: str) -> str:
        text = _REFERENCE.sub("", text)
        linked = _LINK.sub(link, text)
        parts = re.split(r"(\]\([^)\n]*\))", linked)
        made = [part if n % 2 else _BARE.sub(bare, part) for n, part in enumerate(parts)]
        return _TAG.sub("&lt;", "".join(made))

    return _outside_code(answer, change)


def quoted(text: str) -> str:
    """Foreign words on one line, in which nothing is a citation, a link, an image or a tag."""
    line = " ".join(text.split())
    line = _TAG.sub("&lt;", line.replace("](", "]\\("))
    return _NUMBER.sub(r"\\[\1\\]", line).replace("`" * 3, "'''")


def span(text: str) -> str:
    """Foreign words as code within a line."""
    return f"`{' '.join(text.split()).replace('`', chr(39))}`"


def block(text: str, indent: str = "") -> str:
    """Foreign lines as a block of code that none of them can end."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return "\n".join(f"{indent}{line}" for line in (fence, *text.splitlines(), fence))
