"""What the console has, by name: where each page is, and how it stands in the navigation."""

from dataclasses import dataclass
from urllib.parse import quote, urlencode

ROOT = "/console"


@dataclass(frozen=True, slots=True)
class Item:
    """A page that the navigation names; `{bank}` in its path is the bank of the page that one comes from."""

    name: str
    icon: str
    label: str
    path: str


@dataclass(frozen=True, slots=True)
class Group:
    """Pages under one heading."""

    heading: str
    items: tuple[Item, ...]


GROUPS = (
    Group("", (Item("home", "home", "Home", ""), Item("ask", "ask", "Ask", "/b/{bank}/ask"))),
    Group(
        "Memory",
        (
            Item("memories", "memory", "Memories", "/b/{bank}/memories"),
            Item("timeline", "time", "Timeline", "/b/{bank}/timeline"),
            Item("graph", "graph", "Graph", "/b/{bank}/graph"),
            Item("decisions", "decision", "Decisions", "/b/{bank}/decisions"),
            Item("models", "model", "Models", "/b/{bank}/models"),
            Item("documents", "doc", "Documents", "/b/{bank}/documents"),
        ),
    ),
    Group(
        "Govern",
        (
            Item("approvals", "approve", "Approvals", "/approvals"),
            Item("operations", "ops", "Operations", "/b/{bank}/operations"),
            Item("usage", "usage", "Usage", "/usage"),
            Item("health", "health", "Health", "/b/{bank}/health"),
            Item("audit", "audit", "Audit log", "/audit"),
        ),
    ),
    Group(
        "Set up",
        (Item("projects", "project", "Projects", "/projects"), Item("settings", "key", "Settings", "/settings")),
    ),
)
ITEMS = {item.name: item for group in GROUPS for item in group.items}
MORE = Item("more", "more", "More", "/more")
#: The lower edge of a phone.
TABS = (ITEMS["home"], ITEMS["memories"], ITEMS["ask"], ITEMS["approvals"], MORE)


def link(path: str, bank: str, **query: object) -> str:
    """The address of a page; what is empty in its query is left out."""
    place = ROOT + path.replace("{bank}", quote(bank, safe=""))
    asked = urlencode({name: value for name, value in query.items() if value not in (None, "", [])}, doseq=True)
    return f"{place}?{asked}" if asked else place
