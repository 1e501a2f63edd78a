"""What each client can do with a server, and how its people reach prompts and resources; a page shows this table."""

from dataclasses import dataclass
from typing import Literal

from keepsake.surfaces.connect.clients import CLIENTS

#: `?` where nobody has looked.
Can = Literal["yes", "no", "?"]


@dataclass(frozen=True, slots=True)
class Capable:
    """One row: the parts of the protocol that a client knows."""

    prompts: Can
    resources: Can
    sampling: Can
    elicitation: Can
    roots: Can
    #: How a prompt is run, and a resource attached; empty where the client has no way.
    runs: str = ""
    attaches: str = ""


#: Six as the page of xerotier tells them, the others as the protocol's own list of clients had them; all call tools.
CAPABLE: dict[str, Capable] = {
    "claude-code": Capable("yes", "yes", "no", "yes", "yes", "`/mcp__xerotier__brief`", "`@xerotier://memory/my-slug`"),
    "codex": Capable("no", "yes", "no", "yes", "no"),
    "cursor": Capable("yes", "no", "no", "yes", "yes", "`@xerotier brief`", "the `@` picker"),
    "vscode": Capable("yes", "yes", "yes", "yes", "yes", "`/mcp__xerotier__brief`", "`@xerotier://memory/my-slug`"),
    "kiro": Capable("?", "?", "?", "?", "yes"),
    "gemini": Capable("yes", "?", "no", "?", "?", "`/brief`"),
    "windsurf": Capable("no", "no", "no", "no", "no"),
    "devin": Capable("?", "?", "?", "?", "?"),
    "cline": Capable("no", "yes", "no", "no", "no"),
    "opencode": Capable("yes", "yes", "no", "no", "no", "`/xerotier:brief`", "`@xerotier://memory/my-slug`"),
    "claude-desktop": Capable("yes", "yes", "no", "no", "yes", "", "the `@` picker"),
    "zed": Capable("yes", "no", "no", "no", "no", "`/brief`"),
}


def rows() -> list[tuple[str, ...]]:
    """The table as a page shows it."""
    return [
        (
            CLIENTS[name].title,
            "yes",
            one.prompts,
            one.resources,
            one.sampling,
            one.elicitation,
            one.roots,
            one.runs or ("?" if one.prompts == "?" else "not offered"),
            one.attaches or ("?" if one.resources == "?" else "not offered"),
        )
        for name, one in CAPABLE.items()
    ]


HEADINGS = (
    "client",
    "tools",
    "prompts",
    "resources",
    "sampling",
    "elicitation",
    "roots",
    "run a prompt",
    "attach a resource",
)
