"""A brief that rules write: what was found, in sections, every line with its citation."""

from collections.abc import Mapping

from keepsake.core import cite, markdown, report
from keepsake.core.evidence import Evidence, Findings
from keepsake.core.shares import shared
from keepsake.core.words import cost

#: The sections in their order, and the room that each is promised.
SECTIONS = {
    "Decisions": 0.25,
    "Milestones": 0.1,
    "Memories": 0.25,
    "Documents": 0.15,
    "Artifacts": 0.1,
    "Recent chats": 0.15,
}
#: Characters of one line, and tokens of the headings.
LONGEST, FRAME = 300, 60


def written(topic: str, found: Findings, sections: Mapping[str, str], most: int) -> str:
    """As much as fits in so many tokens; `sections` tells where each memory or chat belongs, by its key."""
    lines: dict[str, list[str]] = {name: [] for name in SECTIONS}
    costs: dict[str, list[int]] = {name: [] for name in SECTIONS}
    told: set[str] = set()
    for n, one in enumerate(found.evidence, 1):
        said = _said(topic, one)
        if said and said not in told:
            told.add(said)
            section = sections.get(one.key, "Documents")
            lines[section].append(f"- {one.day}{': ' if one.day else ''}{said} [{n}]")
            costs[section].append(cost("\n".join((lines[section][-1], *report.listed(found.evidence, [n])))) + 1)
    kept = shared(costs, SECTIONS, most - FRAME)
    blocks = ["\n".join((f"## {name}", "", *lines[name][:count])) for name, count in kept.items() if count]
    return "\n\n".join(blocks)


def _said(topic: str, one: Evidence) -> str:
    """The sentences that say most about the topic; without one, the first."""
    text = markdown.unfenced(one.text)
    best = cite.best(topic, text) if topic else cite.sentences(text)[: cite.MOST]
    return cite.shortened(markdown.quoted(" ".join(best)), LONGEST)
