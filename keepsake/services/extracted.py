"""What reading a document gives: told by the child that reads, known to the parent that asked."""

from dataclasses import dataclass

#: Values, each with how often it was found.
Counts = list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Text:
    """A document as text."""

    title: str
    text: str
    #: Whether something was left out.
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Markup:
    """The structure of a page, and where its styles are."""

    title: str
    language: str
    viewport: str
    landmarks: dict[str, int]
    outline: list[tuple[int, str]]
    counts: dict[str, int]
    #: Addresses of its stylesheets, and the styles that stand in the page.
    sheets: list[str]
    styles: list[str]


@dataclass(frozen=True, slots=True)
class Styles:
    """What styles say."""

    colours: Counts
    families: Counts
    sizes: Counts
    weights: Counts
    displays: Counts
    breakpoints: Counts


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a document could not be read."""

    error: str
