"""How a page is made: its structure, and from its styles the colours, type and layout; run only within limits."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from urllib.parse import urljoin

import tinycss2
from selectolax.lexbor import LexborHTMLParser
from tinycss2 import color4
from tinycss2.ast import Node

from keepsake.services.extracted import Markup, Styles
from keepsake.services.pages import LONGEST_TITLE, squeezed

#: Headings, stylesheets and values of a kind that are told.
MOST_HEADINGS, MOST_SHEETS, MOST_VALUES = 100, 30, 40
_LANDMARKS = "header nav main article section aside footer form search dialog".split()
_ROLES = "banner navigation main complementary contentinfo search form region".split()
_GENERIC = frozenset("inherit initial unset revert revert-layer var".split())
#: At-rules that hold rules; others hold declarations or nothing.
_HOLDS_RULES = frozenset("media supports layer container scope document starting-style".split())


def made(html: str, base: str) -> Markup:
    """Look at the markup."""
    tree = LexborHTMLParser(html)
    told, root = tree.css_first("title"), tree.css_first("html")
    viewport = tree.css_first("meta[name=viewport]")
    landmarks = {tag: len(tree.css(tag)) for tag in _LANDMARKS}
    landmarks |= {f"role={role}": len(tree.css(f"[role={role}]")) for role in _ROLES}
    headings = [(int((node.tag or "h0")[1]), squeezed(node.text())[:200]) for node in tree.css("h1,h2,h3,h4,h5,h6")]
    inline = ";".join(node.attributes.get("style") or "" for node in tree.css("[style]"))
    return Markup(
        squeezed(told.text())[:LONGEST_TITLE] if told is not None else "",
        ((root.attributes.get("lang") if root is not None else "") or "")[:40],
        ((viewport.attributes.get("content") if viewport is not None else "") or "")[:200],
        {name: count for name, count in landmarks.items() if count},
        headings[:MOST_HEADINGS],
        {name: len(tree.css(css)) for name, css in {"links": "a[href]", "images": "img", "scripts": "script"}.items()},
        _sheets(tree, base),
        [*(node.text() for node in tree.css("style")), f"*{{{inline}}}"],
    )


def _sheets(tree: LexborHTMLParser, base: str) -> list[str]:
    found: list[str] = []
    for node in tree.css("link[rel~=stylesheet]"):
        try:
            url = urljoin(base, (node.attributes.get("href") or "").strip())
        except ValueError:
            continue
        if url.startswith(("http://", "https://")) and url not in found and len(url) <= 2_000:
            found.append(url)
    return found[:MOST_SHEETS]


@dataclass(frozen=True, slots=True)
class _Styled:
    """What styles say, each value with how often it is said."""

    colours: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    weights: Counter[str] = field(default_factory=Counter)
    displays: Counter[str] = field(default_factory=Counter)
    breakpoints: Counter[str] = field(default_factory=Counter)

    def most(self) -> Styles:
        """The commonest values first, and among equals by name."""
        counted = (getattr(self, one.name) for one in fields(self))
        return Styles(*(sorted(each.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_VALUES] for each in counted))


def styled(sheets: Iterable[str]) -> Styles:
    """Look at the styles."""
    found = _Styled()
    for sheet in sheets:
        # By hand and not by recursion: rules may nest as deep as a sheet is long.
        waiting: list[Node] = list(tinycss2.parse_stylesheet(sheet, skip_comments=True, skip_whitespace=True))
        while waiting:
            node = waiting.pop()
            if node.type == "declaration":
                _declared(found, node.lower_name, node.value)
            elif node.type == "at-rule":
                waiting += _inside(found, node)
            elif node.type == "qualified-rule":
                waiting += tinycss2.parse_blocks_contents(node.content, skip_comments=True, skip_whitespace=True)
    return found.most()


def _inside(found: _Styled, rule: Node) -> list[Node]:
    name = rule.lower_at_keyword
    if name in ("media", "container"):
        found.breakpoints.update(_widths(rule.prelude))
    if rule.content is None:
        return []
    if name in _HOLDS_RULES:
        return list(tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True))
    return []


def _widths(prelude: list[Node]) -> Iterator[str]:
    """Widths at which a layout changes, such as `min-width: 600px`."""
    for block in prelude:
        if block.type != "() block":
            continue
        told = squeezed(tinycss2.serialize(block.content[:40])).lower()
        if "width" in told:
            yield told[:60]


def _declared(found: _Styled, name: str, value: list[Node]) -> None:
    if "color" in name or name.startswith(("background", "border", "outline", "box-shadow", "fill", "stroke", "--")):
        found.colours.update(_colours(value))
    if name == "font-family":
        found.families.update(_families(value))
    elif name == "font":
        _shorthand(found, value)
    elif name in ("font-size", "font-weight"):
        (found.sizes if name == "font-size" else found.weights).update(_plain(value))
    elif name == "display":
        found.displays.update(word for word in _plain(value) if word.removeprefix("inline-") in ("grid", "flex"))


def _colours(value: list[Node]) -> Iterator[str]:
    waiting = list(value)
    while waiting:
        token = waiting.pop()
        if token.type in ("hash", "ident", "function"):
            colour = color4.parse_color(token)
            if isinstance(colour, color4.Color):
                yield _written(colour, token)
                continue
        if token.type == "function":
            waiting += token.arguments


def _written(colour: "color4.Color", token: Node) -> str:
    """As #rrggbb, with two digits more where one can see through it; a colour of another space as it was."""
    try:
        *rgb, alpha = colour.to("srgb")
    except NotImplementedError:
        return squeezed(str(token.serialize()))[:60].lower()
    red, green, blue = (round(255 * min(1.0, max(0.0, part or 0.0))) for part in rgb)
    shown = "" if alpha is None or alpha >= 1 else f"{round(255 * max(0.0, alpha)):02x}"
    return f"#{red:02x}{green:02x}{blue:02x}{shown}"


def _families(value: list[Node]) -> Iterator[str]:
    """The names in a list of fonts; the first is the one that is wanted, so it alone is counted."""
    words: list[str] = []
    for token in value:
        if token.type == "literal" and token.value == ",":
            break
        if token.type in ("ident", "string"):
            words.append(token.value)
    name = squeezed(" ".join(words))[:80]
    if name and name.lower() not in _GENERIC:
        yield name


def _shorthand(found: _Styled, value: list[Node]) -> None:
    """`font: italic 700 16px/1.5 Inter, sans-serif`: the size comes before the family."""
    at = next((n for n, token in enumerate(value) if token.type in ("dimension", "percentage")), None)
    if at is None:
        return
    found.sizes.update(_plain(value[at : at + 1]))
    rest = value[at + 1 :]
    if any(token.type == "literal" and token.value == "/" for token in rest[:2]):
        slash = next(n for n, token in enumerate(rest) if token.type == "literal")
        rest = rest[slash + 2 :]
    found.families.update(_families(rest))


def _plain(value: list[Node]) -> list[str]:
    told = squeezed(tinycss2.serialize(value[:20])).lower()[:60]
    return [told] if told and told not in _GENERIC else []
