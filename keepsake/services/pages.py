"""What a page says, as text a model can read: its title, headings, lists, tables and code, without its surroundings."""

import re
from dataclasses import dataclass, field
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from keepsake.services.extracted import Text

#: A main part with fewer characters is taken for an empty shell, and the whole page is read.
LEAST_MAIN = 200
LONGEST_TITLE = 300
_SKIPPED = frozenset(
    "script style noscript template svg math iframe object embed canvas audio video select option button input textarea"
    " dialog head title nav footer aside map datalist".split()
)
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_BLOCKS = frozenset(
    "address article blockquote center dd details div dl dt fieldset figcaption figure form header hgroup main ol p"
    " section summary table tbody thead tfoot ul".split()
)
_HIDDEN = re.compile(r"display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden", re.IGNORECASE)
_BLANKS = re.compile(r"[ \t\n\r\f\v\u00a0]+")


def read(html: str, base: str, with_links: bool) -> Text:
    """The text of a page: of its main part, where it has one worth that name."""
    tree = LexborHTMLParser(html)
    told = tree.css_first("title") or tree.css_first("h1")
    title = squeezed(told.text())[:LONGEST_TITLE] if told is not None else ""
    links = base if with_links else ""
    main = tree.css_first("main, [role=main]") or (articles[0] if len(articles := tree.css("article")) == 1 else None)
    text = _text(main, links) if main is not None else ""
    if len(text) < LEAST_MAIN and tree.body is not None:
        whole = _text(tree.body, links)
        text = whole if len(whole) > len(text) else text
    return Text(title, text)


def squeezed(text: str) -> str:
    """A text in one line."""
    return _BLANKS.sub(" ", text).strip()


@dataclass(slots=True)
class _Written:
    """What has been written of a page so far."""

    #: Where links are counted from; empty when they are left out.
    base: str
    parts: list[str] = field(default_factory=list)
    preformatted: int = 0

    def text(self, said: str) -> None:
        self.parts.append(said if self.preformatted else _BLANKS.sub(" ", said))

    def opened(self, node: LexborNode, tag: str) -> None:
        if tag in _HEADINGS:
            self.parts.append(f"\n\n{_HEADINGS[tag]} ")
        elif tag == "pre":
            self.preformatted += 1
            self.parts.append("\n\n```\n")
        elif tag == "blockquote":
            self.parts.append("\n\n> ")
        elif tag in _MARKS:
            self.parts.append(_MARKS[tag])
        elif tag in _BLOCKS:
            self.parts.append("\n\n")
        elif tag == "a" and self._address(node):
            self.parts.append("[")

    def closed(self, node: LexborNode, tag: str) -> None:
        if tag == "pre":
            self.preformatted -= 1
            self.parts.append("\n```\n\n")
        elif tag in ("td", "th"):
            self.parts.append(" | ")
        elif tag == "code" and not self.preformatted:
            self.parts.append("`")
        elif tag in _BLOCKS or tag in _HEADINGS:
            self.parts.append("\n\n")
        elif tag == "a" and (address := self._address(node)):
            self.parts.append(f"]({address})")

    def _address(self, node: LexborNode) -> str:
        named = (node.attributes.get("href") or "").strip()
        if not self.base or not named or named.startswith("#") or len(named) > 2_000:
            return ""
        try:
            found = urljoin(self.base, named)
        except ValueError:
            return ""
        return found.replace(" ", "%20").replace(")", "%29") if found.startswith(("http://", "https://")) else ""


_MARKS = {"li": "\n- ", "br": "\n", "hr": "\n\n---\n\n", "tr": "\n", "code": "`"}


def _text(root: LexborNode, links: str) -> str:
    written = _Written(links)
    # By hand and not by recursion: a page may nest as deep as it is long.
    waiting: list[tuple[LexborNode, bool]] = [(root, False)]
    while waiting:
        node, is_done = waiting.pop()
        tag = node.tag or ""
        if is_done:
            written.closed(node, tag)
        elif node.is_text_node:
            written.text(node.text_content or "")
        elif node.is_element_node and tag not in _SKIPPED and not _is_hidden(node):
            if tag != "code" or not written.preformatted:
                written.opened(node, tag)
            waiting.append((node, True))
            waiting += [(child, False) for child in reversed(children(node))]
    return _tidy("".join(written.parts))


def children(node: LexborNode) -> list[LexborNode]:
    """The nodes directly inside one."""
    found, child = [], node.first_child
    while child is not None:
        found.append(child)
        child = child.next
    return found


def _is_hidden(node: LexborNode) -> bool:
    told = node.attributes
    style = told.get("style") or ""
    return "hidden" in told or told.get("aria-hidden") == "true" or bool(style and _HIDDEN.search(style))


def _tidy(text: str) -> str:
    """Without blanks at the ends of lines and without more than one empty line, save in code."""
    lines: list[str] = []
    is_code = False
    for line in text.split("\n"):
        is_code ^= line == "```"
        told = line.rstrip() if is_code else line.strip().removesuffix(" |").rstrip()
        if is_code or told or (lines and lines[-1]):
            lines.append(told)
    return "\n".join(lines).strip()
